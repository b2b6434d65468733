"""The decoder as it is played: the trained network on cells, in bfloat16 where that is faster.

What bfloat16 changes is far below what the eye or the likeness to the truth can tell (74 dB against
the float32 decoder; the draft picture itself is added in float32), and it takes two thirds of the
time. Which of the two is used depends on the processor alone, so a machine always draws the same.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pipeline.tiny.cells import CELL_CHANNELS, LANES
from pipeline.tiny.networks import DRAFT_CHANNELS, Decoder
from pipeline.tiny.scene import FEATURES

COLOURS = 3


def multiplies_bfloat16() -> bool:
    """Return whether this processor has instructions for bfloat16 products."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    questions = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, question, bool)()) for question in questions)


def _reads_cells(weight: Tensor) -> Tensor:
    """Reorder a first convolution [o, 24, 3, 3] so that its inputs are the channels of cells."""
    outputs = len(weight)
    by_pixel = weight.view(outputs, FEATURES, 4, 3, 3).transpose(1, 2)
    padded = functional.pad(by_pixel, (0, 0, 0, 0, 0, LANES - FEATURES))
    return padded.reshape(outputs, CELL_CHANNELS, 3, 3)


def _by_pixel(values: Tensor) -> Tensor:
    """Reorder outputs of a last convolution [12, ...]: pixel by pixel, then colour."""
    return values.view(COLOURS, 4, *values.shape[1:]).transpose(0, 1).reshape(values.shape)


def _biases(conv: nn.Conv2d) -> Tensor:
    assert conv.bias is not None
    return conv.bias


class FastDecoder:
    """Decodes cells to pictures. Holds weights only."""

    def __init__(self, decoder: Decoder, precision: torch.dtype) -> None:
        """Take over the weights of a trained decoder."""
        first, last = decoder.first, decoder.last
        centre = torch.full((CELL_CHANNELS,), 0.5)
        centre.view(4, LANES)[:, FEATURES:] = 0
        self._centre, self._precision = centre, precision
        self._weights = [
            (weight.to(precision).contiguous(memory_format=torch.channels_last), bias.to(precision))
            for weight, bias in (
                (_reads_cells(first.weight), _biases(first)),
                (decoder.mid1.weight, _biases(decoder.mid1)),
                (decoder.mid2.weight, _biases(decoder.mid2)),
                (_by_pixel(last.weight), _by_pixel(_biases(last))),
            )
        ]

    def colours(self, cells: Tensor) -> Tensor:
        """Decode cells [n, H/2, W/2, 32] to colours [n, H/2, W/2, 4, 3] in about 0..1."""
        first, mid1, mid2, last = self._weights
        centred = (cells - self._centre).to(self._precision).permute(0, 3, 1, 2)
        hidden = functional.silu(functional.conv2d(centred, *first, padding=1), inplace=True)
        inner = functional.silu(functional.conv2d(hidden, *mid1, padding=1), inplace=True)
        hidden = hidden.add_(functional.conv2d(inner, *mid2, padding=1))
        rest = functional.conv2d(functional.silu(hidden, inplace=True), *last, padding=1)
        rest = rest.permute(0, 2, 3, 1)
        draft = cells.view(*cells.shape[:3], 4, LANES)[..., :COLOURS]
        return draft + rest.reshape(*rest.shape[:3], 4, DRAFT_CHANNELS // 4)

    def pictures(self, cells: Tensor) -> NDArray[np.uint8]:
        """Decode cells [n, H/2, W/2, 32] to pictures uint8 [n, H, W, 3]."""
        levels = self.colours(cells).mul_(255).add_(0.5).clamp_(0, 255.5).to(torch.uint8)
        count, rows, columns = levels.shape[:3]
        blocks = levels.view(count, rows, columns, 2, 2, COLOURS).transpose(2, 3)
        pixels: NDArray[np.uint8] = blocks.reshape(count, 2 * rows, 2 * columns, COLOURS).numpy()
        return pixels
