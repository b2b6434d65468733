"""The causal diffusion transformer of LingBot-World-Fast. SPEC §2.

What is unusual about it: there is no attention mask, causality comes from running chunk by chunk
over a `KVCache`; the camera modulates each layer between self-attention and cross-attention; the
text's padding is attended; the head is modulated by e, the layers by its projection e0.

Axes: B batch, C channels, F latent frames, h w latent rows and columns, N tokens of the call
(frame-major, then rows, then columns: N = F·h/2·w/2), M tokens attended, D width, H heads, T text.
Weights may be bf16: linears run in their weight's dtype, while the residual stream becomes float32
at its first gated addition, as do modulation and norms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from pipeline.lingbot.attention import Attend, sdpa
from pipeline.lingbot.config import PATCH, DiTConfig
from pipeline.lingbot.errors import LingBotError
from pipeline.lingbot.kv_cache import KVCache, LayerKV
from pipeline.lingbot.rope import rotate, rotation, timestep_sinusoid


class TextKV(NamedTuple):
    """One layer's cross-attention keys and values, constant for a prompt: [B, T, H, D]."""

    keys: Tensor
    values: Tensor


class CameraModulation(NamedTuple):
    """One layer's camera scale (1 + scale) and shift, constant for a chunk: [B, N, D]."""

    scale: Tensor
    shift: Tensor


class Module(nn.Module):
    """A module whose call returns one tensor."""

    __call__: Callable[..., Tensor]


class Linear(nn.Linear):
    """A linear layer that takes any float dtype and answers in its weight's."""

    __call__: Callable[..., Tensor]

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] → [..., out]."""
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


class RMSNorm(Module):
    """Root-mean-square norm over the last axis, in float32, scaled in the weight's dtype."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] → the same."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return wide.type_as(x) * self.weight


class LayerNorm(Module):
    """Layer norm in float32, with or without weights, answering in the input's dtype."""

    def __init__(self, dim: int, eps: float, affine: bool = False) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight = nn.Parameter(torch.ones(dim)) if affine else None
        self.bias = nn.Parameter(torch.zeros(dim)) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] → the same."""
        weight, bias = (p if p is None else p.float() for p in (self.weight, self.bias))
        return F.layer_norm(x.float(), (self.dim,), weight, bias, self.eps).type_as(x)


class Attention(Module):
    """Projections of self- and cross-attention alike; q and k are normed over ALL of D."""

    def __init__(self, config: DiTConfig, attend: Attend) -> None:
        super().__init__()
        self.heads, self.attend = config.heads, attend
        self.q, self.k = Linear(config.dim, config.dim), Linear(config.dim, config.dim)
        self.v, self.o = Linear(config.dim, config.dim), Linear(config.dim, config.dim)
        self.norm_q = RMSNorm(config.dim, config.eps)  # SPEC §8.10: before the head split
        self.norm_k = RMSNorm(config.dim, config.eps)

    def query(self, x: Tensor) -> Tensor:
        """Tokens x [B, N, D] → q [B, N, H, D/H]."""
        return self._split(self.norm_q(self.q(x)))

    def key_value(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens x [B, N, D] → k, v [B, N, H, D/H]; v is plain."""
        return self._split(self.norm_k(self.k(x))), self._split(self.v(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], self.heads, -1)


