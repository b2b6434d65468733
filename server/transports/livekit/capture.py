"""When pictures are captured, so that their RTP timestamps are known without seeing them. Pure.

libwebrtc makes a frame's RTP timestamp of its capture time in whole milliseconds, and LiveKit adds
a constant for each subscription. So whoever displays a frame can find out which one it is from
(capture time × 90) and an offset that never changes, where it cannot read the frame's metadata.
Two things make that work:

- The time is given half-way between two milliseconds. libwebrtc moves it onto its own clock by an
  offset that it averages over a hundred frames; this keeps the result in the same millisecond.
- It is a few milliseconds early, each time by another amount: evenly paced frames would agree on
  many offsets, one frame apart, and nobody could tell which is the right one.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from server.media.receipts import CLOCK_RATE, WRAP

EARLY_MS: Final = 5  # 0 to 4 ms: an odd number of steps, so that their mean is a whole one
TICKS_PER_MS: Final = CLOCK_RATE // 1000


class Captured(NamedTuple):
    """One capture time, as libwebrtc takes it and as RTP counts it."""

    timestamp_us: int
    pts: int  # 90 kHz, modulo 2**32


class CaptureTimes:
    """The capture times of one track: they only grow."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()
        self._early: list[int] = []
        self._last_ms = 0

    def next(self, now: float) -> Captured:
        """Of a picture that is shown at `now`, in monotonic seconds."""
        if not self._early:  # each amount once, in any order: their mean is right from the start
            self._early = self._chance.sample(range(EARLY_MS), EARLY_MS)
        at_ms = int(now * 1000) - self._early.pop()
        self._last_ms = max(self._last_ms + 1, at_ms)
        return Captured(self._last_ms * 1000 + 500, self._last_ms * TICKS_PER_MS % WRAP)
