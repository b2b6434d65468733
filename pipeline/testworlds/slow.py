"""The slow world: the marker's pictures, and stages that take as long as they are told.

A stage waits like a host thread waits for a GPU (without the interpreter lock, without a core), or
with `busy` keeps a core at work, also without the lock. At chunk `stall_at` of every session,
`stall_stage` takes `stall_seconds` longer, once a session.
"""

from __future__ import annotations

import hashlib
import time
from typing import Final

from pipeline.options import require
from pipeline.testworlds.base import STAGES, DrawnWorld, Format, Sketch, Work
from pipeline.testworlds.marker import paint

MATTER: Final = bytes(1 << 18)  # hashing it lets go of the interpreter lock, about 0.2 ms a time


def taking(seconds: float, busy: bool, stall_at: int, stall_seconds: float) -> Work:
    """Return work that takes `seconds`, and `stall_seconds` more at chunk `stall_at`."""

    def work(index: int) -> None:
        length = seconds + (stall_seconds if index == stall_at else 0.0)
        if not busy:
            time.sleep(length)
            return
        end = time.perf_counter() + length
        while time.perf_counter() < end:
            hashlib.sha256(MATTER)

    return work


def make_world(
    encode_ms: float = 5.0,
    denoise_ms: float = 60.0,
    decode_ms: float = 40.0,
    busy: bool = False,
    stall_at: int = -1,
    stall_seconds: float = 0.0,
    stall_stage: str = "denoise",
    fps: float = 16.0,
    width: int = 256,
    height: int = 160,
    frames_per_chunk: int = 4,
) -> DrawnWorld:
    """Build the slow world."""
    times = {"encode": encode_ms, "denoise": denoise_ms, "decode": decode_ms}
    for stage, milliseconds in times.items():
        require(f"{stage}_ms", milliseconds, 0 <= milliseconds <= 600_000, "0 to 600000")
    require("stall_seconds", stall_seconds, 0 <= stall_seconds <= 600, "0 to 600")
    require("stall_stage", stall_stage, stall_stage in STAGES, "encode, denoise or decode")
    work = {
        stage: taking(
            milliseconds / 1e3, busy, stall_at if stage == stall_stage else -1, stall_seconds
        )
        for stage, milliseconds in times.items()
    }
    shape = Format(width, height, fps, frames_per_chunk)
    about = "A test picture whose making takes as long as it is told."
    return DrawnWorld(Sketch("slow", "Slow", about, paint, shape), work)
