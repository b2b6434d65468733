"""The failing world: the marker's pictures until one stage raises or hangs at a given chunk.

`stage="open"` fails while a session is being built. A hang ends after `hang_seconds`, or as soon as
the world is closed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pipeline.options import require
from pipeline.service import StageExecutor
from pipeline.testworlds.base import STAGES, DrawnStage, DrawnWorld, Format, Sketch, Work
from pipeline.testworlds.marker import paint


class ToldToFail(RuntimeError):
    """The failure that was asked for."""


class _StageThatCannotOpen(DrawnStage):
    def open(self, start: object) -> object:
        raise ToldToFail("denoise was told to fail when a session opens")


class FailingWorld(DrawnWorld):
    """A drawn world with one fault."""

    def __init__(
        self, sketch: Sketch, stage: str, at_chunk: int, hang: bool, hang_seconds: float
    ) -> None:
        """Fail or hang in `stage` at chunk `at_chunk`."""
        self._closed = threading.Event()
        self._fails_to_open = stage == "open"

        def work(index: int) -> None:
            if index != at_chunk:
                return
            if hang:
                self._closed.wait(hang_seconds)
            else:
                raise ToldToFail(f"{stage} was told to fail at chunk {index}")

        faults: dict[str, Work] = {} if self._fails_to_open else {stage: work}
        super().__init__(sketch, faults)

    def stages(self) -> Mapping[str, StageExecutor]:
        """Return the stages, one of them faulty."""
        stages = dict(super().stages())
        if self._fails_to_open:
            stages["denoise"] = _StageThatCannotOpen(lambda index: None, self._denoise)
        return stages

    def close(self) -> None:
        """End a hang."""
        self._closed.set()


def make_world(
    stage: str = "denoise",
    at_chunk: int = 8,
    hang: bool = False,
    hang_seconds: float = 3600.0,
    fps: float = 16.0,
    width: int = 256,
    height: int = 160,
    frames_per_chunk: int = 4,
) -> FailingWorld:
    """Build the failing world."""
    require("stage", stage, stage in (*STAGES, "open"), "encode, denoise, decode or open")
    require("at_chunk", at_chunk, at_chunk >= 0, "0 or more")
    require("hang_seconds", hang_seconds, 0 < hang_seconds <= 86_400, "above 0, at most a day")
    shape = Format(width, height, fps, frames_per_chunk)
    about = "A test picture that fails where it is told."
    sketch = Sketch("failing", "Failing", about, paint, shape)
    return FailingWorld(sketch, stage, at_chunk, hang, hang_seconds)
