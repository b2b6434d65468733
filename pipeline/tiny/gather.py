"""Bilinear sampling of maps whose texels lie together: four rows a pixel, weighted and summed.

`embedding_bag` is torch's fastest way to do that on a CPU. The caller's own factors (how much of a
map shows) are multiplied into the weights, where they cost a number a pixel instead of eight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Axis:
    """Where pixels lie along one direction of a map: the texel before, and the way to the next."""

    texel: Tensor  # whole numbers, as float
    part: Tensor  # 0..1

    @staticmethod
    def of(position: Tensor, texels: int) -> Axis:
        """Build from positions in texels (0 = middle of the first); outside, the border goes on."""
        inside = position.clamp(0, texels - 1)
        texel = inside.floor().clamp_(max=texels - 2)
        return Axis(texel, inside - texel)

    @staticmethod
    def within(position: Tensor) -> Axis:
        """Build from positions that are known to have a texel on both sides."""
        texel = position.floor()
        return Axis(texel, position - texel)


class Gather:
    """A bag of weighted rows for each of many pixels."""

    def __init__(self, shape: torch.Size, entries: int = 4) -> None:
        """Make room for `entries` rows for each pixel of that shape."""
        self.indices = torch.empty(*shape, entries, dtype=torch.int32)
        self.weights = torch.empty(*shape, entries)

    def corners(self, across: Axis, down: Axis, width: int, factor: Tensor | None = None) -> None:
        """Fill the first four entries: the texels around, in a map that many texels wide."""
        base = torch.add(across.texel, down.texel, alpha=width).to(torch.int32)
        for entry, step in enumerate((0, 1, width, width + 1)):
            torch.add(base, step, out=self.indices[..., entry])
        lower = down.part if factor is None else down.part * factor
        upper = 1 - lower if factor is None else factor - lower
        weights = self.weights
        torch.mul(upper, across.part, out=weights[..., 1])
        torch.sub(upper, weights[..., 1], out=weights[..., 0])
        torch.mul(lower, across.part, out=weights[..., 3])
        torch.sub(lower, weights[..., 3], out=weights[..., 2])

    def from_table(self, table: Tensor) -> Tensor:
        """Return the sums [pixels, lanes]."""
        entries = self.indices.shape[-1]
        return functional.embedding_bag(
            self.indices.view(-1, entries),
            table,
            mode="sum",
            per_sample_weights=self.weights.view(-1, entries),
        )
