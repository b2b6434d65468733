"""Where a part can show at all: an upper bound of its opacity over whole tiles.

A part's texture holds distances to its outline. A pyramid with the largest distance in every window
tells of a tile that the part is transparent in all of it, without a look at its pixels. It never
leaves out a pixel that shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.tiny import place
from pipeline.tiny.geometry import PartViews
from pipeline.tiny.scene import TEXTURE_REACH, TEXTURE_SIZE

TRANSPARENT: Final = 1e-4  # opacity that nobody sees
LEAST_INSIDE: Final = (
    math.log(TRANSPARENT) / 4
)  # pixels inside the styled outline below which it is
REACH: Final = TEXTURE_REACH * (1 - 1 / TEXTURE_SIZE)
TEXELS: Final = TEXTURE_SIZE / 2 / TEXTURE_REACH  # per unit of part coordinates
LEVELS: Final = math.ceil(math.log2(TEXTURE_SIZE)) + 1


class Chosen:
    """Fields of parts, one row for each meeting of a part and a tile [m]."""

    def __init__(self, parts: PartViews, style: Tensor, chosen: Tensor) -> None:
        """Take rows `chosen` of parts, flattened; style [n, parts, outputs]."""
        fields = torch.stack(
            [
                parts.x, parts.y, parts.axis_x, parts.axis_y, parts.half_width, parts.half_length,
                parts.taper, parts.limb, parts.look.float(),
                style[..., -3], style[..., -2], style[..., -1].sigmoid() * parts.traits[..., -1],
            ]
        ).flatten(1)  # fmt: skip
        self._rows = fields[:, chosen]
        self._take()

    def _take(self) -> None:
        (
            self.x, self.y, self.axis_x, self.axis_y, self.width, self.length, self.taper, limb,
            self.look, self.gain, self.shift, self.whole,
        ) = self._rows  # fmt: skip
        self.limb = limb > 0

    def keep(self, kept: Tensor) -> None:
        """Keep only these rows."""
        self._rows = self._rows[:, kept]
        self._take()


@dataclass(frozen=True)
class _Range:
    low: Tensor
    high: Tensor

    def outside(self) -> Tensor:
        """Return how far beyond the texture the whole range lies."""
        return torch.maximum(self.low, -self.high).sub_(REACH).clamp_min_(0)

    def texels(self) -> tuple[Tensor, Tensor]:
        """Return the first texel that sampling the range may touch, and how many."""
        low, high = (
            (end.clamp(-REACH, REACH) * TEXELS + (TEXTURE_SIZE / 2 - 0.5)).floor()
            for end in (self.low, self.high)
        )
        return low, high - low + 2


class OutlinePyramid:
    """The largest outline distances of all looks, by window."""

    def __init__(self, outlines: Tensor) -> None:
        """Build from outline textures [1, 2, LOOKS * size, size]."""
        level = outlines[0].view(2, place.LOOKS, TEXTURE_SIZE, TEXTURE_SIZE)
        levels = [level]
        for step in (1 << k for k in range(LEVELS - 1)):
            wider = functional.pad(level, (0, step, 0, step), mode="replicate")
            level = torch.maximum(
                torch.maximum(wider[..., :-step, :-step], wider[..., step:, :-step]),
                torch.maximum(wider[..., :-step, step:], wider[..., step:, step:]),
            )
            levels.append(level)
        self._tables = torch.stack(levels, 1).flatten(1)  # [2, levels * looks * size * size]

    def may_show(self, one: Chosen, x: Tensor, y: Tensor, reach: float) -> Tensor:
        """Return which meetings [m] may show in squares around x, y, `reach` pixels each way."""
        x, y = x - one.x, y - one.y
        slack = (one.axis_x.abs() + one.axis_y.abs()) * reach
        along = x * one.axis_x + y * one.axis_y
        across = y * one.axis_x - x * one.axis_y
        ends = [self._end(one, along - slack), self._end(one, along + slack)]
        thin, wide = (pick(ends[0][1], ends[1][1]) for pick in (torch.minimum, torch.maximum))
        short = torch.where(one.limb, thin, one.length)
        long = torch.where(one.limb, wide, one.length)
        left, right = across - slack, across + slack
        u = _Range(
            torch.minimum(left / thin, left / wide), torch.maximum(right / thin, right / wide)
        )
        v = _Range(ends[0][0], ends[1][0])

        (column, columns), (row, rows) = u.texels(), v.texels()
        level = torch.maximum(columns, rows).log2().ceil()
        at = ((level * place.LOOKS + one.look) * TEXTURE_SIZE + row) * TEXTURE_SIZE + column
        in_widths, in_lengths = self._tables[:, at.long()]
        in_widths, in_lengths = in_widths - u.outside(), in_lengths - v.outside()
        inside = torch.maximum(in_widths * thin, in_widths * wide)
        inside += torch.maximum(in_lengths * short, in_lengths * long)
        shows: Tensor = (inside * one.gain + one.shift > LEAST_INSIDE) | (one.gain <= 0)
        return shows.logical_and_(one.whole > TRANSPARENT)

    @staticmethod
    def _end(one: Chosen, along: Tensor) -> tuple[Tensor, Tensor]:
        """Return the part coordinate v and the half-width at one end of a square."""
        inside = torch.maximum(torch.minimum(along, one.length), -one.length)
        v = inside / one.length
        width = one.width + one.taper * v
        width = torch.where(one.limb, width.clamp_min(0.5), width)
        length = torch.where(one.limb, width, one.length)
        return v + (along - inside) / length, width