class SelfAttention(Attention):
    """Attention over the chunk itself, both ways in time, and everything cached before it."""

    def forward(self, x: Tensor, turn: Tensor, past: LayerKV | None) -> Tensor:
        """Tokens x [B, N, D], turn [2, N, D/2H] → as x; writes their k, v into `past`."""
        q, k, v = rotate(self.query(x), turn), *self.rotated(x, turn)
        if past is not None:
            past.put(k, v)
            k, v = past.seen()
        return self.o(self.attend(q, k.type_as(q), v.type_as(q)).flatten(-2))

    def rotated(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
        """The k, v that the cache keeps: keys after norm and rotation (SPEC §8.5)."""
        k, v = self.key_value(x)
        return rotate(k, turn), v


class CrossAttention(Attention):
    """Attention over the text: no rotation and no mask, padded rows are attended (SPEC §8.2)."""

    def forward(self, x: Tensor, text: TextKV) -> Tensor:
        """Tokens x [B, N, D] → as x."""
        q = self.query(x)
        return self.o(self.attend(q, text.keys, text.values).flatten(-2))


class Block(Module):
    """One layer."""

    def __init__(self, config: DiTConfig, attend: Attend) -> None:
        super().__init__()
        dim = config.dim
        self.modulation = nn.Parameter(torch.randn(1, 6, dim) / dim**0.5)
        self.norm1 = LayerNorm(dim, config.eps)
        self.self_attn = SelfAttention(config, attend)
        self.norm3 = LayerNorm(dim, config.eps, affine=True)
        self.cross_attn = CrossAttention(config, attend)
        self.norm2 = LayerNorm(dim, config.eps)
        self.ffn = nn.Sequential(
            Linear(dim, config.ffn_dim), nn.GELU(approximate="tanh"), Linear(config.ffn_dim, dim)
        )
        self.cam_injector_layer1, self.cam_injector_layer2 = Linear(dim, dim), Linear(dim, dim)
        self.cam_scale_layer, self.cam_shift_layer = Linear(dim, dim), Linear(dim, dim)

    def forward(
        self,
        x: Tensor,
        e0: Tensor,
        turn: Tensor,
        text: TextKV,
        camera: CameraModulation | None,
        past: LayerKV | None,
    ) -> Tensor:
        """Tokens x [B, N, D], e0 [B, 1 or N, 6, D] → as x, in float32.

        SPEC §8.3: the camera comes AFTER self-attention and BEFORE cross-attention.
        """
        shift, scale, gate, ffn_shift, ffn_scale, ffn_gate = self.modulated(e0)
        x = x + gate * self.self_attn(self.norm1(x) * (1 + scale) + shift, turn, past)
        if camera is not None:
            x = camera.scale * x + camera.shift
        x = x + self.cross_attn(self.norm3(x), text)  # no modulation, no gate
        ffn: Tensor = self.ffn(self.norm2(x) * (1 + ffn_scale) + ffn_shift)
        return x + ffn_gate * ffn

    def modulated(self, e0: Tensor) -> tuple[Tensor, ...]:
        """The six vectors [B, 1 or N, D] of e0 with this layer's own added."""
        return (self.modulation.unsqueeze(1) + e0).unbind(2)

    def write(self, x: Tensor, e0: Tensor, turn: Tensor, past: LayerKV) -> None:
        """Only what a commit leaves behind in the last layer: its keys and values."""
        shift, scale, *_ = self.modulated(e0)
        past.put(*self.self_attn.rotated(self.norm1(x) * (1 + scale) + shift, turn))

    def camera(self, p: Tensor) -> CameraModulation:
        """Camera tokens p [B, N, D] → this layer's modulation, from the control alone."""
        h = self.cam_injector_layer2(F.silu(self.cam_injector_layer1(p))) + p
        return CameraModulation(1 + self.cam_scale_layer(h), self.cam_shift_layer(h))


class Head(Module):
    """Norm, modulation by e itself (SPEC §8.12) and the last linear layer."""

    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.norm = LayerNorm(config.dim, config.eps)
        self.head = Linear(config.dim, config.out_dim * PATCH**2)
        self.modulation = nn.Parameter(torch.randn(1, 2, config.dim) / config.dim**0.5)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        """Tokens x [B, N, D], e [B, 1 or N, D] → [B, N, 4·C]."""
        shift, scale = (self.modulation.unsqueeze(1) + e.unsqueeze(2)).unbind(2)
        return self.head(self.norm(x) * (1 + scale) + shift)


class DiT(Module):
    """The whole model; holds weights only. A session's state is its `KVCache` and `TextKV`s."""

    def __init__(self, config: DiTConfig, attend: Attend = sdpa) -> None:
        super().__init__()
        self.config = config
        dim = config.dim
        patch = (1, PATCH, PATCH)
        self.patch_embedding = nn.Conv3d(config.in_dim, dim, patch, stride=patch)
        self.patch_embedding_wancamctrl = Linear(config.control_channels * PATCH**2, dim)
        self.c2ws_hidden_states_layer1, self.c2ws_hidden_states_layer2 = (
            Linear(dim, dim),
            Linear(dim, dim),
        )
        self.text_embedding = nn.Sequential(
            Linear(config.text_dim, dim), nn.GELU(approximate="tanh"), Linear(dim, dim)
        )
        self.time_embedding = nn.Sequential(
            Linear(config.freq_dim, dim), nn.SiLU(), Linear(dim, dim)
        )
        self.time_projection = nn.Sequential(nn.SiLU(), Linear(dim, 6 * dim))
        self.blocks = nn.ModuleList(Block(config, attend) for _ in range(config.layers))
        self.head = Head(config)

    def embed_text(self, context: Tensor) -> tuple[TextKV, ...]:
        """Context [n, text_dim] of one prompt, n ≤ text_len → every layer's keys and values.

        SPEC §8.2: padded with zero rows to text_len, and all of them are attended.
        """
        if len(context) > self.config.text_len:
            raise LingBotError(f"{len(context)} text tokens, at most {self.config.text_len} fit")
        rows = F.pad(context, (0, 0, 0, self.config.text_len - len(context)))
        embedded = self.text_embedding(rows[None])
        return tuple(TextKV(*block.cross_attn.key_value(embedded)) for block in self._layers())

    def embed_camera(self, control: Tensor) -> tuple[CameraModulation, ...]:
        """Control [B, C, F, h, w] of a chunk → every layer's modulation (SPEC §8.3: not scaled)."""
        p = self.patch_embedding_wancamctrl(patchify(control))
        p = p + self.c2ws_hidden_states_layer2(F.silu(self.c2ws_hidden_states_layer1(p)))
        return tuple(block.camera(p) for block in self._layers())

    def forward(
        self,
        x: Tensor,
        y: Tensor,
        t: Tensor,
        text: tuple[TextKV, ...],
        camera: tuple[CameraModulation, ...] | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Noisy latents x [B, 16, F, h, w] and condition y [B, 20, F, h, w] → flow, as x, float32.

        t [B], or [B, N] for a timestep a token, counts 0..999. With a `cache` opened for F frames,
        the chunk's places in it are overwritten; without one, the call sees itself only.
        """
        tokens, e, e0, turn, past = self._entered(x, y, t, cache)
        for i, block in enumerate(self._layers()):
            tokens = block(
                tokens, e0, turn, text[i], camera and camera[i], past[i] if past else None
            )
        f, h, w = x.shape[2], x.shape[3] // PATCH, x.shape[4] // PATCH
        return unpatchify(self.head(tokens, e).float(), (f, h, w))

    def commit(
        self,
        x: Tensor,
        y: Tensor,
        t: Tensor,
        text: tuple[TextKV, ...],
        camera: tuple[CameraModulation, ...] | None,
        cache: KVCache,
    ) -> None:
        """`forward` for its effect on the cache alone: ends when the last layer has written."""
        tokens, _, e0, turn, past = self._entered(x, y, t, cache)
        assert past is not None
        *layers, last = self._layers()
        for i, block in enumerate(layers):
            tokens = block(tokens, e0, turn, text[i], camera and camera[i], past[i])
        last.write(tokens, e0, turn, past[-1])

    def _entered(
        self, x: Tensor, y: Tensor, t: Tensor, cache: KVCache | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, list[LayerKV] | None]:
        """Tokens [B, N, D], e [B, 1 or N, D], e0 [B, 1 or N, 6, D], rotary turn, layers' caches."""
        conv = self.patch_embedding
        grid = (x.shape[2], x.shape[3] // PATCH, x.shape[4] // PATCH)
        tokens = conv(torch.cat([x, y], dim=1).to(conv.weight.dtype)).flatten(2).transpose(1, 2)
        t = t if t.ndim == 2 else t[:, None]
        e = self.time_embedding(timestep_sinusoid(t, self.config.freq_dim).float())
        e0 = self.time_projection(e).reshape(*e.shape[:-1], 6, -1)
        start = 0 if cache is None else cache.cursor.start_frame(cache.window)
        turn = rotation(grid, start, self.config.head_dim, x.device)
        return tokens, e, e0, turn, None if cache is None else cache.layers()

    def _layers(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]


def keep_float32(dit: DiT) -> DiT:
    """Give the time MLPs and the head float32 weights again, as the reference computes them."""
    for module in (dit.time_embedding, dit.time_projection, dit.head):
        module.float()
    return dit


def compile_blocks(dit: DiT, backend: str = "inductor") -> DiT:
    """Compile the layers, which share one graph; the first calls then take minutes at real size."""
    for block in dit.blocks:
        block.compile(backend=backend, dynamic=None)
    return dit


def patchify(x: Tensor) -> Tensor:
    """[B, C, F, h, w] → tokens [B, N, C·4], channel outermost: (c, row, column)."""
    b, c, f, h, w = x.shape
    x = x.reshape(b, c, f, h // PATCH, PATCH, w // PATCH, PATCH)
    return x.permute(0, 2, 3, 5, 1, 4, 6).reshape(b, f * (h // PATCH) * (w // PATCH), -1)


def unpatchify(x: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """Tokens [B, N, 4·C] of `grid` (F, h/2, w/2) → [B, C, F, h, w].

    SPEC §8.4: the other way round than `patchify`, channel INNERMOST: (row, column, c).
    """
    b, f, h, w = len(x), *grid
    x = x.reshape(b, f, h, w, PATCH, PATCH, -1).permute(0, 6, 1, 2, 4, 3, 5)
    return x.reshape(b, -1, f, h * PATCH, w * PATCH)
