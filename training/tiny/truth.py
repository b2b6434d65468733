"""The true picture of the veldt: a small analytic renderer with exact anti-aliasing.

It makes the training data and is the judge of what the model makes; playing needs neither.
Everything is drawn back to front into a float buffer: sky panorama, ground maps, then the parts.
Functions with a leading underscore are compiled by numba; arrays they read are passed in.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from pipeline.tiny import camera, place
from training.tiny import landscape
from training.tiny.solids import FOG_RANGE, clip, depths_of, draw_part, haze, smooth_step

Floats = NDArray[np.floating]
Maps = tuple[NDArray[np.float32], ...]

CLOUD_COLOUR = (1.0, 0.80, 0.66)
_SKY, _CLOUD, _OPEN = landscape.bake_sky()
_GROUND, _DETAIL = landscape.bake_ground(), landscape.bake_detail()
_GROUND_MEAN = _GROUND[-1][..., :3].mean((0, 1))
_POND = np.array(
    [place.POND_X, place.POND_Y, place.POND_LONG, place.POND_SHORT,
     math.cos(place.POND_TURN), math.sin(place.POND_TURN)]
)  # fmt: skip

_W, _H, _F, _EYE = camera.WIDTH, camera.HEIGHT, camera.FOCAL, camera.EYE_HEIGHT
_NEAR = camera.NEAR_DEPTH
_SUN, _DRIFT = place.SUN_AZIMUTH, place.CLOUD_TURN
_COLUMNS, _ROWS, _PER_SLOPE = (
    landscape.PANORAMA_COLUMNS, landscape.PANORAMA_ROWS, landscape.ROWS_PER_SLOPE
)  # fmt: skip
_EXTENT, _TEXEL = landscape.GROUND_EXTENT, landscape.GROUND_TEXEL
_DETAIL_EXTENT = landscape.DETAIL_EXTENT
_DETAIL_TEXEL = landscape.DETAIL_EXTENT / landscape.DETAIL_TEXELS


# ------------------------------------------------------------------ sky
@njit(inline="always")
def _between(a: float, b: float, c: float, d: float, u: float, v: float) -> float:
    """Interpolate a b (upper pair) and c d (lower pair) at u, v in 0..1."""
    return (a * (1 - u) + b * u) * (1 - v) + (c * (1 - u) + d * u) * v


@njit(inline="always")
def _panorama_column(azimuth: float) -> float:
    turn = azimuth / (2 * math.pi)
    return (turn - math.floor(turn)) * _COLUMNS


@njit(fastmath=True)
def _draw_sky(
    buffer: Floats,
    yaw: float,
    horizon: float,
    clock: float,
    sky: Floats,
    cloud: Floats,
    open_sky: Floats,
) -> None:
    for i in range(_W):
        offset = (i + 0.5 - _W / 2) / _F
        azimuth = yaw + math.atan(offset)
        column, drifted = _panorama_column(azimuth), _panorama_column(azimuth + _DRIFT * clock)
        s, c = int(column), int(drifted)
        us, uc = column - s, drifted - c
        scale = _PER_SLOPE / _F / math.sqrt(1 + offset * offset)
        for j in range(_H):
            above = horizon - (j + 0.5)
            if above <= -0.5:
                break
            row = min(max(above, 0.0) * scale, _ROWS - 1.001)
            r = int(row)
            v = row - r
            p, q = r, r + 1
            cover = _between(cloud[c, p], cloud[c + 1, p], cloud[c, q], cloud[c + 1, q], uc, v)
            cover *= _between(
                open_sky[s, p], open_sky[s + 1, p], open_sky[s, q], open_sky[s + 1, q], us, v
            )
            for k in range(3):
                value = _between(
                    sky[s, p, k], sky[s + 1, p, k], sky[s, q, k], sky[s + 1, q, k], us, v
                )
                buffer[j, i, k] = value * (1 - cover) + CLOUD_COLOUR[k] * cover


# ------------------------------------------------------------------ ground
@njit()
def _ground_sample(level: Floats, x: float, y: float, channel: int) -> float:
    """Bilinear sample of one ground level [n, n, 4] at world position x, y."""
    count = level.shape[0]
    scale = count / (2 * _EXTENT)
    column = clip((x + _EXTENT) * scale - 0.5, 0.0, count - 1.001)
    row = clip((y + _EXTENT) * scale - 0.5, 0.0, count - 1.001)
    i, j = int(column), int(row)
    return _between(
        level[j, i, channel], level[j, i + 1, channel],
        level[j + 1, i, channel], level[j + 1, i + 1, channel], column - i, row - j,
    )  # fmt: skip


@njit()
def _detail_sample(level: Floats, x: float, y: float) -> float:
    """Bilinear sample of one repeating grass level [n, n, 1] at world position x, y."""
    count = level.shape[0]
    column, row = x * count / _DETAIL_EXTENT - 0.5, y * count / _DETAIL_EXTENT - 0.5
    i, j = math.floor(column), math.floor(row)
    i0, i1, j0, j1 = int(i % count), int((i + 1) % count), int(j % count), int((j + 1) % count)
    return _between(
        level[j0, i0, 0], level[j0, i1, 0], level[j1, i0, 0], level[j1, i1, 0], column - i, row - j
    )


@njit()
def _glitter(
    x: float, y: float, clock: float, footprint: float, pond: Floats, ripples: Floats
) -> tuple[float, float]:
    """Return ripple height in -1..1 and sparkle in 0..1 on the waterhole, 0 outside it."""
    dx, dy = x - pond[0], y - pond[1]
    u = (dx * pond[4] + dy * pond[5]) / pond[2]
    v = (-dx * pond[5] + dy * pond[4]) / pond[3]
    inside = 1 - smooth_step(0.80, 0.98, math.sqrt(u * u + v * v))
    if inside <= 0:
        return 0.0, 0.0
    strength = inside * (1 - smooth_step(0.12, 0.45, footprint))
    height = 0.0
    for k in range(3):
        phase = 2 * math.pi * ripples[k, 2] * clock
        height += math.sin(ripples[k, 0] * dx + ripples[k, 1] * dy + phase) / 3
    return height * strength, smooth_step(0.55, 0.95, height) * strength


@njit()
def _level_of(footprint: float, texel: float) -> float:
    """Return the map level, 0 (finest) to 5, whose texels match a footprint in units."""
    return clip(math.log2(max(footprint / texel * 0.5, 1.0)), 0.0, 4.999)


@njit()
def _add_grass(
    colour: Floats, x: float, y: float, footprint: float, grassy: float, details: Maps
) -> None:
    """Scale a ground colour [3] by the grass pattern."""
    lod = _level_of(footprint, _DETAIL_TEXEL)
    level = int(lod)
    pattern = _detail_sample(details[level], x, y)
    pattern += (_detail_sample(details[level + 1], x, y) - pattern) * (lod - level)
    pattern *= 0.085 * grassy * (1 - smooth_step(0.5, 1.2, footprint))
    for k in range(3):
        colour[k] *= 1 + pattern


@njit()
def _add_water(
    colour: Floats,
    x: float,
    y: float,
    clock: float,
    footprint: float,
    pond: Floats,
    ripples: Floats,
) -> None:
    """Add ripples and sparkle to a ground colour [3]."""
    ripple, sparkle = _glitter(x, y, clock, footprint, pond, ripples)
    for k in range(3):
        bright = 1.00 if k == 0 else (0.95 if k == 1 else 0.80)
        colour[k] += 0.05 * ripple + 0.55 * (bright - colour[k]) * sparkle


@njit(fastmath=True)
def _draw_ground(
    buffer: Floats,
    x: float,
    y: float,
    yaw: float,
    horizon: float,
    clock: float,
    levels: Maps,
    details: Maps,
    mean: Floats,
    pond: Floats,
    ripples: Floats,
) -> None:
    cos, sin = math.cos(yaw), math.sin(yaw)
    colour = np.empty(3)
    for j in range(_H):
        below = j + 0.5 - horizon
        if below <= -0.5:
            continue
        cover = below + 0.5 if below < 0.5 else 1.0
        depth = _EYE * _F / max(below, 0.25)
        footprint = depth * depth / (_EYE * _F)  # units per pixel row
        lod = _level_of(footprint, _TEXEL)
        level = int(lod)
        for i in range(_W):
            offset = (i + 0.5 - _W / 2) / _F
            gx, gy = x + (cos - sin * offset) * depth, y + (sin + cos * offset) * depth
            edge = smooth_step(30.0, 39.0, math.sqrt(gx * gx + gy * gy)) if depth > 25 else 0.0
            for k in range(3):
                value = _ground_sample(levels[level], gx, gy, k)
                value += (_ground_sample(levels[level + 1], gx, gy, k) - value) * (lod - level)
                colour[k] = value * (1 - edge) + mean[k] * edge
            if footprint < 1.2:
                grassy = _ground_sample(levels[level], gx, gy, 3)
                _add_grass(colour, gx, gy, footprint, grassy, details)
            if footprint < 0.45:
                _add_water(colour, gx, gy, clock, footprint, pond, ripples)
            sunward = 0.5 + 0.5 * math.cos(yaw + math.atan(offset) - _SUN)
            clear = math.exp(-((depth * math.sqrt(1 + offset * offset) / FOG_RANGE) ** 1.5))
            for k in range(3):
                value = colour[k] * (0.88 + 0.16 * sunward) * clear
                value += haze(sunward, k) * 0.96 * (1 - clear)
                if cover < 1:
                    value = buffer[j, i, k] * (1 - cover) + value * cover
                buffer[j, i, k] = value


# ------------------------------------------------------------------ frames
@njit(parallel=True, nogil=True)
def _draw_frames(
    out: NDArray[np.uint8],
    poses: Floats,
    parts: Floats,
    levels: Maps,
    details: Maps,
    mean: Floats,
    sky: Floats,
    cloud: Floats,
    open_sky: Floats,
    pond: Floats,
    ripples: Floats,
) -> None:
    for n in prange(len(poses)):
        x, y, yaw, pitch, clock = poses[n]
        horizon = _H / 2 + pitch
        buffer = np.empty((_H, _W, 3), np.float32)
        _draw_sky(buffer, yaw, horizon, clock, sky, cloud, open_sky)
        _draw_ground(buffer, x, y, yaw, horizon, clock, levels, details, mean, pond, ripples)
        depth = depths_of(parts[n], x, y, yaw)
        for k in np.argsort(-depth):
            if depth[k] >= _NEAR:
                draw_part(buffer, parts[n, k], depth[k], x, y, yaw, horizon)
        for j in range(_H):
            for i in range(_W):
                for k in range(3):
                    out[n, k, j, i] = np.uint8(clip(buffer[j, i, k], 0.0, 1.0) * 255 + 0.5)


def render(poses: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Render poses [n, 5] (x, y, yaw, pitch, clock) to pictures [n, 3, 160, 256]."""
    poses = np.ascontiguousarray(poses, dtype=np.float64)
    out = np.empty((len(poses), 3, _H, _W), np.uint8)
    parts = place.parts_at(poses[:, 4])
    maps = _GROUND, _DETAIL, _GROUND_MEAN, _SKY, _CLOUD, _OPEN, _POND, place.RIPPLES
    _draw_frames(out, poses, parts, *maps)
    return out
