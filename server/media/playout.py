"""How fast a session really plays: its real-time factor, as its player has it.

Paced just in time, a chunk is finished now a little early and now a little late for the slack to
take up, and none of it is seen. So the period is taken on the publish clock, between the moments
when two chunks begin to be shown: exactly what a chunk plays while every chunk is in time, longer
by as much as one is late, and as long as the world needs where it cannot keep up. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from admission.window import Window
from server.media.pacing import PacedFrame

RECENT: Final = 64  # chunks that are judged: a slow start is soon forgotten

Media = TypeVar("Media")


@dataclass
class _Showing:
    """The chunk that is being shown."""

    name: tuple[int, int]  # (epoch, index)
    began: float
    frames: int = 1


class PlayoutMeter:
    """Time from the begin of one chunk to that of the next, over the time that it plays.

    Time that the session chose to wait is in no period.
    """

    def __init__(self, fps: float) -> None:
        """Nothing is shown yet; `fps` is the world's while it keeps up."""
        self._fps = fps
        self._factors = Window(RECENT)
        self._showing: _Showing | None = None
        self._newest = (-1, -1)  # (epoch, index) of the chunk that was granted last
        self._waited_for = (-1, -1)  # no period that ends with this chunk or an earlier one counts

    @property
    def real_time_factor(self) -> float | None:
        """p95 over the newest chunks: 1 is real time, 2 half speed; None before two are shown."""
        return self._factors.percentile(0.95)

    def granted(self, epoch: int, chunk: int) -> None:
        """A chunk is under way."""
        self._newest = (epoch, chunk)

    def waits(self) -> None:
        """The session chooses to wait: pictures stand, or no chunk is wanted.

        Chunks that are under way may stand too, and the one after them comes after the wait.
        """
        epoch, chunk = self._newest
        self._waited_for = (epoch, chunk + 1)

    def shown(self, frame: PacedFrame[Media]) -> None:
        """A picture is published for the first time."""
        name, before = (frame.epoch, frame.chunk), self._showing
        if before is not None and before.name == name:
            before.frames += 1
            return
        self._showing = _Showing(name, frame.due)
        if before is None or frame.chunk < 1 or before.name != (frame.epoch, frame.chunk - 1):
            return  # the first of its epoch, or one before it was skipped
        if name > self._waited_for:
            self._factors.add((frame.due - before.began) * self._fps / before.frames)
