"""Baked maps of the true picture: sky panorama, clouds, ground colours and the grass pattern.

Computed once at import (about a second) and sampled by `truth.py`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pipeline.tiny import place

Floats = NDArray[np.floating]

PANORAMA_COLUMNS, PANORAMA_ROWS, ROWS_PER_SLOPE = 2048, 264, 330.0
GROUND_EXTENT, GROUND_TEXEL = 40.0, 0.1
DETAIL_EXTENT, DETAIL_TEXELS = 8.0, 512  # the grass pattern repeats every 8 units
COARSER_LEVELS = 5
HAZE_BLUE = 0.52


def _mix(picture: Floats, colour: tuple[float, float, float], amount: Floats) -> Floats:
    """Blend a colour over a picture [..., 3] by amount [...]."""
    mixed: Floats = picture * (1 - amount[..., None]) + np.array(colour) * amount[..., None]
    return mixed


def _smooth(low: float, high: float, value: Floats) -> Floats:
    t: Floats = np.clip((value - low) / (high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t))


def _within(value: Floats, softness: float) -> Floats:
    """Return 1 where value is well below 0, falling smoothly to 0 above it."""
    return np.asarray(1 / (1 + np.exp(np.clip(value / softness, -60, 60))))


def _angle_between(one: Floats, other: float) -> Floats:
    return np.asarray(np.arctan2(np.sin(one - other), np.cos(one - other)))


def _halved(fine: Floats) -> Floats:
    return np.asarray((fine[::2, ::2] + fine[1::2, ::2] + fine[::2, 1::2] + fine[1::2, 1::2]) / 4)


def _levels(finest: Floats) -> tuple[NDArray[np.float32], ...]:
    """Return a map [n, n, c] and its coarser versions, each half the size."""
    levels = [finest.astype(np.float32)]
    for _ in range(COARSER_LEVELS):
        levels.append(_halved(levels[-1]).astype(np.float32))
    return tuple(np.ascontiguousarray(level) for level in levels)


# ------------------------------------------------------------------ sky
def _ridges(azimuth: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the slopes of three ridges, far to near; the far one carries a table mountain."""
    peak = 0.115 * np.exp(-((_angle_between(azimuth, 2.5) / 0.42) ** 2))
    mountain = np.minimum(peak, 0.092 + 0.004 * np.sin(9 * azimuth))
    far = 0.045 + 0.018 * np.sin(3 * azimuth + 1) + 0.010 * np.sin(7 * azimuth + 0.3) + mountain
    middle = 0.030 + 0.015 * np.sin(4 * azimuth + 2) + 0.008 * np.sin(9 * azimuth + 0.8)
    middle = middle + 0.004 * np.sin(17 * azimuth)
    near = 0.012 + 0.008 * np.sin(5 * azimuth + 4) + 0.004 * np.sin(13 * azimuth + 1)
    return far, middle, near


def _air(azimuth: Floats, slope: Floats) -> Floats:
    """Return the cloudless sky [a, s, 3] with glow and sun disc."""
    from_sun = _angle_between(azimuth, place.SUN_AZIMUTH)
    sunward = 0.5 + 0.5 * np.cos(from_sun)
    haze = (0.86 + 0.14 * sunward + 0 * slope, 0.66 + 0.12 * sunward + 0 * slope)
    sky = np.stack([*haze, np.full_like(haze[0], HAZE_BLUE)], -1)
    height = np.clip(slope / 0.62, 0, 1) + 0 * azimuth
    sky = _mix(sky, (0.90, 0.60, 0.50), _smooth(0, 0.35, height))
    sky = _mix(sky, (0.36, 0.44, 0.60), _smooth(0.25, 1, height))
    distance = np.sqrt(from_sun**2 + (slope - place.SUN_SLOPE) ** 2)
    glow = 0.75 * np.exp(-((distance / 0.22) ** 2)) + 0.30 * np.exp(-((distance / 0.7) ** 2))
    sky = _mix(sky, (1.0, 0.86, 0.55), np.clip(glow, 0, 1))
    disc = np.clip((place.SUN_RADIUS - distance) * ROWS_PER_SLOPE + 0.5, 0, 1)
    return _mix(sky, (1.0, 0.96, 0.80), disc)


