"""What a session remembers, and what passes between its stages.

Everything is frozen: to keep a state is to have a save point, to hand one on is a fork, and
`to_dict` / `from_dict` serialise it. All memory is a pose, a clock, unspent taps and a short
dissolve; the same state and the same controls always give the same pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.tiny.cells import CELLS_SHAPE
from pipeline.tiny.controls import NOTHING_UNSPENT, Seconds
from pipeline.tiny.motion import Player
from pipeline.tiny.networks import FRAMES_PER_LATENT

DISSOLVE_SECONDS = 0.75  # of media, from the start picture to the world


# ------------------------------------------------------------------ artifacts
@dataclass(frozen=True)
class ConditionRequest:
    """What encode is asked for: chunk 0 brings the start picture, uint8 [H, W, 3]."""

    picture: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Condition:
    """What encode answers: the start latent of chunk 0 as cells [H/2, W/2, 32], else nothing."""

    start: Tensor | None = None


@dataclass(frozen=True)
class Latent:
    """One latent: 4 frames of cells [4, H/2, W/2, 32], and a start latent to dissolve from."""

    frames: Tensor
    start: Tensor | None = None


# ------------------------------------------------------------------ states
@dataclass(frozen=True)
class DenoiseState:
    """All that denoise remembers of a session."""

    player: Player
    fps: float
    unspent: Seconds = NOTHING_UNSPENT  # seconds that taps still have to act, by key
    chunk: int = 0  # chunks made so far

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready content."""
        return {
            "player": self.player.to_list(),
            "fps": self.fps,
            "unspent": list(self.unspent),
            "chunk": self.chunk,
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> DenoiseState:
        """Rebuild from `to_dict`."""
        return DenoiseState(
            Player.from_list(content["player"]),
            float(content["fps"]),
            tuple(float(rest) for rest in content["unspent"]),
            int(content["chunk"]),
        )


@dataclass(frozen=True)
class DecodeState:
    """The streaming cache of decode: a start picture dissolves into the world."""

    fps: float
    start: Tensor | None = None  # [H/2, W/2, 32]; None without a picture or once dissolved
    frame: int = 0  # pictures made so far

    def share_of_start(self, frame: int) -> float:
        """Return how much of the start picture is left in the session's picture `frame`."""
        return max(0.0, 1 - (frame + 1) / (DISSOLVE_SECONDS * self.fps))

    def after(self, latent: Latent) -> DecodeState:
        """Return the state once the pictures of a latent are made."""
        start = self.start if latent.start is None else latent.start
        frame = self.frame + FRAMES_PER_LATENT
        dissolved = self.share_of_start(frame) == 0
        return DecodeState(self.fps, None if dissolved else start, frame)

    def to_dict(self) -> dict[str, Any]:
        """Return content with the start latent as float32 bytes, or None."""
        content = None if self.start is None else self.start.contiguous().numpy().tobytes()
        return {"fps": self.fps, "start": content, "frame": self.frame}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> DecodeState:
        """Rebuild from `to_dict`."""
        start = None
        if content["start"] is not None:
            numbers = np.frombuffer(content["start"], np.float32).copy()
            start = torch.from_numpy(numbers).reshape(CELLS_SHAPE)
        return DecodeState(float(content["fps"]), start, int(content["frame"]))
