"""The Wan2.1 video VAE, causal in time, so that it can run latent by latent. SPEC §4.

Every convolution over time keeps its last input frames. Those are this file's only state: each
module takes the `past` it was handed back before (None at stream start) and returns the next one,
so a stream's state is a tree of tensors in the shape of the model.

Axes: B batch, C channels, T frames (video, or latent frames in between), H W pixels of that level.
The first frame of a stream is special in time: it is one latent, later ones are four frames each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from pipeline.lingbot.config import TEMPORAL_STRIDE, VAEConfig
from pipeline.lingbot.errors import LingBotError

# A stream's state, of one module or of all: past frames, nothing yet, or what the parts keep.
State: TypeAlias = "Tensor | tuple[State, ...] | None"


class Causal(nn.Module):
    """A module that runs along a stream: (x, past) → (y, next past)."""

    __call__: Callable[..., tuple[Tensor, State]]


class CausalConv3d(nn.Conv3d):
    """3x3x3 (or 3x1x1) convolution that sees two frames back and none ahead."""

    __call__: Callable[..., tuple[Tensor, State]]

    def __init__(self, inputs: int, outputs: int, kernel: tuple[int, int, int]) -> None:
        super().__init__(inputs, outputs, kernel, padding=(0, kernel[1] // 2, kernel[2] // 2))

    def forward(  # type: ignore[override]  # a convolution along a stream takes its past too
        self, x: Tensor, past: State
    ) -> tuple[Tensor, State]:
        """Frames x [B, C, T, H, W]; `past` [B, C, 2, H, W], zeros where the stream began."""
        back = self.kernel_size[0] - 1
        if past is None:
            past = x.new_zeros((*x.shape[:2], back, *x.shape[3:]))
        x = torch.cat((_frames(past), x), dim=2)
        return super().forward(x), _kept(x, back)


class ChannelNorm(nn.Module):
    """Called RMS_norm in the keys: unit length over channels, times √C and gamma; no eps inside."""

    __call__: Callable[..., Tensor]

    def __init__(self, channels: int, spatial_axes: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, *[1] * spatial_axes))

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, ...] → the same."""
        unit: Tensor = F.normalize(x, dim=1)
        scale: Tensor = len(self.gamma) ** 0.5 * self.gamma
        return unit * scale


