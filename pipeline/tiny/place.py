"""The place: what stands where on the veldt, how big it is, and how it moves with the clock.

This is the map that the true renderer and the neural model share. It knows nothing about the player
(`motion.py`) or about pixels (`scene.py`, the renderer of the training).

World units are roughly metres, x/y on the ground, z up; azimuth 0 points along +x and grows to the
right, as seen from above with y to the right of x. The clock counts seconds and wraps after
`CLOCK_PERIOD`; every cycle below divides it. No frame rate is known here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CLOCK_PERIOD = 576.0  # seconds

# ------------------------------------------------------------------ light and sky
SUN_AZIMUTH, SUN_SLOPE, SUN_RADIUS = 0.55, 0.16, 0.060  # slope = tan(elevation)
CLOUD_TURN = 2 * math.pi / CLOCK_PERIOD  # radians of drift per second

# ------------------------------------------------------------------ the map
# fmt: off
INNER_TREES = [(6.2, 3.4), (-5.0, 6.3), (-8.2, -3.0), (2.5, -7.6),
               (8.8, -4.4), (0.8, 9.2), (-2.6, -10.4), (-10.6, 2.6)]
# fmt: on


def _plant_trees() -> Array:
    """Return trees [20, 4] as x, y, height, canopy radius; the first 8 are within reach."""
    random = np.random.RandomState(11)
    trees = [(x, y, 3.2 + 1.5 * random.rand(), 1.5 + 0.8 * random.rand()) for x, y in INNER_TREES]
    for k in range(12):
        angle = 2 * math.pi * (k + 0.6 * random.rand()) / 12
        distance = 15 + 12 * random.rand()
        trees.append(
            (
                distance * math.cos(angle),
                distance * math.sin(angle),
                4.2 + 1.8 * random.rand(),
                2.0 + 1.0 * random.rand(),
            )
        )
    return np.array(trees)


TREES = _plant_trees()
# fmt: off
ROCKS = np.array([(3.8, -1.6, 0.55, 0.40), (-3.4, 1.2, 0.75, 0.5), (-1.2, -5.2, 0.5, 0.36),
                  (10.4, 1.4, 0.9, 0.62), (-6.6, 9.2, 0.8, 0.55), (5.2, 8.2, 0.6, 0.45)])
HUT_X, HUT_Y, HUT_RADIUS, DOOR_AZIMUTH = -3.6, -5.8, 1.15, 0.9
POND_X, POND_Y, POND_LONG, POND_SHORT, POND_TURN = 3.2, 3.9, 2.5, 1.5, 0.5

# Birds: circle centre x, y, radius, height, seconds per round, phase, direction.
BIRDS = np.array([(2.0, 2.0, 9.0, 6.2, 24.0, 0.0, 1.0), (-8.0, -6.0, 7.0, 5.2, 24.0, 2.4, -1.0),
                  (6.0, 4.0, 12.0, 6.0, 36.0, 4.0, 1.0), (6.5, 4.5, 12.6, 6.5, 36.0, 3.87, 1.0),
                  (5.5, 3.5, 12.8, 5.8, 36.0, 3.75, 1.0), (-3.0, 8.0, 10.0, 5.6, 32.0, 1.0, -1.0)])
# fmt: on
FLAP_SECONDS = 0.75

# Giraffes walk round the place in single file: circle radius, phase, size. They stay out of reach.
GIRAFFES = np.array([(15.6, 0.02, 1.0), (15.9, -0.12, 0.9), (15.2, -0.21, 0.62)])
ROUND_SECONDS, STRIDE_SECONDS = 192.0, 2.0
# A giraffe's limbs: rear-to-front and up, of both ends, half-widths, side, swing of the foot.
# fmt: off
GIRAFFE_LIMBS = np.array([
    (-0.66, 1.86, 0.56, 2.12, 0.34, 0.38, 0.0, 0.0),  # body
    (0.62, 2.26, 1.14, 3.74, 0.21, 0.11, 0.0, 0.0),  # neck
    (1.10, 3.82, 1.54, 3.62, 0.12, 0.07, 0.0, 0.0),  # head
    (-0.82, 1.95, -0.98, 1.12, 0.04, 0.03, 0.0, 0.0),  # tail
    (-0.66, 1.80, -0.66, 0.0, 0.12, 0.06, 0.17, 0.34),
    (-0.66, 1.80, -0.66, 0.0, 0.12, 0.06, -0.17, -0.34),
    (0.58, 1.95, 0.58, 0.0, 0.12, 0.06, 0.17, -0.34),
    (0.58, 1.95, 0.58, 0.0, 0.12, 0.06, -0.17, 0.34)])
# fmt: on
SMOKE_PUFFS, SMOKE_SECONDS = 9, 9.0  # a puff's life; the hut's hearth is lit
GRASS_RANGE = 14.0  # units; tufts farther away are not drawn


def _place_obstacles() -> Array:
    """Return circles [n, 3] as x, y, radius: reachable trees, rocks, hut, and three for water."""
    circles = [(x, y, 1.2) for x, y in INNER_TREES]
    circles += [(x, y, radius * 1.15 + 0.45) for x, y, radius, _ in ROCKS]
    circles.append((HUT_X, HUT_Y, HUT_RADIUS * 1.5 + 0.7))
    for along, radius in ((-1.1, 1.35), (0.0, 1.5), (1.1, 1.35)):
        x, y = along * math.cos(POND_TURN), along * math.sin(POND_TURN)
        circles.append((POND_X + x, POND_Y + y, radius))
    return np.array(circles)


# The eye never comes closer than these, so nothing is ever seen from inside.
OBSTACLES = _place_obstacles()


def path_y(x: Array) -> Array:
    """Return where the winding footpath runs at x."""
    return 2.2 * np.sin(0.33 * x + 0.4) - 0.4 * np.cos(0.7 * x) - 1.2


# ------------------------------------------------------------------ parts
# A part is one simple solid. Columns of a part row:
#   kind, look, x0, y0, z0, x1, y1, z1, r0, r1, extra
# SEGMENT: a limb from point 0 to point 1 with half-widths r0, r1.
# BLOB: an ellipsoid around point 0, r0 across, r1 up.
# CONE, CYLINDER: base point 0, top height z1, radius r0.
# PANEL: a flat board from z0 up to z1, half-width r0, turned towards azimuth `extra`.
# (`extra` of a puff of smoke is its age, 0 to 1.)
SEGMENT, BLOB, CONE, CYLINDER, PANEL = range(5)
(
    TRUNK,
    BRANCH,
    CANOPY,
    CANOPY_SIDE,
    CANOPY_TOP,
    ROCK,
    PEBBLE,
    WALL,
    ROOF,
    DOOR,
    WING,
    HIDE,
    LEG,
    TUFT,
    SMOKE,
) = range(15)
PART_COLUMNS, LOOKS = 11, 15


@dataclass
class _Builder:
    """Collects part rows and how far and with which phase the wind moves each."""

    rows: list[list[float]]
    wind: list[tuple[float, float]]

    def add(self, row: list[float], sway: float = 0.0, phase: float = 0.0) -> None:
        self.rows.append(row)
        self.wind.append((sway, phase))

    def tree(self, x: float, y: float, height: float, radius: float, angle: float) -> None:
        """Add an acacia: a leaning trunk, three branches, three flat crowns."""
        cos, sin = math.cos(angle), math.sin(angle)
        top_x, top_y = x + 0.35 * cos, y + 0.35 * sin
        fork = [(x + top_x) / 2, (y + top_y) / 2, 0.48 * height]
        self.add([SEGMENT, TRUNK, x, y, -0.05, *fork, 0.17, 0.11, 0])
        # Crowns: offset sideways and ahead, height, size, thickness; shares of radius or height.
        crowns = [
            (0, 0, 0.90, 1, 0.15),
            (0.50, 0, 0.83, 0.62, 0.11),
            (-0.42, 0.45, 0.97, 0.58, 0.11),
        ]
        for look, (side, ahead, up, size, thick) in enumerate(crowns, CANOPY):
            dx, dy = radius * (cos * side - sin * ahead), radius * (sin * side + cos * ahead)
            phase = angle + 2 * up
            crown = [top_x + dx, top_y + dy, up * height, 0, 0, 0]
            self.add([BLOB, look, *crown, size * radius, thick * height * 0.8, 0], 0.05, phase)
            spread, turn = 0.25 * radius * size, angle + 3 * up
            tip_x = top_x + 1.1 * dx + spread * math.cos(turn)
            tip_y = top_y + 1.1 * dy + spread * math.sin(turn)
            tip = [tip_x, tip_y, up * height - 0.05]
            self.add([SEGMENT, BRANCH, *fork, *tip, 0.095, 0.05, 0], 0.05, phase)

    def grass(self) -> None:
        """Add 150 tufts, off the path and clear of water and obstacles."""
        random = np.random.RandomState(8)
        planted = 0
        while planted < 150:
            angle, distance = random.rand() * 2 * math.pi, 15 * math.sqrt(random.rand())
            x, y = distance * math.cos(angle), distance * math.sin(angle)
            size, phase = 0.6 + 0.7 * random.rand(), random.rand() * 6.28
            wet = math.hypot(x - POND_X, y - POND_Y) < POND_LONG + 0.5
            gap = np.hypot(OBSTACLES[:, 0] - x, OBSTACLES[:, 1] - y) - OBSTACLES[:, 2]
            if wet or (gap < -0.3).any() or abs(y - path_y(np.array(x))) < 0.9:
                continue
            root, tip = [x, y, -0.03], [x, y, 0.46 * size]
            self.add([SEGMENT, TUFT, *root, *tip, 0.3 * size, 0.3 * size, 0], 0.06 * size, phase)
            planted += 1

    def rock(self, x: float, y: float, radius: float, height: float) -> None:
        """Add a boulder with a pebble leaning on it."""
        boulder = [x, y, 0.35 * height, 0, 0, 0, radius, 0.75 * height, 0]
        pebble = [x + 0.6 * radius, y - 0.5 * radius, 0.15 * height, 0, 0, 0]
        self.add([BLOB, ROCK, *boulder])
        self.add([BLOB, PEBBLE, *pebble, 0.55 * radius, 0.42 * height, 0])

    def hut(self) -> None:
        """Add the round hut: wall, door, thatched roof."""
        recess = 0.62 * HUT_RADIUS
        door_x, door_y = recess * math.cos(DOOR_AZIMUTH), recess * math.sin(DOOR_AZIMUTH)
        door = [HUT_X + door_x, HUT_Y + door_y, 0.10, 0, 0, 0.98, 0.30, 0, DOOR_AZIMUTH]
        self.add([CYLINDER, WALL, HUT_X, HUT_Y, 0, 0, 0, 1.25, HUT_RADIUS, 0, 0])
        self.add([PANEL, DOOR, *door])
        self.add([CONE, ROOF, HUT_X, HUT_Y, 1.12, 0, 0, 2.35, HUT_RADIUS * 1.5, 0, 0])


def _build_parts() -> tuple[Array, Array]:
    """Return the fixed parts [n, 11] and their wind [n, 2] (amplitude in units, phase)."""
    builder = _Builder([], [])
    random = np.random.RandomState(5)
    for x, y, height, radius in TREES:
        builder.tree(x, y, height, radius, angle=random.rand() * 6.28)
    builder.grass()
    for x, y, radius, height in ROCKS:
        builder.rock(x, y, radius, height)
    builder.hut()
    return np.array(builder.rows, dtype=np.float64), np.array(builder.wind)


_FIXED_PARTS, _WIND = _build_parts()


def _wings(clock: Array) -> Array:
    """Return the wings [n, 2 * birds, 11] of all birds at clock [n] (two flapping limbs each)."""
    cx, cy, radius, height, seconds, phase, direction = BIRDS.T
    turn = 2 * math.pi * clock[:, None] / seconds * direction + phase
    x, y = cx + radius * np.cos(turn), cy + radius * np.sin(turn)
    ahead_x, ahead_y = -np.sin(turn) * direction, np.cos(turn) * direction
    beat = 2 * math.pi * clock[:, None] / FLAP_SECONDS + 2.1 * np.arange(len(BIRDS))
    lift = 0.18 + 0.34 * np.sin(beat)
    out = np.zeros((len(clock), 2 * len(BIRDS), PART_COLUMNS))
    for wing, side in enumerate((1.0, -1.0)):
        rows = out[:, wing::2]
        rows[..., 0], rows[..., 1] = SEGMENT, WING
        rows[..., 2], rows[..., 3], rows[..., 4] = x, y, height
        rows[..., 5] = x - side * 0.85 * ahead_y
        rows[..., 6] = y + side * 0.85 * ahead_x
        rows[..., 7] = height + lift
        rows[..., 8], rows[..., 9] = 0.10, 0.03
    return out


def _giraffes(clock: Array) -> Array:
    """Return the limbs [n, giraffes * 8, 11] of all giraffes at clock [n]."""
    radius, phase, size = (column[:, None] for column in GIRAFFES.T)
    rear, low, front, high, thick0, thick1, side, swing = GIRAFFE_LIMBS.T
    clock = clock[:, None, None]
    turn = phase + 2 * math.pi * clock / ROUND_SECONDS
    stride = np.sin(2 * math.pi * clock / STRIDE_SECONDS + 9 * phase)
    nod = 0.06 * np.sin(4 * math.pi * clock / STRIDE_SECONDS + 9 * phase) * (high > 3)
    ahead_x, ahead_y = -np.sin(turn), np.cos(turn)
    x, y = radius * np.cos(turn), radius * np.sin(turn)

    def place(along: Array) -> tuple[Array, Array]:
        place_x = x + size * (along * ahead_x + side * ahead_y)
        return place_x, y + size * (along * ahead_y - side * ahead_x)

    out = np.zeros((len(clock), len(GIRAFFES), len(GIRAFFE_LIMBS), PART_COLUMNS))
    out[..., 0], out[..., 1] = SEGMENT, np.where(thick0 < 0.2, LEG, HIDE)
    out[..., 2], out[..., 3] = place(rear)
    out[..., 4] = size * (low + nod * (low > 3))
    out[..., 5], out[..., 6] = place(front + swing * stride + nod)
    out[..., 7] = size * (high + nod)
    out[..., 8], out[..., 9] = size * thick0, size * thick1
    return out.reshape(len(clock), -1, PART_COLUMNS)


def _smoke(clock: Array) -> Array:
    """Return the puffs [n, SMOKE_PUFFS, 11] that rise from the hut at clock [n]."""
    index = np.arange(SMOKE_PUFFS)
    age = (clock[:, None] / SMOKE_SECONDS + index / SMOKE_PUFFS) % 1
    curl = 0.10 * np.sin(5 * age + 1.7 * index)
    out = np.zeros((len(clock), SMOKE_PUFFS, PART_COLUMNS))
    out[..., 0], out[..., 1] = BLOB, SMOKE
    out[..., 2] = HUT_X + (0.9 * age**1.5 + curl) * math.cos(2.2)
    out[..., 3] = HUT_Y + (0.9 * age**1.5 + curl) * math.sin(2.2)
    out[..., 4] = 2.30 + 2.6 * age
    out[..., 8] = 0.12 + 0.42 * age
    out[..., 9] = 0.16 + 0.40 * age
    out[..., 10] = age
    return out


def parts_at(clock: Array) -> Array:
    """Return all parts [n, parts, 11] at clock [n] in seconds: wind, birds, giraffes, smoke."""
    clock = np.atleast_1d(np.asarray(clock, dtype=np.float64))
    fixed = np.repeat(_FIXED_PARTS[None], len(clock), 0)
    sway = _WIND[:, 0] * np.sin(2 * math.pi * clock[:, None] / 4.5 + _WIND[:, 1])
    blob = _FIXED_PARTS[:, 0] == BLOB
    fixed[..., 2] += sway * blob
    fixed[..., 3] += 0.6 * sway * blob
    fixed[..., 5] += sway * ~blob
    fixed[..., 6] += 0.6 * sway * ~blob
    return np.concatenate([fixed, _wings(clock), _giraffes(clock), _smoke(clock)], 1)


_SOME_PARTS = parts_at(np.zeros(1))[0]
PART_KIND, PART_LOOK = _SOME_PARTS[:, 0].astype(np.int64), _SOME_PARTS[:, 1].astype(np.int64)


# ------------------------------------------------------------------ water
# Three travelling ripples on the waterhole: wave vector x, y (1/unit) and cycles per second.
RIPPLES = np.array([(9.1, 3.3, 0.75), (-2.6, 11.8, 0.5), (13.6, -6.1, 1.0)])