def _add_ridges(sky: Floats, azimuth: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Draw the ridges; return the sky and how open it is (1 above everything)."""
    colours = ((0.50, 0.42, 0.52), (0.52, 0.40, 0.38), (0.58, 0.42, 0.26))
    open_sky = np.ones(sky.shape[:2])
    for ridge, colour, opacity in zip(_ridges(azimuth), colours, (0.62, 0.62, 0.70), strict=True):
        cover = np.clip((ridge - slope) * ROWS_PER_SLOPE + 0.5, 0, 1)
        sky = _mix(sky, colour, cover * opacity)
        open_sky = open_sky * (1 - cover)
    return sky, open_sky


def _add_far_trees(
    sky: Floats, open_sky: Floats, azimuth: Floats, slope: Floats
) -> tuple[Floats, Floats]:
    """Draw acacias on the horizon."""
    random = np.random.RandomState(4)
    for _ in range(46):
        place, size = random.rand() * 2 * math.pi, 0.020 + 0.028 * random.rand()
        across, up = _angle_between(azimuth, place) / size, slope / size
        ellipse = np.sqrt((across / 0.78) ** 2 + ((up - 0.86) / 0.20) ** 2)
        crown = np.clip((1 - ellipse) * 5 + 0.5, 0, 1)
        trunk = np.clip((0.07 + 0.02 * up - np.abs(across)) * 20 + 0.5, 0, 1) * (up < 0.86)
        cover = np.maximum(crown, trunk)
        sky = _mix(sky, (0.46, 0.38, 0.30), 0.55 * cover)
        open_sky = open_sky * (1 - cover)
    return sky, open_sky


def _clouds(azimuth: Floats, slope: Floats) -> Floats:
    """Return the cover [a, s] of nine long clouds."""
    clear = np.ones(np.broadcast_shapes(azimuth.shape, slope.shape))
    for k in range(9):
        centre, level = 0.4 + 0.7 * k, 0.24 + 0.10 * math.sin(2.3 * k + 1)
        across = _angle_between(azimuth, centre)
        up = slope - level - 0.02 * np.sin(6 * across + k)
        puff = (across / (0.26 + 0.05 * math.sin(5 * k))) ** 2 + (up / 0.030) ** 2
        clear = clear * (1 - 0.55 * np.exp(-puff))
    return 1 - clear


def bake_sky() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return sky colours [2049, 264, 3], cloud cover [2049, 264] and open sky [2049, 264].

    Columns run once round the horizon (the last repeats the first), rows from slope 0 up.
    """
    share = 4  # sub-columns averaged per column
    column = (np.arange(PANORAMA_COLUMNS * share) + 0.5) / share - 0.5
    azimuth = (column / PANORAMA_COLUMNS * 2 * math.pi)[:, None]
    slope = (np.arange(PANORAMA_ROWS) / ROWS_PER_SLOPE)[None]
    sky, open_sky = _add_ridges(_air(azimuth, slope), azimuth, slope)
    sky, open_sky = _add_far_trees(sky, open_sky, azimuth, slope)

    def closed(table: Floats) -> NDArray[np.float32]:
        table = table.reshape(PANORAMA_COLUMNS, share, *table.shape[1:]).mean(1)
        return np.concatenate([table, table[:1]]).astype(np.float32)

    return closed(sky), closed(_clouds(azimuth, slope)), closed(open_sky)


# ------------------------------------------------------------------ ground
def _shadow(
    ground: Floats, x: Floats, y: Floats, reach: float, long: float, wide: float, darkness: float
) -> Floats:
    """Lay the long shadow of something at the origin of (x, y) on the ground: blob and stem."""
    away_x, away_y = -math.cos(place.SUN_AZIMUTH), -math.sin(place.SUN_AZIMUTH)
    along, across = x * away_x + y * away_y, -x * away_y + y * away_x
    blob = _within(np.sqrt(((along - reach) / long) ** 2 + (across / wide) ** 2) - 1, 0.10)
    stem = _within(np.abs(across) - 0.16, 0.05) * (along > 0) * (along < reach)
    return _mix(ground, (0.36, 0.26, 0.16), darkness * np.maximum(blob, 0.9 * stem))


def _pond_rim(x: Floats, y: Floats) -> Floats:
    """Return the distance from the waterhole's centre as a share of its rim's."""
    cos, sin = math.cos(place.POND_TURN), math.sin(place.POND_TURN)
    dx, dy = x - place.POND_X, y - place.POND_Y
    u = (dx * cos + dy * sin) / place.POND_LONG
    v = (-dx * sin + dy * cos) / place.POND_SHORT
    return np.sqrt(u**2 + v**2)


def _savanna(x: Floats, y: Floats) -> Floats:
    """Return the colours [n, n, 3] of dry and greener grass."""
    dry = 0.5 + 0.22 * np.sin(0.31 * x + 0.9 * np.sin(0.23 * y))
    dry = dry + 0.20 * np.sin(0.37 * y - 0.27 * x + 1) + 0.12 * np.sin(0.71 * x + 0.53 * y + 2)
    dry = dry + 0.08 * np.sin(1.3 * y - 0.9 * x)
    ground = np.broadcast_to(np.array([0.80, 0.58, 0.26]), (*x.shape, 3))
    ground = _mix(ground, (0.93, 0.74, 0.36), np.clip(dry, 0, 1))
    green = np.clip(0.5 * np.sin(0.21 * x + 2) * np.sin(0.26 * y + 0.5) + 0.1, 0, 1)
    return _mix(ground, (0.56, 0.54, 0.24), 0.45 * green)


def bake_ground() -> tuple[NDArray[np.float32], ...]:
    """Return ground colour and grassiness [n, n, 4] (rows y, columns x) and five coarser levels."""
    count = int(2 * GROUND_EXTENT / GROUND_TEXEL)
    line = (np.arange(count) + 0.5) * GROUND_TEXEL - GROUND_EXTENT
    x, y = np.meshgrid(line, line)
    path = _within(np.abs(y - place.path_y(x)) - 0.55, 0.10)
    rim = _pond_rim(x, y)
    ground = _mix(_savanna(x, y), (0.91, 0.77, 0.56), 0.90 * path)
    ground = _mix(ground, (0.60, 0.50, 0.24), 0.8 * _within(rim - 1.28, 0.07))
    ground = _mix(ground, (0.47, 0.60, 0.68), _within(rim - 1, 0.03))
    ground = _mix(ground, (0.72, 0.74, 0.72), 0.6 * _within(rim - 0.62, 0.12))
    for tree_x, tree_y, height, radius in place.TREES:
        size = 1.15 * radius, 0.75 * radius
        ground = _shadow(ground, x - tree_x, y - tree_y, 0.85 * height, *size, 0.55)
    for rock_x, rock_y, radius, _ in place.ROCKS:
        size = 1.2 * radius, 0.9 * radius
        ground = _shadow(ground, x - rock_x, y - rock_y, 0.9 * radius, *size, 0.5)
    ground = _shadow(ground, x - place.HUT_X, y - place.HUT_Y, 1.3, 2.1, 1.25, 0.55)
    grassy = (1 - 0.75 * path) * (1 - _within(rim - 1.12, 0.05))
    return _levels(np.concatenate([ground, grassy[..., None]], -1))


def bake_detail() -> tuple[NDArray[np.float32], ...]:
    """Return the repeating grass pattern [n, n, 1] (mean 0, deviation 1) and coarser levels."""
    noise = np.random.RandomState(3).randn(DETAIL_TEXELS, DETAIL_TEXELS)
    cycles = np.fft.fftfreq(DETAIL_TEXELS, 1 / DETAIL_TEXELS) / DETAIL_EXTENT  # per unit
    cycle = np.hypot(cycles[:, None], cycles[None])
    band = np.exp(-((cycle / 5.5) ** 2)) * (1 - np.exp(-((cycle / 1.1) ** 2)))
    pattern = np.fft.ifft2(np.fft.fft2(noise) * band).real
    pattern = np.tanh(pattern / pattern.std() * 1.2)
    pattern = (pattern - pattern.mean()) / pattern.std()
    return _levels(pattern[..., None])
