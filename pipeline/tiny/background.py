"""Sky and ground, fast: the arithmetic of `Scene` in cell order, one pass over each map.

What depends on the horizon alone (depths, panorama rows, how much of each level shows) is computed
once for as long as the player looks up or down no further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.tiny import place
from pipeline.tiny.camera import EYE_HEIGHT, FOCAL, HEIGHT, WIDTH
from pipeline.tiny.cells import CELL_ROWS, LANES, pixel_columns, pixel_rows, table_of
from pipeline.tiny.gather import Axis, Gather
from pipeline.tiny.geometry import smoothstep
from pipeline.tiny.scene import (
    CLOUD_COLUMNS,
    CLOUD_ROWS,
    DETAIL_PERIOD,
    DETAIL_TEXELS,
    FEATURES,
    GRASSINESS_TEXELS,
    GROUND_EXTENTS,
    GROUND_TEXELS,
    HAZE_COLUMNS,
    PANORAMA_COLUMNS,
    PANORAMA_ROWS,
    RIPPLE_FOOTPRINT,
    SLOPE_LIMIT,
    SLOPE_STRETCH,
    Scene,
    wrapped,
)

TURN: Final = 2 * math.pi


@dataclass(frozen=True)
class Level:
    """How a ground map shows from one horizon: from which row of cells on, and how much."""

    first: int
    keep: Tensor  # [k, rows from first, ROW]


@dataclass(frozen=True)
class Horizons:
    """What depends on the horizons alone; k is 1 if all frames share one, else their number."""

    panorama: Axis  # rows of panorama and haze [k, H/2, ROW]
    cloud: Axis  # rows of the clouds [k, sky, ROW]
    clear_of_ground: Tensor  # 1 where clouds may be [k, sky, ROW]
    sky: int  # rows of cells in which there may be sky
    top: int  # row of cells where the ground begins
    depth: Tensor  # [k, H/2 - top, ROW] units ahead
    footprint: Tensor  # [k, H/2 - top, ROW] units per pixel row
    shown: Tensor  # 1 below the horizon [k, H/2 - top, ROW]
    water: int  # row from `top` on where ripples show
    ground: tuple[Level, ...]  # rows counted from `top`
    detail: tuple[Level, ...]

    @staticmethod
    def of(horizons: Tensor) -> Horizons:
        """Build for horizons [k], in pixel rows."""
        horizon = horizons[:, None, None]
        below = pixel_rows() - horizon  # [k, H/2, ROW]
        offset = (pixel_columns() - WIDTH / 2) / FOCAL
        slope = below * (-1 / FOCAL / torch.sqrt(1 + offset**2))
        steep = slope.abs() * SLOPE_STRETCH
        log = torch.log(steep + torch.sqrt(steep * steep + 1))  # of asinh, whose own kernel is slow
        row = torch.copysign(log, slope) / math.asinh(SLOPE_LIMIT * SLOPE_STRETCH)
        panorama = Axis.of((row + 1) * (PANORAMA_ROWS / 2) - 0.5, PANORAMA_ROWS)

        sky = min(CELL_ROWS, (int(horizons.max().ceil()) + 2) // 2)
        high = slope[:, :sky] * (CLOUD_ROWS / SLOPE_LIMIT) - 0.5
        top = max(0, int(horizons.min().floor())) // 2
        near = below[:, top:].clamp_min(0.25)
        depth = EYE_HEIGHT * FOCAL / near
        footprint = depth * depth / (EYE_HEIGHT * FOCAL)
        shown = (below[:, top:] > 0).float()

        def level(low: float, high: float) -> Level:
            keep = 1 - smoothstep(low, high, footprint)
            first = int((keep.amax((0, 2)) == 0).sum())
            return Level(first, (keep * shown)[:, first:])

        texels = [2 * extent / n for extent, n in zip(GROUND_EXTENTS, GROUND_TEXELS, strict=True)]
        fine = tuple(level(1.5 * texel, 4 * texel) for texel in texels[:2])
        details = (DETAIL_PERIOD / n for n in DETAIL_TEXELS)
        return Horizons(
            panorama,
            Axis.of(high, CLOUD_ROWS),
            (below[:, :sky] < 1).float(),
            sky,
            top,
            depth,
            footprint,
            shown,
            int((footprint.amin((0, 2)) >= RIPPLE_FOOTPRINT).sum()),
            (*fine, Level(0, shown)),
            tuple(level(1.5 * texel, 8 * texel) for texel in details),
        )


class Background:
    """Renders sky and ground from the maps of a trained scene."""

    def __init__(self, scene: Scene) -> None:
        """Lay the maps out for gathering."""
        panorama = wrapped(scene.panorama.detach())
        colour = functional.pad(scene.cloud_colour.detach(), (0, LANES - FEATURES))[None]
        self._panorama = torch.cat([table_of(panorama[:, :FEATURES]), colour])
        self._cloud_colour = len(self._panorama) - 1
        self._open_sky = panorama[:, FEATURES:]
        self._cloud = wrapped(scene.cloud.detach())
        self._haze = table_of(wrapped(scene.haze.detach()))
        self._grassiness = scene.grassiness.detach()
        self._ground = [
            table_of(functional.pad(g.detach(), (1, 1, 1, 1))) for g in scene.ground[:2]
        ]
        self._ground.append(table_of(scene.ground[2].detach()))
        around = [
            functional.pad(grid.detach(), (1, 1, 1, 1), mode="circular") for grid in scene.detail
        ]
        self._detail = [table_of(grid) for grid in around]
        self._scene = scene
        self._offset = (pixel_columns() - WIDTH / 2) / FOCAL  # [ROW] tangent from the view axis
        self._angle = self._offset.atan()
        self._horizons: tuple[tuple[float, ...], Horizons] | None = None

    def draw(self, poses: Tensor, uncovered: Tensor) -> Tensor:
        """Return features [n, H/2, ROW, LANES] of poses [n, 5], times `uncovered` [n, H/2, ROW]."""
        seen = self._seen_from(poses[:, 3])
        azimuth = self._angle + poses[:, 2, None, None]  # [n, 1, ROW]
        out = self._sky(seen, azimuth, poses[:, 4, None, None], uncovered)
        ground = self._ground_features(seen, poses, uncovered[:, seen.top :])
        out[:, seen.top :].addcmul_(ground, self._clear_air(seen, azimuth))
        return out

    def _clear_air(self, seen: Horizons, azimuth: Tensor) -> Tensor:
        """Return how much ground shows through the haze, frames as few as differ."""
        across = _around(_as_few_as_differ(azimuth), HAZE_COLUMNS)
        down = Axis(seen.panorama.texel[:, seen.top :], seen.panorama.part[:, seen.top :])
        gather = Gather((across.texel + down.texel).shape)
        gather.corners(across, down, HAZE_COLUMNS + 2)
        return gather.from_table(self._haze).view(*gather.indices.shape[:3], LANES)

    def _seen_from(self, pitches: Tensor) -> Horizons:
        """Return what depends on the horizons, kept from the call before if they are the same."""
        horizons = HEIGHT / 2 + pitches
        key = tuple(horizons.tolist())
        if len(set(key)) == 1:
            key = key[:1]
        kept = self._horizons
        if kept is None or kept[0] != key:
            kept = self._horizons = key, Horizons.of(horizons[: len(key)])
        return kept[1]

    def _sky(self, seen: Horizons, azimuth: Tensor, clock: Tensor, uncovered: Tensor) -> Tensor:
        """Return the panorama with clouds [n, H/2, ROW, LANES]."""
        gather = Gather(uncovered.shape, 5)
        across = _around(azimuth, PANORAMA_COLUMNS)
        cover = self._clouds(seen, azimuth, azimuth + place.CLOUD_TURN * clock)
        cover = torch.mul(cover, uncovered[:, : seen.sky])
        under = uncovered.clone()
        under[:, : seen.sky] -= cover
        gather.corners(across, seen.panorama, PANORAMA_COLUMNS + 2, under)
        gather.indices[..., 4] = self._cloud_colour
        gather.weights[:, : seen.sky, :, 4] = cover
        gather.weights[:, seen.sky :, :, 4] = 0
        return gather.from_table(self._panorama).view(*uncovered.shape, LANES)

    def _clouds(self, seen: Horizons, azimuth: Tensor, drifted: Tensor) -> Tensor:
        """Return how much clouds cover the sky [n, sky, ROW]."""
        across = _around(_as_few_as_differ(azimuth), PANORAMA_COLUMNS)
        down = Axis(seen.panorama.texel[:, : seen.sky], seen.panorama.part[:, : seen.sky])
        logit = _plane(self._cloud, _around(drifted, CLOUD_COLUMNS), seen.cloud)
        logit += _plane(self._open_sky, across, down)
        return logit.sigmoid_().mul_(seen.clear_of_ground)

    # -------------------------------------------------------------- ground
    def _ground_features(self, seen: Horizons, poses: Tensor, uncovered: Tensor) -> Tensor:
        """Return ground features [n, H/2 - top, ROW, LANES] before haze."""
        x, y, yaw = (poses[:, k, None, None] for k in range(3))
        cos, sin = yaw.cos(), yaw.sin()
        at_x = torch.addcmul(x, seen.depth, cos - sin * self._offset)  # [n, rows, ROW]
        at_y = torch.addcmul(y, seen.depth, sin + cos * self._offset)
        out = self._ground_level(2, seen, at_x, at_y, uncovered)
        for number in (1, 0):
            first = seen.ground[number].first
            out[:, first:] += self._ground_level(number, seen, at_x, at_y, uncovered)
        self._add_grass(out, seen, at_x, at_y, uncovered)
        self._add_water(out, seen, at_x, at_y, poses[:, 4], uncovered)
        return out

    def _ground_level(
        self, number: int, seen: Horizons, x: Tensor, y: Tensor, uncovered: Tensor
    ) -> Tensor:
        level, texels = seen.ground[number], GROUND_TEXELS[number]
        scale = texels / (2 * GROUND_EXTENTS[number])
        x, y = x[:, level.first :], y[:, level.first :]
        if number == 2:  # the outermost level: its border goes on
            across, down = (Axis.of(at * scale + (texels - 1) / 2, texels) for at in (x, y))
            width = texels
        else:  # with a border of zeros around it
            across, down = (Axis.of(at * scale + (texels + 1) / 2, texels + 2) for at in (x, y))
            width = texels + 2
        gather = Gather(x.shape)
        gather.corners(across, down, width, level.keep * uncovered[:, level.first :])
        return gather.from_table(self._ground[number]).view(*x.shape, LANES)

    def _add_grass(
        self, out: Tensor, seen: Horizons, x: Tensor, y: Tensor, uncovered: Tensor
    ) -> None:
        """Add the repeating grass pattern to ground [n, rows, ROW, LANES]."""
        top = min(level.first for level in seen.detail)
        scale = GRASSINESS_TEXELS / (2 * GROUND_EXTENTS[0])
        across, down = (
            Axis.of(at[:, top:] * scale + (GRASSINESS_TEXELS - 1) / 2, GRASSINESS_TEXELS)
            for at in (x, y)
        )
        amount = _plane(self._grassiness, across, down).mul_(uncovered[:, top:])
        for level, texels, table in zip(seen.detail, DETAIL_TEXELS, self._detail, strict=True):
            first = level.first
            across, down = (
                _around(at[:, first:] * (TURN / DETAIL_PERIOD), texels) for at in (x, y)
            )
            gather = Gather(across.texel.shape)
            gather.corners(across, down, texels + 2, level.keep * amount[:, first - top :])
            out[:, first:] += gather.from_table(table).view(*across.texel.shape, LANES)

    def _add_water(
        self, out: Tensor, seen: Horizons, x: Tensor, y: Tensor, clock: Tensor, uncovered: Tensor
    ) -> None:
        """Add ripples and glitter to ground [n, rows, ROW, LANES] where x, y is water."""
        first = seen.water
        cos, sin = math.cos(place.POND_TURN), math.sin(place.POND_TURN)
        dx, dy = x[:, first:] - place.POND_X, y[:, first:] - place.POND_Y
        u = (dx * (cos / place.POND_LONG)).add_(dy, alpha=sin / place.POND_LONG)
        v = (dy * (cos / place.POND_SHORT)).sub_(dx, alpha=sin / place.POND_SHORT)
        water = (u * u).addcmul_(v, v) < 1
        water &= seen.footprint[:, first:] < RIPPLE_FOOTPRINT
        frame, row, column = water.nonzero(as_tuple=True)
        if len(frame) == 0:
            return
        scene, where = self._scene, (frame, row, column)
        visible = uncovered[:, first:][where]
        footprint = seen.footprint[:, first:].expand(len(x), -1, -1)[where]
        out = out[:, first:]
        height, sparkle = scene.water(u[where], v[where], clock[frame], footprint)
        still = out[..., :FEATURES][where]
        ripples = (height * visible)[:, None] * scene.ripple_colour
        glitter = (sparkle * visible)[:, None] * scene.sparkle_colour - sparkle[:, None] * still
        out[..., :FEATURES][where] = still + ripples + glitter


def _as_few_as_differ(azimuth: Tensor) -> Tensor:
    """Return the azimuths [n, 1, ROW] of one frame if all frames look the same way."""
    return azimuth[:1] if bool((azimuth[:, 0, 0] == azimuth[0, 0, 0]).all()) else azimuth


def _around(angle: Tensor, columns: int) -> Axis:
    """Return where an angle in radians lies in a `wrapped` map of that many columns."""
    turn = angle * (1 / TURN)
    turn = turn - turn.floor()
    return Axis.within(turn * columns + 0.5)


def _plane(grid: Tensor, across: Axis, down: Axis) -> Tensor:
    """Sample a map of one channel [1, 1, h, w]."""
    height, width = grid.shape[2:]
    shape = (across.texel + down.texel).shape
    at = torch.empty(1, 1, *shape, 2).view(1, -1, shape[-1], 2)
    place_in = at.view(*shape, 2)
    place_in[..., 0] = (across.texel + across.part) * (2 / width) + (1 / width - 1)
    place_in[..., 1] = (down.texel + down.part) * (2 / height) + (1 / height - 1)
    sampled = functional.grid_sample(grid, at, padding_mode="border", align_corners=False)
    return sampled.view(shape)
