"""Parts of the true picture: limbs, ellipsoids, cones, cylinders, boards and tufts, pixel by pixel.

Compiled by numba; drawn over a float buffer [H, W, 3] that holds what lies behind.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.tiny import camera, place
from training.tiny import landscape

Floats = NDArray[np.floating]

FOG_RANGE = 42.0
# fmt: off
# Colours by look (order of place.TRUNK ...): lit and shaded side.
LIT = np.array([
    (.44, .31, .20), (.42, .30, .19), (.46, .50, .19), (.42, .46, .18), (.48, .51, .21),
    (.66, .56, .45), (.64, .54, .43), (.76, .56, .36), (.72, .55, .28), (.22, .14, .10),
    (.16, .13, .15), (.86, .66, .38), (.78, .60, .36), (.80, .70, .34), (.78, .70, .68)])
SHADE = np.array([
    (.15, .10, .08), (.16, .11, .09), (.15, .19, .09), (.14, .18, .09), (.16, .20, .10),
    (.34, .26, .23), (.34, .26, .23), (.46, .31, .21), (.36, .24, .12), (.16, .10, .08),
    (.16, .13, .15), (.42, .24, .13), (.44, .29, .17), (.47, .37, .14), (.60, .54, .56)])
# Grass blades of a tuft: root and tip across (-1..1), tip height (-1..1), half-width.
BLADES = np.array([
    (-.10, -.85, .10, .10), (-.06, -.45, .70, .11), (.02, .05, 1.00, .12), (.05, .40, .55, .11),
    (.12, .80, .25, .10), (-.14, -.15, .35, .09), (.10, .62, .80, .08)])
# fmt: on

_W, _H, _F, _EYE = camera.WIDTH, camera.HEIGHT, camera.FOCAL, camera.EYE_HEIGHT
_NEAR, _NEAR_END, _GRASS_RANGE = camera.NEAR_DEPTH, camera.NEAR_FADE_END, place.GRASS_RANGE
_SUN, _BLUE = place.SUN_AZIMUTH, landscape.HAZE_BLUE
_SEGMENT, _BLOB, _CONE, _CYLINDER, _PANEL = range(5)
_CANOPY, _CANOPY_TOP, _TRUNK, _BRANCH = (
    place.CANOPY, place.CANOPY_TOP, place.TRUNK, place.BRANCH
)  # fmt: skip
_HIDE, _LEG, _TUFT, _SMOKE = place.HIDE, place.LEG, place.TUFT, place.SMOKE


@njit(inline="always")
def clip(value: float, low: float, high: float) -> float:
    """Return value, but no less than low and no more than high."""
    return low if value < low else (high if value > high else value)


@njit(inline="always")
def smooth_step(low: float, high: float, value: float) -> float:
    """Return the cubic step from 0 at low to 1 at high."""
    t = clip((value - low) / (high - low), 0.0, 1.0)
    return t * t * (3 - 2 * t)


@njit(inline="always")
def haze(sunward: float, channel: int) -> float:
    """Return the colour of far air; sunward is 1 towards the sun and 0 away from it."""
    if channel == 0:
        return 0.86 + 0.14 * sunward
    return 0.66 + 0.12 * sunward if channel == 1 else _BLUE


@njit()
def _tuft_cover(u: float, v: float, half: float) -> float:
    """Return coverage of a grass tuft at u across, v up (-1..1), `half` pixels to each side."""
    cover = 0.0
    for k in range(len(BLADES)):
        root, tip, top, thick = BLADES[k]
        rise = (v + 1) / (top + 1)
        if 0 <= rise <= 1.05:
            bent = root + (tip - root) * rise**1.6
            width = thick * (1 - 0.9 * rise)
            blade = clip(0.5 + (width - abs(u - bent)) * half, 0.0, 1.0)
            cover = max(cover, blade * clip((1.05 - rise) * 8, 0.0, 1.0))
    return cover * min(1.0, half / 2.0)


@njit()
def _segment_pixel(
    look: int, qx: float, qy: float, vx: float, vy: float, wa: float, wb: float, aside: float
) -> tuple[float, float]:
    """Return cover and tone at (qx, qy) from a limb's first end; (vx, vy) leads to the other."""
    length = vx * vx + vy * vy + 1e-6
    free = (qx * vx + qy * vy) / length
    along = clip(free, 0.0, 1.0)
    half = wa + (wb - wa) * along
    shown = max(half, 0.5)
    off_x, off_y = qx - along * vx, qy - along * vy
    u, v = (qy * vx - qx * vy) / math.sqrt(length) / shown, 2 * along - 1
    if look == _TUFT:
        return _tuft_cover(u, 2 * free - 1, shown), 0.25 + 0.7 * along
    cover = clip(0.5 + shown - math.hypot(off_x, off_y), 0.0, 1.0) * min(1.0, half / 0.5)
    tone = 0.5
    if look in (_TRUNK, _BRANCH):
        bark = 0.12 * math.sin(11 * u + 2 * math.sin(7 * v)) * math.sin(16 * v + 4 * u)
        tone = clip(0.45 + 0.40 * off_x / shown * aside + bark, 0.0, 1.0)
    elif look in (_HIDE, _LEG):
        tone = 0.62 - 0.30 * off_y / shown
        if look == _HIDE:
            patch = math.sin(7.5 * v + 1.3 * math.sin(4 * u)) * math.sin(5.2 * u + 2.4 * v)
            tone -= 0.55 * smooth_step(-0.1, 0.25, patch)
        tone = clip(tone, 0.0, 1.0)
    return cover, tone


