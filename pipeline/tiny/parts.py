"""Trees, rocks, grass, hut and animals, fast: the arithmetic of `Scene` on the pixels that count.

A part shows in few of the pixels of its box. So parts are cut into small tiles, those in which
outlines.py can tell that nothing shows are left out, then those in which nothing turns out to show;
only what is left is coloured.
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
from pipeline.tiny.outlines import REACH, TEXELS, TRANSPARENT, Chosen, OutlinePyramid
from pipeline.tiny.scene import FEATURES, TEXTURE_CHANNELS, TEXTURE_REACH, TEXTURE_SIZE, Scene

SIDE: Final = 8  # pixels of a tile, here
TILES_DOWN, TILES_ACROSS = H // SIDE, W // SIDE
AREA: Final = SIDE * SIDE
ROW_OF_TILE: Final = 2 * SIDE * LANES  # numbers of one row of cells in a tile


@dataclass(frozen=True)
class Drawn:
    """What parts leave on the screen."""

    uncovered: Tensor  # share of the background that shows [n, H/2, ROW]
    colours: Tensor  # of tiles in which parts show, times their share [m, SIDE/2, ROW_OF_TILE]
    strips: Tensor  # where each of their rows of cells lies [m, SIDE/2], counted in such rows

    def add_to(self, features: Tensor) -> Tensor:
        """Add the parts to features [n, H/2, ROW, LANES], in place; return them."""
        rows = features.view(-1, ROW_OF_TILE)
        rows.index_add_(0, self.strips.flatten(), self.colours.flatten(0, 1))
        return features


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
        self._pyramid = OutlinePyramid(self._outlines)
        self._features = table_of(textures[:, TEXTURE_CHANNELS - FEATURES :])
        self._style = scene.style
        self._column, self._row = _inner()

    def draw(self, poses: NDArray[np.float64]) -> Drawn:
        """Draw the parts seen from poses [n, 5]."""
        parts = PartViews.of(poses)
        count = len(poses)
        style = self._style(parts.look, parts.traits)
        frame, row, column, part = _meetings(parts)
        chosen = frame * parts.look.shape[1] + part
        one = Chosen(parts, style, chosen)
        kept = self._pyramid.may_show(
            one, (column + 0.5) * SIDE, (row + 0.5) * SIDE, (SIDE - 1) / 2
        ).nonzero()[:, 0]
        one.keep(kept)
        frame, row, column, chosen = frame[kept], row[kept], column[kept], chosen[kept]
        u, v, width, length = self._place_in_part(one, row * SIDE, column * SIDE)
        alpha = self._opacity(one, u, v, width, length)

        kept = (alpha.amax(1) > TRANSPARENT).nonzero()[:, 0] if len(alpha) else kept
        tile = ((frame * TILES_DOWN + row) * TILES_ACROSS + column)[kept]
        shares, uncovered = _composite(tile, alpha[kept], count * TILES_DOWN * TILES_ACROSS)
        colours = self._colours(
            one.look[kept], u[kept], v[kept], shares, style.flatten(0, 1)[chosen[kept]]
        )
        first = (frame * CELL_ROWS + row * (SIDE // 2))[kept]
        strips = (first[:, None] + torch.arange(SIDE // 2)) * TILES_ACROSS + column[kept][:, None]
        return Drawn(
            _in_cell_order(uncovered, count), colours.view(-1, SIDE // 2, ROW_OF_TILE), strips
        )

    def _place_in_part(
        self, one: Chosen, top: Tensor, left: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return part coordinates u, v, and half-width and half-length there [m, AREA].

        As in `Scene`: u across in half-widths, v along in half-lengths; ends of limbs are rounded,
        so beyond an end v goes on in half-widths.
        """
        x = self._column + (left - one.x)[:, None]
        y = self._row + (top - one.y)[:, None]
        axis_x, axis_y, half_length = one.axis_x[:, None], one.axis_y[:, None], one.length[:, None]
        along = (x * axis_x).addcmul_(y, axis_y)
        across = y.mul_(axis_x).addcmul_(x, axis_y, value=-1)
        inside = torch.maximum(torch.minimum(along, half_length), -half_length)
        v = inside / half_length
        width = torch.addcmul(one.width[:, None], one.taper[:, None], v)
        limb = one.limb[:, None]
        width = torch.where(limb, width.clamp_min(0.5), width)
        length = torch.where(limb, width, half_length)
        v.add_(along.sub_(inside).div_(length))
        return across.div_(width), v, width, length

    def _opacity(self, one: Chosen, u: Tensor, v: Tensor, width: Tensor, length: Tensor) -> Tensor:
        """Return how opaque the part is [m, AREA], transmission of nearer parts aside."""
        u_in, v_in = u.clamp(-REACH, REACH), v.clamp(-REACH, REACH)
        at = torch.empty(1, *u.shape, 2)
        torch.mul(u_in, 1 / TEXTURE_REACH, out=at[0, ..., 0])
        slot = (1 + 2 * one.look) / place.LOOKS - 1
        torch.add(slot[:, None], v_in, alpha=1 / TEXTURE_REACH / place.LOOKS, out=at[0, ..., 1])
        outline = functional.grid_sample(
            self._outlines, at, padding_mode="border", align_corners=False
        )[0]
        outside_u, outside_v = u_in.sub_(u).abs_(), v_in.sub_(v).abs_()
        inside = outline[0].sub_(outside_u).mul_(width)
        inside.addcmul_(outline[1].sub_(outside_v), length)
        shown = torch.addcmul(4 * one.shift[:, None], inside, 4 * one.gain[:, None]).sigmoid_()
        return shown.mul_(one.whole[:, None])

    def _colours(self, look: Tensor, u: Tensor, v: Tensor, shares: Tensor, style: Tensor) -> Tensor:
        """Return features [m, AREA, LANES] of part pixels, times their `shares` of the picture."""
        middle = TEXTURE_SIZE / 2 - 0.5
        across = Axis.of(u.mul_(TEXELS).add_(middle), TEXTURE_SIZE)
        down = Axis.of(v.mul_(TEXELS).add_(middle), TEXTURE_SIZE)
        slot = (look * TEXTURE_SIZE)[:, None]
        gather = Gather(u.shape)
        gather.corners(across, Axis(down.texel + slot, down.part), TEXTURE_SIZE, shares)
        texels = gather.from_table(self._features).view(*u.shape, LANES)
        nothing = (0, LANES - FEATURES)
        gain = functional.pad(style[:, :FEATURES], nothing)[:, None]
        shift = functional.pad(style[:, FEATURES : 2 * FEATURES], nothing)[:, None]
        return texels.mul_(gain).addcmul_(shares[..., None], shift)


