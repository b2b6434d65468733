"""The few-step schedule and the noise of a session. SPEC §2.2.

A step turns the model's flow into x0 and, unless it is the last, x0 into the next noisy input.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

TRAIN_STEPS = 1000
SHIFT = 10.0
FAST_INDICES = (0, 179, 358, 679)  # four calls per chunk
COMMIT_TIMESTEP = 0  # clean latents enter the KV cache at t = 0


@dataclass(frozen=True)
class Step:
    """One sampling call: the model's integer timestep, and the sigmas looked up by it."""

    timestep: int
    sigma_x0: float
    sigma_noise: float


def schedule(shift: float = SHIFT) -> tuple[Tensor, Tensor]:
    """Sigmas float32 [1001] (the last is 0) and integer timesteps int64 [1000].

    SPEC §8.11: timesteps are truncated, not rounded, from the float64 sigmas.
    """
    smax = float(np.float32(0.999))
    base = np.linspace(smax, 0, TRAIN_STEPS + 1)[:-1]
    sigmas = shift * base / (1 + (shift - 1) * base)
    timesteps = torch.from_numpy((TRAIN_STEPS * sigmas).astype(np.int64))
    return torch.from_numpy(np.append(sigmas, 0).astype(np.float32)), timesteps


def few_steps(shift: float = SHIFT, indices: tuple[int, ...] = FAST_INDICES) -> tuple[Step, ...]:
    """The sampling calls of a chunk.

    SPEC §8.1: sigmas are looked up by the integer timestep, which has duplicates, and not by the
    index: the FIRST entry of that timestep makes x0, the SECOND (if there is one) adds noise.
    """
    sigmas, timesteps = schedule(shift)
    steps = []
    for index in indices:
        timestep = int(timesteps[index])
        same = (timesteps == timestep).nonzero().flatten().tolist()
        x0, noise = same[0], same[min(1, len(same) - 1)]
        steps.append(Step(timestep, float(sigmas[x0]), float(sigmas[noise])))
    return tuple(steps)


def to_x0(x: Tensor, flow: Tensor, step: Step) -> Tensor:
    """x0 = x − sigma·flow, in float64 and cast back (SPEC §8.13)."""
    return (x.double() - step.sigma_x0 * flow.double()).to(x.dtype)


def renoise(x0: Tensor, noise: Tensor, step: Step) -> Tensor:
    """The input of `step`: x0 with fresh N(0, 1) noise, in x0's dtype (SPEC §8.13)."""
    sigma = torch.tensor(step.sigma_noise, dtype=torch.float32, device=x0.device)
    return ((1 - sigma) * x0 + sigma * noise).to(x0.dtype)


@dataclass(frozen=True)
class ChunkNoise:
    """All noise of one chunk: its start [C, F, h, w] and one draw [C, F, h, w] per later step."""

    start: Tensor
    again: tuple[Tensor, ...]


@dataclass(frozen=True)
class NoiseCursor:
    """Where a session stands in its noise: a seed and a chunk index, no generator state.

    Every draw has a generator of its own, seeded by (seed, chunk, draw) on the CPU, so the noise
    of a chunk is the same on every device and whether the chunks before it were sampled or
    skipped. The reference draws from one sequential generator instead (`reference_noise`).
    """

    seed: int
    chunk: int = 0

    def draw(self, shape: tuple[int, int, int, int], steps: int) -> tuple[ChunkNoise, NoiseCursor]:
        """The noise of this chunk, float32 of `shape` (C, F, h, w), and the next cursor."""
        start, *again = (self._normal(index, shape) for index in range(steps))
        return ChunkNoise(start, tuple(again)), self.skipped()

    def skipped(self) -> NoiseCursor:
        """The cursor after this chunk, as if it had been sampled."""
        return replace(self, chunk=self.chunk + 1)

    def _normal(self, draw: int, shape: tuple[int, ...]) -> Tensor:
        key = f"{self.seed}/{self.chunk}/{draw}".encode()
        digest = hashlib.blake2b(key, digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
        return torch.randn(shape, generator=generator)


def reference_noise(
    seed: int, shape: tuple[int, int, int, int], chunk: int, steps: int
) -> tuple[ChunkNoise, ...]:
    """The reference's draws for a video of `shape` (C, F, h, w), in its order, on the CPU.

    All start noise at once, then from the same generator one draw per chunk and later step. A
    CUDA generator gives other numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    video = torch.randn(shape, generator=generator)
    starts = [video[:, i : i + chunk] for i in range(0, shape[1], chunk)]
    return tuple(
        ChunkNoise(s, tuple(torch.randn(s.shape, generator=generator) for _ in range(steps - 1)))
        for s in starts
    )
