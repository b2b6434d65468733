"""How fast a worker can serve the sessions that run on it, from measured stage times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from admission.window import Window

WINDOW: Final = 9  # chunks: a stall leaves the median alone, a new speed takes it over after five


class WorkerLoad:
    """Stage times of the sessions of one worker, and the chunk period that follows from them.

    A session cannot have its chunks faster than its slowest stage takes, nor faster than the
    exclusive stage takes for everybody who runs. Only time spent computing is fed in, so that what
    a session waits by choice never stretches its own prediction.
    """

    def __init__(self, exclusive_stage: str) -> None:
        """Nobody runs yet.

        Args:
            exclusive_stage: The stage that the execution lease protects.
        """
        self._exclusive = exclusive_stage
        self._stages: dict[str, dict[str, Window]] = {}  # session -> stage -> seconds

    def measured(self, session: str, stage: str, seconds: float) -> None:
        """`stage` took `seconds` for one chunk of `session`."""
        stages = self._stages.setdefault(session, {})
        stages.setdefault(stage, Window(WINDOW)).add(seconds)

    def forget(self, session: str) -> None:
        """The session is gone."""
        self._stages.pop(session, None)

    def period(self, session: str, running: Iterable[str]) -> float:
        """Predicted seconds between two chunks of `session` while `running` sessions saturate it.

        0 before anything is measured. `session` itself counts as running.
        """
        own = max((w.median() or 0.0 for w in self._stages.get(session, {}).values()), default=0.0)
        return max(own, sum(self._exclusive_seconds(each) for each in {*running, session}))

    def _exclusive_seconds(self, session: str) -> float:
        window = self._stages.get(session, {}).get(self._exclusive)
        return (window.median() if window else None) or 0.0
