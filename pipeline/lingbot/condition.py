"""The image condition y of every chunk, from one encoding of the start image. SPEC §2.3."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.lingbot.config import CONDITION_CHANNELS, TEMPORAL_STRIDE
from pipeline.lingbot.vae import VAE

MASK_CHANNELS = 4
PREFIX_LATENTS = 30  # latent n sees video frames 4n−112 … 4n: from 29 on the image is out of sight


@dataclass(frozen=True)
class ImagePrefix:
    """What an image conditions: its video's first latents, the last of which stands for all later.

    A session keeps this alone; the encoder's caches are gone once it is made.
    """

    latents: Tensor  # [16, n, h, w]

    def condition(self, start: int, frames: int) -> Tensor:
        """The condition y [20, F, h, w] of latent frames `start` … `start + frames − 1`.

        Mask channels come first: 1 on the very first latent, 0 elsewhere.
        """
        at = torch.arange(start, start + frames).clamp(max=self.latents.shape[1] - 1)
        shape = (CONDITION_CHANNELS, frames, *self.latents.shape[2:])
        y = self.latents.new_zeros(shape)
        y[MASK_CHANNELS:] = self.latents[:, at.to(self.latents.device)]
        if start == 0 and frames:
            y[:MASK_CHANNELS, 0] = 1
        return y


def encode_prefix(vae: VAE, image: Tensor, latents: int = PREFIX_LATENTS) -> ImagePrefix:
    """Image [3, H, W] followed by zero frames (mid grey, not black) → its condition latents.

    The default serves a session of any length. The video is encoded latent by latent, so memory
    does not grow with their number.
    """
    frame = image[None, :, None]
    grey = frame.new_zeros((1, 3, TEMPORAL_STRIDE, *image.shape[1:]))
    encoded, state = vae.encode(frame)
    parts = [encoded]
    for _ in range(latents - 1):
        encoded, state = vae.encode(grey, state)
        parts.append(encoded)
    return ImagePrefix(torch.cat(parts, dim=2)[0])
