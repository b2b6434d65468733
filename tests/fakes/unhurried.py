"""The embedded world, taking its time: what a player sees of a machine that is too slow for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from pipeline.service import Emit, Progress, StageExecutor
from pipeline.tiny.stages import DenoiseStage
from pipeline.tiny.world import TinyWorld
from pipeline.tiny.world import make_world as make_tiny

LONGEST_SECONDS = 240.0  # that is waited for the file


def wait_for(file: Path) -> None:
    """Wait until somebody has put the file there."""
    latest = time.monotonic() + LONGEST_SECONDS
    while not file.exists() and time.monotonic() < latest:
        time.sleep(0.05)


class Unhurried(DenoiseStage):
    """Waits as a host thread waits for a GPU: without the interpreter lock, without a core."""

    def __init__(self, hurried: DenoiseStage, seconds: float, until: Path | None) -> None:
        self._hurried, self._seconds, self._until = hurried, seconds, until
        self.entered, self.open, self.release = hurried.entered, hurried.open, hurried.release

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        if self._until is not None:
            wait_for(self._until)
        time.sleep(self._seconds)
        return self._hurried.run(state, inputs, emit)


def make_world(chunk_seconds: float = 0.0, until: str | None = None) -> TinyWorld:
    """Load it.

    Args:
        chunk_seconds: how much longer each chunk takes than it has to.
        until: it is not warm, and no chunk is made, before there is a file of this name.
    """
    world = make_tiny(fps=24)
    gate = None if until is None else Path(until)
    hurried, warm_up = world.stages, world.warm_up

    def warm_up_and_wait(progress: Progress) -> None:
        warm_up(progress)
        if gate is not None:
            wait_for(gate)

    def stages() -> Mapping[str, StageExecutor]:
        own = dict(hurried())
        denoise = own["denoise"]
        assert isinstance(denoise, DenoiseStage)
        own["denoise"] = Unhurried(denoise, chunk_seconds, gate)
        return own

    world.stages, world.warm_up = stages, warm_up_and_wait  # type: ignore[method-assign]
    return world
