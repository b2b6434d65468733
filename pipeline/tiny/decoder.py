"""The decoder as it is played: the trained network, in bfloat16 where the processor multiplies it.

What bfloat16 changes is far below what the eye or the likeness to the truth can tell (74 dB against
the float32 decoder; the draft picture itself is added in float32), and it takes two thirds of the
time. Which of the two is used depends on the processor alone, so a machine always draws the same.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pipeline.tiny.networks import DRAFT_CHANNELS, Decoder


def multiplies_bfloat16() -> bool:
    """Return whether this processor has instructions for bfloat16 products."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    questions = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, question, bool)()) for question in questions)


class FastDecoder:
    """Decodes latent frames to pictures. Holds weights only."""

    def __init__(self, decoder: Decoder, precision: torch.dtype) -> None:
        """Take over the weights of a trained decoder."""
        self._precision = precision
        self._weights = [
            (
                conv.weight.to(precision).contiguous(memory_format=torch.channels_last),
                None if conv.bias is None else conv.bias.to(precision),
            )
            for conv in (decoder.first, decoder.mid1, decoder.mid2, decoder.last)
        ]

    def colours(self, latents: Tensor) -> Tensor:
        """Decode latent frames [n, 24, H/2, W/2] to blocks of 2 x 2 pixels [n, 12, H/2, W/2]."""
        first, mid1, mid2, last = self._weights
        centred = (latents - 0.5).to(self._precision, memory_format=torch.channels_last)
        hidden = functional.silu(functional.conv2d(centred, *first, padding=1), inplace=True)
        inner = functional.silu(functional.conv2d(hidden, *mid1, padding=1), inplace=True)
        hidden = hidden.add_(functional.conv2d(inner, *mid2, padding=1))
        rest = functional.conv2d(functional.silu(hidden, inplace=True), *last, padding=1)
        return rest.float() + latents[:, :DRAFT_CHANNELS]

    def pictures(self, latents: Tensor) -> NDArray[np.uint8]:
        """Decode latent frames [n, 24, H/2, W/2] to pictures uint8 [n, H, W, 3]."""
        levels = self.colours(latents).mul_(255).add_(0.5).clamp_(0, 255.5).to(torch.uint8)
        count, _, rows, columns = levels.shape
        blocks = levels.view(count, 3, 2, 2, rows, columns).permute(0, 4, 2, 5, 3, 1)
        pixels: NDArray[np.uint8] = blocks.reshape(count, 2 * rows, 2 * columns, 3).numpy()
        return pixels
