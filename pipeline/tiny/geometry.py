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
Floats = NDArray[np.float32]
TRAITS = 14  # numbers that say how light and distance treat a part


_FOCAL, _EYE, _MIDDLE = (np.float32(v) for v in (camera.FOCAL, camera.EYE_HEIGHT, W / 2))
_LIMB, _BLOB = place.PART_KIND == place.SEGMENT, place.PART_KIND == place.BLOB
_PANEL, _TUFT = place.PART_KIND == place.PANEL, place.PART_LOOK == place.TUFT
_SMOKE, _ROUND_ENDS = place.PART_LOOK == place.SMOKE, _LIMB & ~_TUFT
_SAGS = ~(_LIMB | _BLOB)
_ROOF_LIES_ABOVE = np.float32(0.02) * (place.PART_KIND == place.CONE)


def _smoothstep(low: float, high: float, value: Floats) -> Floats:
    t: Floats = np.clip((value - np.float32(low)) / np.float32(high - low), 0, 1)
    return t * t * (3 - 2 * t)


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
        """Project the map's parts for poses [n, 5].

        In numpy: the arrays are so small that only the number of operations counts.
        """
        x, y, yaw, pitch = (poses[:, k, None].astype(np.float32) for k in range(4))
        parts = np.moveaxis(place.parts_at(poses[:, 4]).astype(np.float32), 2, 0)
        _, _, x0, y0, z0, x1, y1, z1, r0, r1, extra = parts
        cos, sin, horizon = np.cos(yaw), np.sin(yaw), np.float32(H / 2) + pitch

        # The two ends on screen: of a segment, its points; of anything else, bottom and top.
        dx, dy = x0 - x, y0 - y
        ahead0, aside0 = dx * cos + dy * sin, dy * cos - dx * sin
        ahead1, aside1 = (x1 - x) * cos + (y1 - y) * sin, (y1 - y) * cos - (x1 - x) * sin
        depth = np.where(_LIMB, (ahead0 + ahead1) / 2, ahead0) - _ROOF_LIES_ABOVE
        near0 = np.where(_LIMB, ahead0, depth).clip(0.3)
        near1 = np.where(_LIMB, ahead1, near0).clip(0.3)
        scale0, scale1 = _FOCAL / near0, _FOCAL / near1
        column0 = _MIDDLE + scale0 * aside0
        column1 = np.where(_LIMB, _MIDDLE + scale1 * aside1, column0)
        row0 = horizon - scale0 * (z0 - _EYE)
        top = np.where(_BLOB, row0 - r1 * scale0, horizon - scale1 * (z1 - _EYE))
        row0, row1 = np.where(_BLOB, row0 + r1 * scale0, row0), top
        bearing = np.arctan2(dy, dx)
        front = np.cos(extra - np.arctan2(-dy, -dx))  # how far a panel faces the eye
        width0 = r0 * scale0 * np.where(_PANEL, front.clip(0.02), np.float32(1))
        width1 = np.where(_LIMB, r1 * scale1, width0)

        run_x, run_y = column1 - column0, row1 - row0
        length = np.sqrt(run_x * run_x + run_y * run_y).clip(1e-3)
        half_width = (width0 + width1) / 2
        centre_x, centre_y = (column0 + column1) / 2, (row0 + row1) / 2
        axis_x, axis_y = run_x / length, run_y / length

        widest = np.maximum(width0, width1).clip(0.5)
        margin = widest + np.float32(1.5)
        reach_x = _LIMB * np.abs(run_x) / 2 + margin
        reach_y = np.abs(run_y) / 2 + np.where(_ROUND_ENDS, margin, np.float32(1.5))
        bottom = centre_y + reach_y + np.where(_SAGS, np.float32(0.15) * length, np.float32(0))
        left, upper, right = centre_x - reach_x, centre_y - reach_y, centre_x + reach_x
        hidden = depth < camera.NEAR_DEPTH
        hidden |= _PANEL & (front < 0.05)
        hidden |= _TUFT & (depth > place.GRASS_RANGE)

        # Nearest first; parts off the screen come last and are dropped where all frames agree.
        seen = (left < W) & (upper < H) & (right > 0) & (bottom > 0) & ~hidden
        order = np.where(seen, depth, np.inf).argsort(1, kind="stable")
        order = order[:, : int(seen.sum(1).max(initial=0))]
        rows = np.arange(len(poses))[:, None]

        from_sun = bearing - np.float32(place.SUN_AZIMUTH)
        fields = [
            depth, centre_x, centre_y, axis_x, axis_y, length / 2, half_width,
            (width1 - width0) / 2, left, upper, right, bottom, np.cos(from_sun), np.sin(from_sun),
            np.broadcast_to(extra * _SMOKE, depth.shape), hidden,
        ]  # fmt: skip
        depth, centre_x, centre_y, axis_x, axis_y, half_length, half_width, taper, *rest = (
            field[rows, order] for field in fields
        )
        left, upper, right, bottom, sunward, aside, age, out_of_sight = rest
        box = np.stack([left, upper, right, bottom], -1)
        box[out_of_sight] = (1e6, 1e6, -1e6, -1e6)

        distance = depth.clip(0.3)
        tuft, limb = _TUFT[order], _LIMB[order]
        fade = _smoothstep(0.65 * place.GRASS_RANGE, place.GRASS_RANGE, depth)
        traits = np.stack(
            [
                np.log(distance) / 2,
                2 / (1 + distance),
                np.exp(-((distance / 42) ** 1.5)),
                sunward,
                sunward * sunward,
                aside,
                axis_x,
                axis_y,
                fade * tuft,
                age,
                np.exp(-12 * age),
                np.log(half_width.clip(0.02)) / 3,
                np.exp(-2 * half_width),
                _smoothstep(camera.NEAR_DEPTH, camera.NEAR_FADE_END, depth),
            ],
            -1,
            dtype=np.float32,
        )
        views = [
            place.PART_LOOK[order], depth, centre_x, centre_y, axis_x, axis_y, half_length,
            half_width, taper, limb.astype(np.float32), box, traits,
        ]  # fmt: skip
        return PartViews(*(torch.from_numpy(np.ascontiguousarray(view)) for view in views))


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