@njit()
def _blob_pixel(
    look: int, qx: float, qy: float, wa: float, wb: float, to_ground: float, age: float
) -> tuple[float, float]:
    """Return cover and tone at (qx, qy) from an ellipse's centre, half-axes wa, wb."""
    ex, ey = qx / wa, qy / wb
    e = math.sqrt(ex * ex + ey * ey)
    if look == _SMOKE:
        cover = 0.42 * (1 - age) * min(1.0, 8 * age) * max(0.0, 1 - e * e) ** 1.5
        return cover, smooth_step(-0.75, 0.65, -ey + 0.25 * e)
    if _CANOPY <= look <= _CANOPY_TOP:
        angle = math.atan2(ey, ex)
        e /= 1 + 0.045 * math.sin(9 * angle + look) + 0.035 * math.sin(16 * angle + 2.3 * look)
    gradient = math.sqrt((ex / wa) ** 2 + (ey / wb) ** 2) + 1e-6
    cover = clip(0.5 - e * (e - 1) / gradient, 0.0, 1.0)
    tone = smooth_step(-0.75, 0.65, -ey + 0.25 * e)
    if _CANOPY <= look <= _CANOPY_TOP:
        clump = math.sin(10.5 * ex + 2.1 * look + 1.5 * math.sin(5 * ey))
        return cover, clip(tone + 0.24 * clump * math.sin(7.5 * ey + 3.0 * ex), 0.0, 1.0)
    grain = math.sin(8 * ex + 5 * ey) * math.sin(6 * ey - 4 * ex + look)
    return cover * clip(to_ground + 0.5, 0.0, 1.0), clip(tone + 0.10 * grain, 0.0, 1.0)


@njit()
def _solid_pixel(
    kind: int, qx: float, from_top: float, from_base: float, wa: float
) -> tuple[float, float]:
    """Return cover and tone of a cone, cylinder or panel; pixels from its axis, top and base."""
    half, sag = wa, 0.1 * wa
    height = from_top - from_base
    up = from_base / height  # 0 at the base, -1 at the top
    tone = smooth_step(0.9, -0.9, qx / wa)
    if kind == _CONE:
        half = wa * clip(from_top / height, -0.02, 1.0)
        sag = 0.10 * wa * (1 - (qx / wa) ** 2)
        fan = qx / max(half, 1.0)
        thatch = math.sin(21 * fan) * (0.4 + 0.6 * math.sin(15 * up + 2 * fan))
        tone = clip(tone + 0.16 * thatch, 0.0, 1.0)
    elif kind == _CYLINDER:
        sag = 0.20 * wa * math.sqrt(max(0.0, 1 - (qx / wa) ** 2))
        clay = math.sin(13 * qx / wa + 1) * math.sin(9 * up)
        tone = clip(tone + 0.07 * clay, 0.0, 1.0)
    cover = clip(half - abs(qx) + 0.5, 0.0, 1.0) * clip(sag - from_base + 0.5, 0.0, 1.0)
    return cover * clip(from_top + 0.5, 0.0, 1.0), tone


