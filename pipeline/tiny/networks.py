"""The networks around the learned scene: encoder, decoder, and all weights together.

The method is deferred neural rendering (Thies, Zollhöfer, Nießner, 2019): learned textures are
sampled per pixel, composited in depth order and turned into colour by a convolutional decoder. This
is the plain form, which training uses; `renderer.py` plays the same weights faster.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pipeline.tiny import camera
from pipeline.tiny.scene import FEATURES, Scene

H, W = camera.HEIGHT, camera.WIDTH
FRAMES_PER_LATENT = 4
LATENT_CHANNELS = 4 * FEATURES  # a latent cell holds the features of 2 x 2 pixels
DRAFT_CHANNELS = 12  # the first three features of 2 x 2 pixels; the decoder adds to them


def _conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


def _start_small(conv: nn.Conv2d) -> None:
    """Let a convolution begin as a small correction."""
    nn.init.normal_(conv.weight, std=0.01)
    if conv.bias is not None:
        nn.init.zeros_(conv.bias)


class Encoder(nn.Module):
    """Pictures [n, 3, H, W] in 0..1 -> latent frames [n, 24, H/2, W/2]."""

    def __init__(self) -> None:
        """Create with fresh weights."""
        super().__init__()
        self.conv1, self.conv2 = _conv(DRAFT_CHANNELS, 32), _conv(32, LATENT_CHANNELS)
        _start_small(self.conv2)

    def forward(self, picture: Tensor) -> Tensor:
        """Encode; before training, the draft channels are the picture itself."""
        blocks = functional.pixel_unshuffle(picture, 2)
        rest: Tensor = self.conv2(functional.silu(self.conv1(blocks - 0.5)))
        return rest + functional.pad(blocks, (0, 0, 0, 0, 0, LATENT_CHANNELS - DRAFT_CHANNELS))


class Decoder(nn.Module):
    """Latent frames [n, 24, H/2, W/2] -> pictures [n, 3, H, W] in about 0..1."""

    def __init__(self, width: int = 32) -> None:
        """Create with fresh weights."""
        super().__init__()
        self.first, self.last = _conv(LATENT_CHANNELS, width), _conv(width, DRAFT_CHANNELS)
        self.mid1, self.mid2 = _conv(width, width), _conv(width, width)
        _start_small(self.last)

    def forward(self, latents: Tensor) -> Tensor:
        """Decode every frame on its own."""
        centred = (latents - 0.5).contiguous(memory_format=torch.channels_last)
        hidden = functional.silu(self.first(centred))
        hidden = hidden + self.mid2(functional.silu(self.mid1(hidden)))
        return functional.pixel_shuffle(
            self.last(functional.silu(hidden)) + latents[:, :DRAFT_CHANNELS], 2
        )


class Veldt(nn.Module):
    """All weights of the neural veldt."""

    def __init__(self) -> None:
        """Create with fresh weights."""
        super().__init__()
        self.encoder, self.scene, self.decoder = Encoder(), Scene(), Decoder()
        self.decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def latents(self, poses: NDArray[np.float64]) -> Tensor:
        """Return latent frames [n, 24, H/2, W/2] of poses [n, 5] (x, y, yaw, pitch, clock)."""
        return functional.pixel_unshuffle(self.scene(poses), 2)
