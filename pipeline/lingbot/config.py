"""Shapes of LingBot-World-Fast: the published ones by default, tiny ones for tests.

No `config.json` is needed: what the weights' shapes tell is read from them, the rest is constant
(SPEC §6). Sizes are in latent frames, latent pixels and tokens, as named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.lingbot.errors import LingBotError

Shapes = Mapping[str, tuple[int, ...]]

PATCH = 2  # tokens are 2x2 latent pixels, one latent frame deep
SPATIAL_STRIDE = 8  # pixels per latent pixel
TEMPORAL_STRIDE = 4  # video frames per latent frame, but the first latent is one frame
HEAD_DIM = 128  # of every published size; only tiny test models have another one
CAM_CHANNELS, ACT_CHANNELS = 384, 448  # control = "cam" (6 · 64) or "act" (7 · 64)
NOISY_CHANNELS, CONDITION_CHANNELS = 16, 20  # 20 = 4 mask + 16 latent
AREA = 480 * 832
FPS = 16.0
CHUNK = 3  # latent frames


@dataclass(frozen=True)
class DiTConfig:
    """The causal DiT; defaults are the released 14B shape."""

    dim: int = 5120
    ffn_dim: int = 13824
    layers: int = 40
    heads: int = 40
    in_dim: int = 36
    out_dim: int = 16
    text_dim: int = 4096
    text_len: int = 512
    freq_dim: int = 256
    control_channels: int = CAM_CHANNELS
    eps: float = 1e-6

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.dim // self.heads


LATENT_MEAN = (
    -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
    0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921,
)  # fmt: skip
LATENT_STD = (
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
    3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160,
)  # fmt: skip


@dataclass(frozen=True)
class VAEConfig:
    """The Wan2.1 VAE; defaults are the published shape."""

    dim: int = 96
    z_dim: int = 16
    mult: tuple[int, ...] = (1, 2, 4, 4)
    res_blocks: int = 2
    temporal: tuple[bool, ...] = (False, True, True)  # which downsamplings halve time
    mean: tuple[float, ...] = LATENT_MEAN
    std: tuple[float, ...] = LATENT_STD


@dataclass(frozen=True)
class UMT5Config:
    """The UMT5 encoder; defaults are UMT5-XXL."""

    vocab: int = 256384
    dim: int = 4096
    attn_dim: int = 4096
    ffn_dim: int = 10240
    heads: int = 64
    layers: int = 24
    buckets: int = 32


def infer_dit(shapes: Shapes, heads: int | None = None, text_len: int = 512) -> DiTConfig:
    """The config that a DiT state dict of these shapes belongs to.

    The control kind follows from the control weight's width, 1536 or 1792 (SPEC §3), never from a
    path. `heads` and `text_len` leave no trace in the shapes: heads of 128 and 512 tokens are the
    published constants.

    Raises:
        LingBotError: a tensor that tells the shape is absent or has another rank.
    """
    patch = _shape(shapes, "patch_embedding.weight", 5)
    control = _shape(shapes, "patch_embedding_wancamctrl.weight", 2)
    text = _shape(shapes, "text_embedding.0.weight", 2)
    time = _shape(shapes, "time_embedding.0.weight", 2)
    head = _shape(shapes, "head.head.weight", 2)
    ffn = _shape(shapes, "blocks.0.ffn.0.weight", 2)
    if heads is None and patch[0] % HEAD_DIM:
        raise LingBotError(f"dim {patch[0]} is no multiple of {HEAD_DIM}: give heads=")
    if patch[1] != NOISY_CHANNELS + CONDITION_CHANNELS:
        raise LingBotError(f"it takes {patch[1]} input channels, not 36: no image-to-video model")
    if control[1] // PATCH**2 not in (CAM_CHANNELS, ACT_CHANNELS):
        raise LingBotError(f"its control has {control[1]} features, not 1536 (cam) or 1792 (act)")
    return DiTConfig(
        dim=patch[0],
        ffn_dim=ffn[0],
        layers=_layers(shapes),
        heads=heads or patch[0] // HEAD_DIM,
        in_dim=patch[1],
        out_dim=head[0] // PATCH**2,
        text_dim=text[1],
        text_len=text_len,
        freq_dim=time[1],
        control_channels=control[1] // PATCH**2,
    )


def infer_vae(shapes: Shapes) -> VAEConfig:
    """The config of a Wan2.1 VAE state dict: only its width is free."""
    return VAEConfig(dim=_shape(shapes, "encoder.conv1.weight", 5)[0])


def infer_umt5(shapes: Shapes) -> UMT5Config:
    """The config of a UMT5 encoder state dict in the published Wan keys."""
    vocab, dim = _shape(shapes, "token_embedding.weight", 2)
    buckets, heads = _shape(shapes, "blocks.0.pos_embedding.embedding.weight", 2)
    return UMT5Config(
        vocab=vocab,
        dim=dim,
        attn_dim=_shape(shapes, "blocks.0.attn.q.weight", 2)[0],
        ffn_dim=_shape(shapes, "blocks.0.ffn.fc1.weight", 2)[0],
        heads=heads,
        layers=_layers(shapes),
        buckets=buckets,
    )


def latent_size(height: int, width: int, area: int = AREA) -> tuple[int, int]:
    """Latent rows and columns for an image of any size: its aspect at about `area` pixels.

    SPEC §1: the float formula decides, not arithmetic on paper: 480x832 gives 58 rows, not 60.

    >>> latent_size(480, 832), latent_size(1080, 1920), latent_size(512, 512)
    ((58, 104), (58, 104), (78, 78))
    """
    aspect = height / width
    rows, columns = math.sqrt(area * aspect), math.sqrt(area / aspect)
    return tuple(int(side // SPATIAL_STRIDE // PATCH * PATCH) for side in (rows, columns))  # type: ignore[return-value]


def frame_tokens(latent_hw: tuple[int, int]) -> int:
    """Tokens of one latent frame."""
    return latent_hw[0] * latent_hw[1] // PATCH**2


def latent_frames(video_frames: int, chunk: int = CHUNK) -> int:
    """Latents that the reference makes of a wanted video length: truncated DOWN to whole chunks.

    SPEC §1. `video_frames` is first rounded down to 4n+1; fewer than one chunk gives 0.

    >>> latent_frames(81), latent_frames(57), latent_frames(8)
    (21, 15, 0)
    """
    frames = max(video_frames - 1, 0) // TEMPORAL_STRIDE + 1
    return frames - frames % chunk


def video_frames(latents: int, first: bool = True) -> int:
    """Video frames of `latents` latent frames; the `first` latent of a stream is one frame."""
    return TEMPORAL_STRIDE * latents - (TEMPORAL_STRIDE - 1 if first and latents else 0)


def _shape(shapes: Shapes, key: str, rank: int) -> tuple[int, ...]:
    shape = shapes.get(key)
    if shape is None or len(shape) != rank:
        raise LingBotError(f"tensor {key} should have rank {rank}, it is {shape or 'absent'}")
    return shape


def _layers(shapes: Shapes) -> int:
    return 1 + max((int(k.split(".")[1]) for k in shapes if k.startswith("blocks.")), default=-1)
