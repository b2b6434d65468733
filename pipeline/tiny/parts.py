"""Trees, rocks, grass, hut and animals, fast: the arithmetic of `Scene` on the pixels that count.

A part meets few of the pixels in its box. So parts are cut into small tiles, tiles that miss the
part's own slanting outline are left out, then those in which it turns out to be transparent; only
what is left is coloured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pipeline.tiny import place
from pipeline.tiny.cells import CELL_ROWS, LANES, ROW, table_of
from pipeline.tiny.gather import Axis, Gather
from pipeline.tiny.geometry import TILE, H, PartViews, W
from pipeline.tiny.scene import FEATURES, TEXTURE_CHANNELS, TEXTURE_REACH, TEXTURE_SIZE, Scene

SIDE: Final = 8  # pixels of a tile, here
TILES_DOWN, TILES_ACROSS = H // SIDE, W // SIDE
AREA: Final = SIDE * SIDE
TRANSPARENT: Final = 1e-4  # opacity that nobody sees
SPREAD, MARGIN = 1.2, 3.0  # how far an outline may reach past its part: share, and pixels
REACH: Final = TEXTURE_REACH * (1 - 1 / TEXTURE_SIZE)


@dataclass(frozen=True)
class Drawn:
    """What parts leave on the screen."""

    colour: Tensor  # [n, H/2, ROW, LANES]
    uncovered: Tensor  # share of the background that shows [n, H/2, ROW]


def _inner() -> tuple[Tensor, Tensor]:
    """Return the pixel middles of a tile in cell order: columns and rows [AREA]."""
    line = torch.arange(SIDE // 2) * 2
    two = torch.arange(2)
    column = (line[None, :, None, None] + two).expand(SIDE // 2, -1, 2, -1)
    row = (line[:, None, None, None] + two[:, None]).expand(-1, SIDE // 2, -1, 2)
    return column.reshape(AREA) + 0.5, row.reshape(AREA) + 0.5


class Parts:
    """Draws the parts with textures and style network of a trained scene."""

    def __init__(self, scene: Scene) -> None:
        """Lay the textures out for gathering."""
        textures = scene.textures.detach()
        self._outlines = textures[:, : TEXTURE_CHANNELS - FEATURES]
        self._features = table_of(textures[:, TEXTURE_CHANNELS - FEATURES :])
        self._style = scene.style
        self._column, self._row = _inner()

    def draw(self, poses: NDArray[np.float64]) -> Drawn:
        """Draw the parts seen from poses [n, 5]."""
        parts = PartViews.of(poses)
        count = len(poses)
        frame, tile_row, tile_column, part = _meetings(parts)
        chosen = frame * parts.look.shape[1] + part
        if len(chosen) == 0:
            clear = torch.ones(count, CELL_ROWS, ROW)
            return Drawn(torch.zeros(*clear.shape, LANES), clear)
        style = self._style(parts.look, parts.traits).flatten(0, 1)
        one = _Chosen(parts, chosen)
        u, v, width, length = self._place_in_part(one, tile_row * SIDE, tile_column * SIDE)
        alpha = self._opacity(one, u, v, width, length, style[chosen])

        kept = (alpha.amax(1) > TRANSPARENT).nonzero()[:, 0]
        tile = ((frame * TILES_DOWN + tile_row) * TILES_ACROSS + tile_column)[kept]
        shares, uncovered = _composite(tile, alpha[kept], count * TILES_DOWN * TILES_ACROSS)
        colours = self._colours(one.look[kept], u[kept], v[kept], shares, style[chosen[kept]])
        canvas = torch.zeros(len(uncovered), AREA * LANES)
        canvas.index_add_(0, tile, colours.view(len(tile), -1))
        return Drawn(
            _in_cell_order(canvas, count, LANES).view(count, CELL_ROWS, ROW, LANES),
            _in_cell_order(uncovered, count, 1),
        )

    def _place_in_part(
        self, one: _Chosen, top: Tensor, left: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return part coordinates u, v, and half-width and half-length there [m, AREA].

        As in `Scene`: u across in half-widths, v along in half-lengths; ends of limbs are rounded,
        so beyond an end v goes on in half-widths.
        """
        x = self._column + (left - one.x)[:, None]
        y = self._row + (top - one.y)[:, None]
        axis_x, axis_y, half_length = one.axis_x[:, None], one.axis_y[:, None], one.length[:, None]
        along = (x * axis_x).addcmul_(y, axis_y)
        across = (y * axis_x).addcmul_(x, axis_y, value=-1)
        inside = torch.maximum(torch.minimum(along, half_length), -half_length)
        v = inside / half_length
        width = one.width[:, None] + one.taper[:, None] * v
        limb = one.limb[:, None]
        width = torch.where(limb, width.clamp_min(0.5), width)
        length = torch.where(limb, width, half_length)
        v = v.add_((along - inside) / length)
        return across / width, v, width, length

    def _opacity(
        self, one: _Chosen, u: Tensor, v: Tensor, width: Tensor, length: Tensor, style: Tensor
    ) -> Tensor:
        """Return how opaque the part is [m, AREA], transmission of nearer parts aside."""
        u_in, v_in = u.clamp(-REACH, REACH), v.clamp(-REACH, REACH)
        at = torch.empty(1, *u.shape, 2)
        torch.mul(u_in, 1 / TEXTURE_REACH, out=at[0, ..., 0])
        slot = (1 + 2 * one.look.float()) / place.LOOKS - 1
        torch.add(slot[:, None], v_in, alpha=1 / TEXTURE_REACH / place.LOOKS, out=at[0, ..., 1])
        outline = functional.grid_sample(
            self._outlines, at, padding_mode="border", align_corners=False
        )[0]
        outside_u, outside_v = (u - u_in).abs_(), (v - v_in).abs_()
        inside = (outline[0] - outside_u).mul_(width).addcmul_(outline[1] - outside_v, length)
        gain, shift, opacity = (4 * style[:, -3:]).unbind(1)
        whole = torch.sigmoid(opacity / 4) * one.fade
        return torch.addcmul(shift[:, None], inside, gain[:, None]).sigmoid_().mul_(whole[:, None])

    def _colours(self, look: Tensor, u: Tensor, v: Tensor, shares: Tensor, style: Tensor) -> Tensor:
        """Return features [m, AREA, LANES] of part pixels, times their `shares` of the picture."""
        half = TEXTURE_SIZE / 2
        across = Axis.of(u * (half / TEXTURE_REACH) + (half - 0.5), TEXTURE_SIZE)
        down = Axis.of(v * (half / TEXTURE_REACH) + (half - 0.5), TEXTURE_SIZE)
        slot = (look * TEXTURE_SIZE).float()[:, None]
        gather = Gather(u.shape)
        gather.corners(across, Axis(down.texel + slot, down.part), TEXTURE_SIZE, shares)
        texels = gather.from_table(self._features).view(*u.shape, LANES)
        nothing = (0, LANES - FEATURES)
        gain = functional.pad(style[:, :FEATURES], nothing)[:, None]
        shift = functional.pad(style[:, FEATURES : 2 * FEATURES], nothing)[:, None]
        return texels.mul_(gain).addcmul_(shares[..., None], shift)


