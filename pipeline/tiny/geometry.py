"""Where things are on the screen: rays of pixels, projected parts, and which part meets which tile.

Nothing here is learned. Shapes: n frames, H x W pixels, m pairs of a part and a tile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.tiny import camera, place

W, H = camera.WIDTH, camera.HEIGHT
TILE = 16  # pixels a side; parts are drawn tile by tile
TILES_Y, TILES_X = H // TILE, W // TILE
TRAITS = 14  # numbers that say how light and distance treat a part


def smoothstep(low: float, high: float, value: Tensor) -> Tensor:
    """Return the cubic step from 0 at low to 1 at high."""
    t = ((value - low) / (high - low)).clamp(0, 1)
    return t * t * (3 - 2 * t)


@dataclass(frozen=True)
class Views:
    """Camera geometry of n frames, per pixel."""

    x: Tensor  # [n, 1, 1] position in units
    y: Tensor
    cos: Tensor  # [n, 1, 1] of yaw
    sin: Tensor
    horizon: Tensor  # [n, 1, 1] pixel row of the horizon
    clock: Tensor  # [n, 1, 1] seconds
    azimuth: Tensor  # [n, 1, W] radians, of every pixel column
    offset: Tensor  # [1, 1, W] tangent of a column's angle from the view axis
    below: Tensor  # [n, H, 1] pixels below the horizon

    @staticmethod
    def of(poses: NDArray[np.float64]) -> Views:
        """Build from poses [n, 5] (x, y, yaw, pitch, clock)."""
        columns = torch.from_numpy(poses).float().unbind(1)
        x, y, yaw, pitch, clock = (column[:, None, None] for column in columns)
        offset = ((torch.arange(W) + 0.5 - W / 2) / camera.FOCAL)[None, None]
        rows = (torch.arange(H) + 0.5)[None, :, None]
        horizon = H / 2 + pitch
        return Views(
            x, y, yaw.cos(), yaw.sin(), horizon, clock, yaw + offset.atan(), offset, rows - horizon
        )


@dataclass(frozen=True)
class PartViews:
    """The parts seen in n frames, nearest first; fields are [n, parts] unless noted."""

    look: Tensor
    depth: Tensor  # units along the view axis
    x: Tensor  # centre on screen, pixels
    y: Tensor
    axis_x: Tensor  # unit vector along the part on screen
    axis_y: Tensor
    half_length: Tensor  # pixels along the axis
    half_width: Tensor  # pixels across, at the centre
    taper: Tensor  # half-width gained from the centre to the far end of the axis
    limb: Tensor  # 1 for segments: rounded, tapering ends
    box: Tensor  # [n, parts, 4] left, top, right, bottom in pixels; far outside when hidden
    traits: Tensor  # [n, parts, TRAITS]

    @staticmethod
    def of(poses: NDArray[np.float64]) -> PartViews:
        """Project the map's parts for poses [n, 5]."""
        x, y, yaw, pitch = (torch.from_numpy(poses[:, k, None]).float() for k in range(4))
        parts = torch.from_numpy(place.parts_at(poses[:, 4])).float()
        _, _, x0, y0, z0, x1, y1, z1, r0, r1, extra = parts.unbind(2)
        kind, look = torch.from_numpy(place.PART_KIND), torch.from_numpy(place.PART_LOOK)
        limb, blob, panel = kind == place.SEGMENT, kind == place.BLOB, kind == place.PANEL
        tuft = look == place.TUFT
        cos, sin, horizon = yaw.cos(), yaw.sin(), H / 2 + pitch
        none, one = torch.zeros(()), torch.ones(())

        def ahead(px: Tensor, py: Tensor) -> Tensor:
            return (px - x) * cos + (py - y) * sin

        def aside(px: Tensor, py: Tensor) -> Tensor:
            return -(px - x) * sin + (py - y) * cos

        # The two ends on screen: of a segment, its points; of anything else, bottom and top.
        middle_x = torch.where(limb, (x0 + x1) / 2, x0)
        middle_y = torch.where(limb, (y0 + y1) / 2, y0)
        depth = ahead(middle_x, middle_y) - 0.02 * (kind == place.CONE)
        near0 = torch.where(limb, ahead(x0, y0).clamp_min(0.3), depth.clamp_min(0.3))
        near1 = torch.where(limb, ahead(x1, y1).clamp_min(0.3), near0)
        scale0, scale1 = camera.FOCAL / near0, camera.FOCAL / near1
        column0 = W / 2 + scale0 * aside(x0, y0)
        column1 = torch.where(limb, W / 2 + scale1 * aside(x1, y1), column0)
        row0 = horizon - scale0 * (z0 - camera.EYE_HEIGHT)
        row1 = torch.where(blob, row0 - r1 * scale0, horizon - scale1 * (z1 - camera.EYE_HEIGHT))
        row0 = torch.where(blob, row0 + r1 * scale0, row0)
        front = torch.cos(extra - torch.atan2(y - y0, x - x0))  # how far a panel faces the eye
        width0 = r0 * scale0 * torch.where(panel, front.clamp_min(0.02), one)
        width1 = torch.where(limb, r1 * scale1, width0)

        run_x, run_y = column1 - column0, row1 - row0
        length = torch.sqrt(run_x**2 + run_y**2).clamp_min(1e-3)
        half_width = (width0 + width1) / 2
        centre_x, centre_y = (column0 + column1) / 2, (row0 + row1) / 2

        widest = torch.maximum(width0, width1).clamp_min(0.5)
        reach_x = torch.where(limb, run_x.abs() / 2, none) + widest + 1.5
        reach_y = run_y.abs() / 2 + torch.where(limb & ~tuft, widest, none) + 1.5
        sag = torch.where(limb | blob, none, 0.15 * length)
        box = torch.stack(
            [centre_x - reach_x, centre_y - reach_y, centre_x + reach_x, centre_y + reach_y + sag],
            -1,
        )
        hidden = (
            (depth < camera.NEAR_DEPTH)
            | (panel & (front < 0.05))
            | (tuft & (depth > place.GRASS_RANGE))
        )
        box = torch.where(hidden[..., None], torch.tensor([1e6, 1e6, -1e6, -1e6]), box)

        from_sun = torch.atan2(y0 - y, x0 - x) - place.SUN_AZIMUTH
        distance = depth.clamp_min(0.3)
        age = extra * (look == place.SMOKE)
        grass_fade = smoothstep(0.65 * place.GRASS_RANGE, place.GRASS_RANGE, depth) * tuft
        near_fade = smoothstep(camera.NEAR_DEPTH, camera.NEAR_FADE_END, depth)
        traits = torch.stack(
            [
                distance.log() / 2,
                2 / (1 + distance),
                torch.exp(-((distance / 42) ** 1.5)),
                from_sun.cos(),
                from_sun.cos() ** 2,
                from_sun.sin(),
                run_x / length,
                run_y / length,
                grass_fade,
                age,
                torch.exp(-12 * age),
                half_width.clamp_min(0.02).log() / 3,
                torch.exp(-2 * half_width),
                near_fade,
            ],
            -1,
        )

        # Nearest first; parts off the screen come last and are dropped where all frames agree.
        seen = (box[..., 0] < W) & (box[..., 1] < H) & (box[..., 2] > 0) & (box[..., 3] > 0)
        order = torch.where(seen, depth, torch.inf).argsort(1)[:, : int(seen.sum(1).max())]

        def nearest_first(field: Tensor) -> Tensor:
            if field.ndim == 2:
                return field.gather(1, order)
            return field.gather(1, order[..., None].expand(-1, -1, field.shape[-1]))

        fields = [
            look.expand_as(depth),
            depth,
            centre_x,
            centre_y,
            run_x / length,
            run_y / length,
            length / 2,
            half_width,
            (width1 - width0) / 2,
            limb.float().expand_as(depth),
            box,
            traits,
        ]
        return PartViews(*(nearest_first(field) for field in fields))


