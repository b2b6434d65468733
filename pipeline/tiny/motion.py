"""How the player moves: speeds, collision, and the step from one frame to the next.

All motion is defined per second. Speeds approach what is wanted exponentially, and a frame
integrates that curve exactly, so that the same input leads along the same path at any frame rate.

Yaw 0 looks along +x and grows to the right. Pitch is the horizon's offset in pixels: positive looks
up and the horizon sinks. A pose is x, y, yaw, pitch, clock: all that a picture depends on.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.tiny.place import CLOCK_PERIOD, OBSTACLES

Array = NDArray[np.float64]

WALK_SPEED = 2.0  # units per second
TURN_SPEED = math.radians(45)  # radians per second
TILT_SPEED = 32.0  # pixels per second
MAX_PITCH = 26.0  # pixels
WORLD_RADIUS = 12.0
SMOOTHING, SMOOTHING_SECONDS = 0.35, 1 / 16  # share of a speed difference closed in that time
APPROACH: Final = -math.log(1 - SMOOTHING) / SMOOTHING_SECONDS  # per second
_CIRCLES: Final = tuple((float(x), float(y), float(radius)) for x, y, radius in OBSTACLES)


@dataclass(frozen=True)
class Wanted:
    """What the player wants during one frame, each -1..1: ahead, to the right, right, up."""

    forward: float = 0.0
    strafe: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0


STAND: Final = Wanted()


@dataclass(frozen=True)
class Player:
    """Where the player stands, looks and how fast everything moves; one frame's full state."""

    x: float
    y: float
    yaw: float
    pitch: float = 0.0
    forward_speed: float = 0.0  # units per second
    side_speed: float = 0.0
    yaw_speed: float = 0.0  # radians per second
    pitch_speed: float = 0.0  # pixels per second
    clock: float = 0.0  # seconds

    def pose(self) -> tuple[float, float, float, float, float]:
        """Return x, y, yaw, pitch, clock: all that a picture depends on."""
        return self.x, self.y, self.yaw, self.pitch, self.clock

    def to_list(self) -> list[float]:
        """Return the nine numbers of this state (see `from_list`)."""
        return list(astuple(self))

    @staticmethod
    def from_list(values: list[float]) -> Player:
        """Rebuild a state from `to_list`."""
        return Player(*values)


def _keep_inside(x: float, y: float, old_x: float, old_y: float) -> tuple[float, float]:
    """Let outward progress shrink to nothing over the last unit before the world's edge."""
    radius = math.hypot(x, y)
    if radius <= WORLD_RADIUS - 1:
        return x, y
    old_radius = math.hypot(old_x, old_y)
    if radius > old_radius:
        limited = old_radius + (radius - old_radius) * max(0.0, WORLD_RADIUS - old_radius)
        return x * limited / radius, y * limited / radius
    return x, y


def _push_out(x: float, y: float, old_x: float, old_y: float) -> tuple[float, float]:
    """Push a position out of every obstacle, radially: players slide along things.

    Where that does not help (obstacles meet, or the world ends) the old position is kept.
    """
    for _ in range(4):
        free = True
        for obstacle_x, obstacle_y, radius in _CIRCLES:
            dx, dy = x - obstacle_x, y - obstacle_y
            distance = math.hypot(dx, dy)
            if distance < radius - 1e-9:
                scale = radius / max(distance, 1e-9)
                x, y = obstacle_x + dx * scale, obstacle_y + dy * scale
                free = False
        if free:
            return (x, y) if math.hypot(x, y) <= WORLD_RADIUS + 1e-6 else (old_x, old_y)
    return old_x, old_y


def _approach(speed: float, wanted: float, seconds: float) -> tuple[float, float]:
    """Return the speed after `seconds` and the way covered, both exact."""
    rest = math.exp(-APPROACH * seconds)
    way = wanted * seconds + (speed - wanted) * (1 - rest) / APPROACH
    return wanted + (speed - wanted) * rest, way


def step(player: Player, wanted: Wanted, seconds: float) -> Player:
    """Advance one frame of that length and return the result."""
    forward, ahead = _approach(player.forward_speed, wanted.forward * WALK_SPEED, seconds)
    side, aside = _approach(player.side_speed, wanted.strafe * WALK_SPEED, seconds)
    turn, turned = _approach(player.yaw_speed, wanted.yaw * TURN_SPEED, seconds)
    tilt, tilted = _approach(player.pitch_speed, wanted.pitch * TILT_SPEED, seconds)

    pitch = max(-MAX_PITCH, min(MAX_PITCH, player.pitch + tilted))
    if pitch != player.pitch + tilted:
        tilt = 0.0
    middle = player.yaw + turned / 2  # a frame's way is walked along its mean heading
    x = player.x + math.cos(middle) * ahead - math.sin(middle) * aside
    y = player.y + math.sin(middle) * ahead + math.cos(middle) * aside
    x, y = _push_out(*_keep_inside(x, y, player.x, player.y), player.x, player.y)
    yaw = (player.yaw + turned + math.pi) % (2 * math.pi) - math.pi
    clock = (player.clock + seconds) % CLOCK_PERIOD
    return Player(x, y, yaw, pitch, forward, side, turn, tilt, clock)


def poses_of(players: list[Player]) -> Array:
    """Return poses [n, 5] (x, y, yaw, pitch, clock) of players."""
    return np.array([player.pose() for player in players])