def _meetings(parts: PartViews) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return frame, tile row, tile column and part wherever a tile lies in the box of a part.

    Tile by tile, in each the nearest part first.
    """
    box = (parts.box / TILE).floor() * TILE  # drawn, and trained, by whole tiles of that size
    left, top = box[..., 0, None], box[..., 1, None]
    right, bottom = box[..., 2, None] + TILE, box[..., 3, None] + TILE
    columns, rows = torch.arange(TILES_ACROSS) * SIDE, torch.arange(TILES_DOWN) * SIDE
    over = ((columns >= left) & (columns < right)).transpose(1, 2)  # [n, TILES_ACROSS, parts]
    down = ((rows >= top) & (rows < bottom)).transpose(1, 2)
    meet = down[:, :, None] & over[:, None]
    frame, row, column, part = meet.nonzero(as_tuple=True)
    return frame, row, column, part


def _composite(tile: Tensor, alpha: Tensor, tiles: int) -> tuple[Tensor, Tensor]:
    """Return each meeting's share of its pixels [m, AREA], and what is left of them [tiles, AREA].

    Meetings come tile by tile, nearest first.
    """
    sizes = torch.bincount(tile, minlength=tiles)
    rank = torch.arange(len(tile)) - (sizes.cumsum(0) - sizes)[tile]
    order = rank.argsort(stable=True)
    shares, uncovered = torch.empty_like(alpha), torch.ones(tiles, alpha.shape[1])
    for meeting in torch.split(order, torch.bincount(rank).tolist()):
        at, opacity = tile[meeting], alpha[meeting]
        before = uncovered[at]
        share = before * opacity
        shares[meeting] = share
        uncovered[at] = before - share
    return shares, uncovered


def _in_cell_order(tiles: Tensor, count: int) -> Tensor:
    """Turn tiles [count * tiles, AREA] into rows of cells [count, H/2, ROW]."""
    split = tiles.view(count, TILES_DOWN, TILES_ACROSS, SIDE // 2, SIDE * 2)
    return split.transpose(2, 3).reshape(count, CELL_ROWS, ROW)
