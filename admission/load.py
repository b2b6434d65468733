"""How fast a worker can serve the sessions that run on it, from measured stage times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from admission.window import Window

WINDOW: Final = 9  # chunks: a stall leaves the median alone, a new speed takes it over after five


class WorkerLoad:
    """Stage times of the sessions of one worker, and the chunk period that follows from them.

    A session cannot have its chunks faster than its slowest stage takes, nor faster than a shared
    stage takes for everybody who runs. Only time spent computing is fed in: what a session waits
    by choice never stretches its own prediction.
    """

    def __init__(self, *shared_stages: str) -> None:
        """Nobody runs yet.

        Args:
            *shared_stages: Stages with one actor for all sessions: the exclusive one, and whatever
                others serve everybody in turn.
        """
        self._shared = shared_stages
        self._stages: dict[str, dict[str, Window]] = {}  # session -> stage -> seconds

    def measured(self, session: str, stage: str, seconds: float) -> None:
        """`stage` took `seconds` for one chunk of `session`."""
        stages = self._stages.setdefault(session, {})
        stages.setdefault(stage, Window(WINDOW)).add(seconds)

    def forget(self, session: str) -> None:
        """The session is gone."""
        self._stages.pop(session, None)

    def period(self, session: str, running: Iterable[str]) -> float:
        """Predicted seconds between two chunks of `session` while `running` sessions play too.

        0 before anything is measured. `session` itself counts as running.
        """
        own = (self._seconds(session, stage) for stage in self._stages.get(session, {}))
        everybody = {*running, session}
        shared = (sum(self._seconds(each, stage) for each in everybody) for stage in self._shared)
        return max((*own, *shared), default=0.0)

    def _seconds(self, session: str, stage: str) -> float:
        window = self._stages.get(session, {}).get(stage)
        return (window.median() if window else None) or 0.0
