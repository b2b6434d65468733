"""Where to look: random poses for training, and somebody wandering about for judging."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from pipeline.tiny.controls import NOTHING_UNSPENT, Steering
from pipeline.tiny.motion import MAX_PITCH, WORLD_RADIUS, Array, Player, poses_of, step
from pipeline.tiny.place import CLOCK_PERIOD, OBSTACLES

JUDGED_FPS = 16.0  # frames per second of every rollout that figures are given for
TOUR: Final = (
    ("W", 40), ("WL", 24), ("W", 32), ("J", 32), ("", 12), ("W", 40), ("WJ", 32), ("I", 10),
    ("K", 14), ("D", 16), ("W", 24), ("L", 40),
)  # fmt: skip


def _random_place(random: np.random.RandomState) -> tuple[float, float]:
    """Return a free place: two in three anywhere in the disc, one in three close to an obstacle."""
    while True:
        angle = random.rand() * 2 * math.pi
        x, y, radius = 0.0, 0.0, WORLD_RADIUS * math.sqrt(random.rand())
        if random.rand() < 1 / 3:
            x, y, radius = OBSTACLES[random.randint(len(OBSTACLES))]
            radius += 0.6 * random.rand() ** 2
        x, y = float(x + radius * math.cos(angle)), float(y + radius * math.sin(angle))
        gap = np.hypot(OBSTACLES[:, 0] - x, OBSTACLES[:, 1] - y) - OBSTACLES[:, 2]
        if (gap >= -1e-6).all() and math.hypot(x, y) <= WORLD_RADIUS:
            return x, y


def random_poses(random: np.random.RandomState, count: int) -> Array:
    """Return poses [count, 5] at free places: all headings, level and extreme looks, any clock."""
    poses = np.empty((count, 5))
    for row in poses:
        x, y = _random_place(random)
        level = random.rand() < 0.5
        pitch = random.randn() * 9 if level else (random.rand() * 2 - 1) * 1.1 * MAX_PITCH
        pitch = float(np.clip(pitch, -MAX_PITCH, MAX_PITCH))
        row[:] = x, y, (random.rand() * 2 - 1) * math.pi, pitch, random.rand() * CLOCK_PERIOD
    return poses


def random_keys(random: np.random.RandomState, count: int) -> list[str]:
    """Return what somebody wandering about holds in each of `count` frames."""
    keys: list[str] = []
    while len(keys) < count:
        length = random.randint(4, 28)
        held = ""
        walk = random.rand()
        if walk < 0.7:
            held += "W" if walk < 0.5 else "S" if walk < 0.6 else random.choice(["A", "D"])
        if random.rand() < 0.5:
            held += random.choice(["J", "L"])
        if random.rand() < 0.16:
            held += random.choice(["I", "K"])
        keys += [held] * length
    return keys[:count]


def tour_keys(count: int) -> list[str]:
    """Return what is held in each of `count` frames of the fixed tour, repeated."""
    frames = (held for held, length in itertools.cycle(TOUR) for _ in range(length))
    return list(itertools.islice(frames, count))


def walked(player: Player, keys: list[str], fps: float = JUDGED_FPS) -> list[Player]:
    """Return the player after every frame of held keys."""
    players = []
    for held in keys:
        (wanted,), _ = Steering.holding(held).frames(NOTHING_UNSPENT, 1, 1 / fps)
        player = step(player, wanted, 1 / fps)
        players.append(player)
    return players


def walked_poses(player: Player, keys: list[str], fps: float = JUDGED_FPS) -> Array:
    """Return the poses [n, 5] after every frame of held keys."""
    return poses_of(walked(player, keys, fps))