class _Chosen:
    """Fields of parts, one row for each meeting of a part and a tile [m]."""

    def __init__(self, parts: PartViews, chosen: Tensor) -> None:
        def of(field: Tensor) -> Tensor:
            return field.reshape(-1)[chosen]

        self.look = of(parts.look)
        self.x, self.y = of(parts.x), of(parts.y)
        self.axis_x, self.axis_y = of(parts.axis_x), of(parts.axis_y)
        self.width, self.length, self.taper = (
            of(parts.half_width),
            of(parts.half_length),
            of(parts.taper),
        )
        self.limb = of(parts.limb) > 0
        self.fade = of(parts.traits[..., -1])


def _meetings(parts: PartViews) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return frame, tile row, tile column and part wherever a part may show in a tile.

    Tile by tile, in each the nearest part first.
    """
    box = (parts.box / TILE).floor() * TILE  # drawn, and trained, by whole tiles of that size
    left, top = box[..., 0, None], box[..., 1, None]
    right, bottom = box[..., 2, None] + TILE, box[..., 3, None] + TILE
    columns, rows = torch.arange(TILES_ACROSS) * SIDE, torch.arange(TILES_DOWN) * SIDE
    over = (columns >= left) & (columns < right)  # [n, parts, TILES_ACROSS]
    down = (rows >= top) & (rows < bottom)

    half = SIDE / 2
    dx = (columns + half - parts.x[..., None])[:, :, None]  # [n, parts, 1, TILES_ACROSS]
    dy = (rows + half - parts.y[..., None])[..., None]
    axis_x, axis_y = parts.axis_x[..., None, None], parts.axis_y[..., None, None]
    widest = parts.half_width + parts.taper.abs()
    tile_reach = half * (parts.axis_x.abs() + parts.axis_y.abs())
    reach_across = SPREAD * widest + MARGIN + tile_reach
    reach_along = SPREAD * parts.half_length + parts.limb * widest + MARGIN + tile_reach
    meet = (torch.addcmul(dy * axis_x, dx, axis_y, value=-1)).abs_() <= reach_across[
        ..., None, None
    ]
    meet &= (dx * axis_x + dy * axis_y).abs_() <= reach_along[..., None, None]
    meet &= over[:, :, None]
    meet &= down[..., None]
    frame, row, column, part = meet.permute(0, 2, 3, 1).nonzero(as_tuple=True)
    return frame, row, column, part


def _composite(tile: Tensor, alpha: Tensor, tiles: int) -> tuple[Tensor, Tensor]:
    """Return each meeting's share of its pixels [m, AREA], and what is left of them [tiles, AREA].

    Meetings come tile by tile, nearest first.
    """
    sizes = torch.bincount(tile, minlength=tiles)
    rank = torch.arange(len(tile)) - (sizes.cumsum(0) - sizes)[tile]
    order = rank.argsort(stable=True)
    shares, uncovered = torch.empty_like(alpha), torch.ones(tiles, alpha.shape[1])
    for meeting in order.split(torch.bincount(rank).tolist()):
        at, opacity = tile[meeting], alpha[meeting]
        before = uncovered[at]
        share = before * opacity
        shares[meeting] = share
        uncovered[at] = before - share
    return shares, uncovered


def _in_cell_order(tiles: Tensor, count: int, lanes: int) -> Tensor:
    """Turn tiles [count * tiles, AREA * lanes] into rows of cells [count, H/2, ROW * lanes]."""
    cells = SIDE // 2
    split = tiles.view(count, TILES_DOWN, TILES_ACROSS, cells, cells * 4 * lanes)
    return split.transpose(2, 3).reshape(count, CELL_ROWS, ROW * lanes)
