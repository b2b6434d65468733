"""What chunks cost, measured, and how far apart they can come. Pure."""

from __future__ import annotations

from collections.abc import Collection

from admission.load import WorkerLoad
from pipeline.streaming.spec import StreamingPipelineSpec


class WorkerCosts:
    """Predicted chunk periods of sessions that share a worker.

    Every stage has one actor, which serves everybody in turn: whichever stage that is slowest for
    decides, be it the exclusive one or not.
    """

    def __init__(self, spec: StreamingPipelineSpec) -> None:
        self._loads = {stage.name: WorkerLoad(stage.name) for stage in spec.stages}

    def measured(self, session: str, stage: str, seconds: float) -> None:
        """`stage` took `seconds` for one chunk of `session`."""
        for load in self._loads.values():
            load.measured(session, stage, seconds)

    def forget(self, session: str) -> None:
        """The session is gone."""
        for load in self._loads.values():
            load.forget(session)

    def period(self, session: str, playing: Collection[str]) -> float:
        """Seconds between two chunks of `session` while those in `playing` want theirs too."""
        return max(load.period(session, playing) for load in self._loads.values())