@njit(fastmath=True)
def draw_part(
    buffer: Floats, part: Floats, depth: float, x: float, y: float, yaw: float, horizon: float
) -> None:
    """Draw one part row (`place.parts_at`) over a buffer [H, W, 3]."""
    kind, look = int(part[0]), int(part[1])
    fade = smooth_step(_NEAR, _NEAR_END, depth)
    if look == _TUFT:
        fade *= 1 - smooth_step(0.65 * _GRASS_RANGE, _GRASS_RANGE, depth)
    if fade <= 0:
        return
    # Project both ends (or centre, base and top) and find the box to fill.
    cos, sin = math.cos(yaw), math.sin(yaw)
    px, py = part[2], part[3]
    scale = _F / depth
    ax = _W / 2 + scale * (-(px - x) * sin + (py - y) * cos)
    ay = horizon - scale * (part[4] - _EYE)
    bx, by = ax, horizon - scale * (part[7] - _EYE)
    wa, wb = part[8] * scale, part[9] * scale
    if kind == _SEGMENT:
        za = max((px - x) * cos + (py - y) * sin, 0.3)
        zb = max((part[5] - x) * cos + (part[6] - y) * sin, 0.3)
        ax = _W / 2 + _F * (-(px - x) * sin + (py - y) * cos) / za
        bx = _W / 2 + _F * (-(part[5] - x) * sin + (part[6] - y) * cos) / zb
        ay, by = horizon - _F * (part[4] - _EYE) / za, horizon - _F * (part[7] - _EYE) / zb
        wa, wb = part[8] * _F / za, part[9] * _F / zb
        margin = max(wa, wb) + 1
        left, right = min(ax, bx) - margin, max(ax, bx) + margin
        top, bottom = min(ay, by) - margin, max(ay, by) + margin
    else:
        if kind == _PANEL:
            facing = math.cos(part[10] - math.atan2(y - py, x - px))
            if facing < 0.05:
                return
            wa *= facing
        left, right = ax - wa - 1, ax + wa + 1
        top, bottom = by - 1, ay + 1 + 0.25 * wa
        if kind == _BLOB:
            top, bottom = ay - wb - 1, ay + wb + 1

    azimuth = math.atan2(py - y, px - x)
    sunward = 0.5 + 0.5 * math.cos(azimuth - _SUN)
    aside = math.sin(_SUN - azimuth)
    light = 1.08 - 0.62 * sunward**1.5
    fog = 1 - math.exp(-((depth / FOG_RANGE) ** 1.5))
    for j in range(max(0, math.floor(top)), min(_H, math.ceil(bottom) + 1)):
        for i in range(max(0, math.floor(left)), min(_W, math.ceil(right) + 1)):
            qx, qy = i + 0.5 - ax, j + 0.5 - ay
            if kind == _SEGMENT:
                cover, tone = _segment_pixel(look, qx, qy, bx - ax, by - ay, wa, wb, aside)
            elif kind == _BLOB:
                to_ground = horizon + _EYE * scale - (j + 0.5)
                cover, tone = _blob_pixel(look, qx, qy, wa, wb, to_ground, part[10])
            else:
                cover, tone = _solid_pixel(kind, qx, j + 0.5 - by, qy, wa)
            if cover <= 0:
                continue
            cover *= fade
            for k in range(3):
                value = (SHADE[look, k] * (1 - tone) + LIT[look, k] * tone) * light * (1 - fog)
                value += haze(sunward, k) * fog
                buffer[j, i, k] = buffer[j, i, k] * (1 - cover) + value * cover


@njit()
def depths_of(parts: Floats, x: float, y: float, yaw: float) -> Floats:
    """Return how far along the view axis every part lies."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    depth = np.empty(len(parts))
    for k in range(len(parts)):
        px, py = parts[k, 2], parts[k, 3]
        if parts[k, 0] == _SEGMENT:
            px, py = 0.5 * (px + parts[k, 5]), 0.5 * (py + parts[k, 6])
        depth[k] = (px - x) * cos + (py - y) * sin
        if parts[k, 0] == _CONE:
            depth[k] -= 0.02  # the roof lies over the wall
    return depth
