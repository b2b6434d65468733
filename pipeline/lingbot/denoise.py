"""One chunk of latents: the sampling calls, then the pass at t = 0 that the future will see."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pipeline.lingbot.dit import CameraModulation, DiT, TextKV
from pipeline.lingbot.kv_cache import KVCache
from pipeline.lingbot.sampler import (
    COMMIT_TIMESTEP,
    ChunkNoise,
    NoiseCursor,
    Step,
    few_steps,
    renoise,
    to_x0,
)


@dataclass(frozen=True)
class Reuse:
    """What is computed once although five calls need it. Results are the same on or off."""

    text: bool = True  # cross-attention keys and values, once a prompt
    camera: bool = True  # scale and shift of every layer, once a chunk (3.7 GB bf16 at 464x832)
    short_commit: bool = True  # the commit ends once its last keys and values are written


@dataclass(frozen=True)
class Text:
    """A prompt as the model sees it: its context [n, D] and, once made, all cross keys and values.

    A new prompt in mid-session is a new `Text`; the self-attention cache stays as it is.
    """

    context: Tensor
    kv: tuple[TextKV, ...] | None = None

    @classmethod
    def of(cls, dit: DiT, context: Tensor, reuse: Reuse | None = None) -> Text:
        """The text for `dit`, with everything that is constant for the prompt."""
        return cls(context, dit.embed_text(context) if (reuse or Reuse()).text else None)


@dataclass(frozen=True)
class DenoiseState:
    """All that denoising carries from chunk to chunk; the cache's buffers are written in place."""

    cache: KVCache
    text: Text
    noise: NoiseCursor


@dataclass(frozen=True)
class _Calls:
    """The model with all inputs of one chunk's calls that do not change between them."""

    dit: DiT
    text: Text
    control: Tensor | None  # [1, C, F, h, w]
    camera: tuple[CameraModulation, ...] | None
    y: Tensor  # [1, 20, F, h, w]
    cache: KVCache
    reuse: Reuse

    def flow(self, x: Tensor, timestep: int) -> Tensor:
        """Latents x [16, F, h, w] → flow, as x."""
        return self.dit(x[None], self.y, self._t(timestep, x), *self._given(), self.cache)[0]

    def commit(self, x: Tensor) -> None:
        """Write clean latents x [16, F, h, w] into the cache."""
        t = self._t(COMMIT_TIMESTEP, x)
        call = self.dit.commit if self.reuse.short_commit else self.dit
        call(x[None], self.y, t, *self._given(), self.cache)

    def _t(self, timestep: int, x: Tensor) -> Tensor:
        return torch.tensor([float(timestep)], device=x.device)

    def _given(self) -> tuple[tuple[TextKV, ...], tuple[CameraModulation, ...] | None]:
        text = self.text.kv or self.dit.embed_text(self.text.context)
        if self.camera is None and self.control is not None:
            return text, self.dit.embed_camera(self.control)
        return text, self.camera


def denoise_chunk(
    dit: DiT,
    state: DenoiseState,
    y: Tensor,
    control: Tensor | None,
    steps: tuple[Step, ...] | None = None,
    *,
    known: Tensor | None = None,
    noise: ChunkNoise | None = None,
    reuse: Reuse | None = None,
) -> tuple[Tensor, DenoiseState]:
    """Condition y [20, F, h, w] and control [1, C, F, h, w] → clean latents [16, F, h, w], state.

    With the `known` latents of this chunk nothing is sampled: only the commit pass runs and the
    noise cursor moves on, so that later chunks equal a run that sampled it, bit for bit. `noise`
    stands in for the session's own. A chunk that fails on the way leaves the cache unusable.

    Raises:
        BadWindow: the cache has no room for a chunk of this length.
    """
    steps, reuse = steps or few_steps(), reuse or Reuse()
    frames = y.shape[1]
    cache = state.cache.opened(frames)
    camera = dit.embed_camera(control) if control is not None and reuse.camera else None
    calls = _Calls(dit, state.text, control, camera, y[None], cache, reuse)
    cursor = state.noise.skipped()
    if known is None:
        if noise is None:
            shape = (dit.config.out_dim, frames, y.shape[2], y.shape[3])
            noise, cursor = state.noise.draw(shape, len(steps))
        known = _sampled(calls, noise, steps)
    calls.commit(known)
    return known, replace(state, cache=cache, noise=cursor)


def _sampled(calls: _Calls, noise: ChunkNoise, steps: tuple[Step, ...]) -> Tensor:
    device = calls.y.device
    x = noise.start.to(device)
    for i, step in enumerate(steps):
        if i > 0:
            x = renoise(x, noise.again[i - 1].to(device), step)
        x = to_x0(x, calls.flow(x, step.timestep), step)
    return x