@dataclass(frozen=True)
class TilePairs:
    """Every (part, tile) that meet, grouped by rank: rank 0 is the nearest part of its tile."""

    frame: Tensor  # [m]
    part: Tensor  # [m] index into PartViews
    tile: Tensor  # [m] index among n * TILES_Y * TILES_X
    column: Tensor  # [m] left pixel of the tile
    row: Tensor  # [m] top pixel of the tile
    rank_sizes: list[int]  # pairs of each rank; sums to m

    @staticmethod
    def of(box: Tensor) -> TilePairs:
        """List the pairs for part boxes [n, parts, 4], parts nearest first."""
        first, last = (box[..., :2] / TILE).floor(), (box[..., 2:] / TILE).floor()
        tile_x, tile_y = torch.arange(TILES_X), torch.arange(TILES_Y)
        across = (tile_x >= first[..., 0, None]) & (tile_x <= last[..., 0, None])
        down = (tile_y >= first[..., 1, None]) & (tile_y <= last[..., 1, None])
        meet = down.transpose(1, 2)[:, :, None, :] & across.transpose(1, 2)[:, None, :, :]
        frame, row, column, part = meet.nonzero(
            as_tuple=True
        )  # meet is [n, TILES_Y, TILES_X, parts]
        rank = meet.cumsum(-1, dtype=torch.int32)[frame, row, column, part].long() - 1
        order = rank.argsort(stable=True)
        sizes = torch.bincount(rank).tolist()
        frame, row, column, part = frame[order], row[order], column[order], part[order]
        tile = (frame * TILES_Y + row) * TILES_X + column
        return TilePairs(frame, part, tile, column * TILE, row * TILE, sizes)
