"""How fast the world runs here, measured by walking around, and the frame rate that follows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.service import ControlSnapshot, Emit, SessionPolicy, StageExecutor
from pipeline.tiny.networks import FRAMES_PER_LATENT

RATES: Final = (32.0, 24.0, 16.0)  # frames per second, best first
MOST_COMPUTE: Final = 0.45  # of a chunk's duration, at the 95th percentile
UNCOUNTED, CHUNKS = 4, 20  # the first few chunks still fill caches
WALK: Final = ("KeyW", "KeyW KeyL", "KeyL", "KeyK", "KeyW KeyJ", "KeyI", "KeyD", "KeyJ", "", "KeyS")


@dataclass(frozen=True)
class Speed:
    """Seconds that one chunk takes, control to last frame."""

    median_seconds: float
    p95_seconds: float

    @staticmethod
    def of(seconds: Sequence[float]) -> Speed:
        """Summarise measured chunks."""
        ordered = sorted(seconds)
        last = len(ordered) - 1
        return Speed(ordered[last // 2], ordered[round(0.95 * last)])

    def factor(self, fps: float) -> float:
        """Return the compute factor at a frame rate: compute time ÷ duration of a chunk."""
        return self.p95_seconds * fps / FRAMES_PER_LATENT


def best_rate(speed: Speed) -> float:
    """Return the highest rate that leaves enough time; the lowest if none does."""
    return next((fps for fps in RATES if speed.factor(fps) <= MOST_COMPUTE), RATES[-1])


class Walker:
    """Plays one session through the stages, chunk by chunk, on the calling thread."""

    def __init__(self, stages: Mapping[str, StageExecutor], policy: SessionPolicy) -> None:
        """Open the session."""
        self._stages, self._policy = stages, policy
        openings = policy.openings()
        self._states = {name: stage.open(openings.get(name)) for name, stage in stages.items()}
        self._index = 0

    def chunk(self) -> float:
        """Play the next chunk; return the seconds from control to last frame."""
        held = frozenset(WALK[self._index % len(WALK)].split())
        values = dict(self._policy.conditions(self._index))
        self._run("encode", values, _drop)
        values |= self._policy.bind(self._index, ControlSnapshot(held))
        began = time.perf_counter()
        self._run("denoise", values, _drop)
        self._run("decode", values, _drop)
        self._index += 1
        return time.perf_counter() - began

    def _run(self, name: str, values: dict[str, object], emit: Emit) -> None:
        outputs, self._states[name] = self._stages[name].run(self._states[name], values, emit)
        values |= outputs

    def close(self) -> None:
        """Release the session."""
        for name, stage in self._stages.items():
            stage.release(self._states[name])


def _drop(artifact: str, piece: object) -> None:
    """Let a piece go."""