class ResBlock(Causal):
    """Norm, SiLU, conv, twice, around a shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        kernel = (3, 3, 3)
        self.residual = nn.Sequential(
            ChannelNorm(inputs, 3),
            nn.SiLU(),
            CausalConv3d(inputs, outputs, kernel),
            ChannelNorm(outputs, 3),
            nn.SiLU(),
            nn.Identity(),  # a dropout in the published layout; keeps the next index
            CausalConv3d(outputs, outputs, kernel),
        )
        self.shortcut = nn.Conv3d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, past: State) -> tuple[Tensor, State]:
        """[B, C, T, H, W] → [B, C', T, H, W]."""
        y, past = run(self.residual, x, past)
        shortcut: Tensor = self.shortcut(x)
        return y + shortcut, past


class SpatialAttention(nn.Module):
    """One head within each frame."""

    __call__: Callable[..., Tensor]

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = ChannelNorm(channels, 2)
        self.to_qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, T, H, W] → the same; frames do not see each other."""
        b, c, t, h, w = x.shape
        frames = x.transpose(1, 2).reshape(b * t, c, h, w)
        q, k, v = self.to_qkv(self.norm(frames)).reshape(b * t, 3, c, h * w).mT.unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).mT.reshape(b * t, c, h, w)
        projected: Tensor = self.proj(y)
        return x + projected.reshape(b, t, c, h, w).transpose(1, 2)


class Downsample(Causal):
    """Half the height and width, and half the frames if `temporal`."""

    def __init__(self, channels: int, temporal: bool) -> None:
        super().__init__()
        # zeros to the right and at the bottom only
        pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.resample = nn.Sequential(pad, nn.Conv2d(channels, channels, 3, stride=2))
        self.time_conv = (
            nn.Conv3d(channels, channels, (3, 1, 1), stride=(2, 1, 1)) if temporal else None
        )

    def forward(self, x: Tensor, past: State) -> tuple[Tensor, State]:
        """[B, C, T, H, W] → [B, C, T or T/2, H/2, W/2]; `past` is the last frame."""
        x = _framewise(self.resample, x)
        if self.time_conv is None:
            return x, None
        if past is None:  # the very first frame passes through
            return x, _kept(x, 1)
        return self.time_conv(torch.cat((_frames(past), x), dim=2)), _kept(x, 1)


class Upsample(Causal):
    """Twice the height and width with half the channels; twice the frames before, if `temporal`."""

    def __init__(self, channels: int, temporal: bool) -> None:
        super().__init__()
        self.resample = nn.Sequential(
            nn.Upsample(scale_factor=(2.0, 2.0), mode="nearest-exact"),
            nn.Conv2d(channels, channels // 2, 3, padding=1),
        )
        self.time_conv = CausalConv3d(channels, 2 * channels, (3, 1, 1)) if temporal else None

    def forward(self, x: Tensor, past: State) -> tuple[Tensor, State]:
        """[B, C, T, H, W] → [B, C/2, T or 2T, 2H, 2W].

        SPEC §8.6: what stems from the first latent is neither doubled nor ever seen by the time
        convolution, which starts at the second latent with two ZERO frames behind it.
        """
        if self.time_conv is not None and past is None:
            past = x.new_zeros((*x.shape[:2], 2, *x.shape[3:]))
        elif self.time_conv is not None:
            x, past = self.time_conv(x, past)
            b, c, t, h, w = x.shape
            x = x.reshape(b, 2, c // 2, t, h, w)  # (first | second) halves → frames 2t, 2t+1
            x = x.permute(0, 2, 3, 1, 4, 5).reshape(b, c // 2, 2 * t, h, w)
        return _framewise(self.resample, x), past


class Encoder(Causal):
    """Video frames → 2z channels of latent moments, before the last 1x1x1 convolution."""

    def __init__(self, config: VAEConfig) -> None:
        super().__init__()
        widths = [config.dim * m for m in (1, *config.mult)]
        self.conv1 = CausalConv3d(3, widths[0], (3, 3, 3))
        layers: list[nn.Module] = []
        for level, (inputs, outputs) in enumerate(pairwise(widths)):
            layers += [
                ResBlock(inputs if i == 0 else outputs, outputs) for i in range(config.res_blocks)
            ]
            if level < len(config.temporal):
                layers.append(Downsample(outputs, config.temporal[level]))
        self.downsamples = nn.Sequential(*layers)
        self.middle = _middle(widths[-1])
        self.head = _head(widths[-1], 2 * config.z_dim)

    def forward(self, x: Tensor, past: State) -> tuple[Tensor, State]:
        """[B, 3, T, H, W] → [B, 2z, t, H/8, W/8]."""
        return run((self.conv1, self.downsamples, self.middle, self.head), x, past)


class Decoder(Causal):
    """Latents → video frames."""

    def __init__(self, config: VAEConfig) -> None:
        super().__init__()
        widths = [config.dim * m for m in (config.mult[-1], *reversed(config.mult))]
        self.conv1 = CausalConv3d(config.z_dim, widths[0], (3, 3, 3))
        self.middle = _middle(widths[0])
        layers: list[nn.Module] = []
        for level, (before, outputs) in enumerate(pairwise(widths)):
            inputs = before // 2 if level else before  # every upsampling halves the channels
            layers += [
                ResBlock(inputs if i == 0 else outputs, outputs)
                for i in range(config.res_blocks + 1)
            ]
            if level < len(config.temporal):
                layers.append(Upsample(outputs, config.temporal[::-1][level]))
        self.upsamples = nn.Sequential(*layers)
        self.head = _head(widths[-1], 3)

    def forward(self, x: Tensor, past: State) -> tuple[Tensor, State]:
        """[B, z, t, h, w] → [B, 3, T, 8h, 8w]."""
        return run((self.conv1, self.middle, self.upsamples, self.head), x, past)


class VAE(nn.Module):
    """Encoder and decoder with the latent normalisation; weights only, no stream in it."""

    def __init__(self, config: VAEConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.conv1 = nn.Conv3d(2 * config.z_dim, 2 * config.z_dim, 1)
        self.conv2 = nn.Conv3d(config.z_dim, config.z_dim, 1)

    def moments(self, video: Tensor, past: State) -> tuple[Tensor, Tensor, State]:
        """Video [B, 3, T, H, W] in −1..1 → raw mean and log variance [B, z, t, h, w], next state.

        At stream start T is 1+4k, and trailing frames beyond that are dropped as in the reference;
        later T is 4k. One call of the encoder per latent bounds the memory.

        Raises:
            LingBotError: T is not whole latents, in a stream that has begun.
        """
        frames, first = video.shape[2], past is None
        if frames < 1 or (not first and frames % TEMPORAL_STRIDE):
            raise LingBotError(f"{frames} frames are not {TEMPORAL_STRIDE} for each latent")
        parts = [video[:, :, :1]] if first else []
        for start in range(int(first), frames - TEMPORAL_STRIDE + 1, TEMPORAL_STRIDE):
            parts.append(video[:, :, start : start + TEMPORAL_STRIDE])
        outputs = []
        for part in parts:
            output, past = self.encoder(part, past)
            outputs.append(output)
        mean, logvar = self.conv1(torch.cat(outputs, dim=2)).chunk(2, dim=1)
        return mean, logvar, past

    def encode(self, video: Tensor, past: State = None) -> tuple[Tensor, State]:
        """As `moments`, → the normalised mean [B, z, t, h, w] and the next state."""
        mean, _, past = self.moments(video, past)
        return (mean - self._per_channel(self.config.mean)) / self._std(), past

    def decode(
        self, z: Tensor, past: State = None, per_call: int | None = 1
    ) -> tuple[Tensor, State]:
        """Normalised latents [B, z, t, h, w] → frames [B, 3, T, 8h, 8w], not yet clamped, state.

        T is 4t, or 4t−3 at stream start. `per_call` latents go through the decoder at once (None:
        all of them), except that the first of a stream always goes alone: results are equal, more
        at once is faster and takes more memory.
        """
        z = self.conv2(z * self._std() + self._per_channel(self.config.mean))
        alone = 1 if past is None else 0
        size = per_call or max(z.shape[2], 1)
        cuts = [0, *range(alone, z.shape[2], size), z.shape[2]]
        outputs = []
        for start, end in pairwise(cuts):
            if start < end:
                frames, past = self.decoder(z[:, :, start:end], past)
                outputs.append(frames)
        return torch.cat(outputs, dim=2), past

    def _per_channel(self, values: Sequence[float]) -> Tensor:
        weight = self.conv2.weight
        return torch.tensor(values, dtype=weight.dtype, device=weight.device)[:, None, None, None]

    def _std(self) -> Tensor:
        return self._per_channel(self.config.std)


def to_uint8(frames: Tensor) -> Tensor:
    """Decoded frames [B, 3, T, H, W] → uint8 [B, T, H, W, 3]; TRUNCATED as in the reference."""
    scaled = (frames.float().clamp(-1, 1) + 1) / 2 * 255
    return scaled.to(torch.uint8).permute(0, 2, 3, 4, 1).contiguous()


def run(
    layers: nn.Sequential | Sequence[nn.Module], x: Tensor, past: State
) -> tuple[Tensor, State]:
    """Run layers one after the other, each with its own part of the state."""
    pasts = past if isinstance(past, tuple) else (None,) * len(layers)
    nexts: list[State] = []
    for layer, own in zip(layers, pasts, strict=True):
        if isinstance(layer, Causal | CausalConv3d):
            x, own = layer(x, own)
        elif isinstance(layer, nn.Sequential):
            x, own = run(layer, x, own)
        else:
            x = layer(x)
        nexts.append(own)
    return x, tuple(nexts)


def state_tensors(state: State) -> list[Tensor]:
    """All tensors that a state holds, in the order in which convolutions are visited."""
    if isinstance(state, tuple):
        return [tensor for part in state for tensor in state_tensors(part)]
    return [] if state is None else [state]


def _frames(past: State) -> Tensor:
    assert isinstance(past, Tensor)
    return past


def _kept(x: Tensor, frames: int) -> Tensor:
    """A copy of the last frames: a view would keep all of x alive."""
    return x[:, :, -frames:].clone()


def _framewise(layer: nn.Module, x: Tensor) -> Tensor:
    """Apply a 2-D layer to every frame of [B, C, T, H, W]."""
    b, c, t, h, w = x.shape
    y: Tensor = layer(x.transpose(1, 2).reshape(b * t, c, h, w))
    return y.reshape(b, t, *y.shape[1:]).transpose(1, 2)


def _middle(channels: int) -> nn.Sequential:
    return nn.Sequential(
        ResBlock(channels, channels), SpatialAttention(channels), ResBlock(channels, channels)
    )


def _head(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        ChannelNorm(inputs, 3), nn.SiLU(), CausalConv3d(inputs, outputs, (3, 3, 3))
    )
