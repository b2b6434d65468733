"""How the picture moves from one frame to the next: shifts in pixels, and magnification."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from pipeline.tiny.motion import Player
from training.tiny.poses import walked_poses

Picture = NDArray[np.uint8]  # [H, W, 3]
SIDEWAYS: Final = np.arange(-14, 14.01, 0.25)
UPRIGHT: Final = np.arange(-5, 5.01, 0.125)
START: Final = Player(-1.0, 1.5, 2.0)  # nothing near, hills and trees ahead


def shift(first: Picture, second: Picture, shifts: NDArray[np.float64], axis: int) -> float:
    """Return the shift in pixels along axis (0 down, 1 right) that best maps first onto second."""
    one, two = (picture[20:140].mean(2) for picture in (first, second))
    costs = []
    for way in shifts:
        whole = math.floor(way)
        part = way - whole
        moved = (1 - part) * np.roll(one, whole, axis) + part * np.roll(one, whole + 1, axis)
        costs.append(np.square((moved - two)[20:-20, 20:-20]).mean())
    return float(shifts[np.argmin(costs)])


def zoom(first: Picture, second: Picture) -> float:
    """Return the magnification about the picture's centre that best maps first onto second."""
    one, two = (torch.from_numpy(p.copy()).permute(2, 0, 1)[None].float() for p in (first, second))
    lines = torch.linspace(-0.8, 0.8, 96), torch.linspace(-0.8, 0.8, 160)
    y, x = torch.meshgrid(*lines, indexing="ij")
    grid = torch.stack([x, y], -1)[None]
    target = functional.grid_sample(two, grid, align_corners=False)
    factors = np.linspace(0.94, 1.06, 61)
    costs = []
    for factor in factors:
        zoomed = functional.grid_sample(one, grid / factor, align_corners=False)
        costs.append((zoomed - target).pow(2).mean().item())
    return float(factors[np.argmin(costs)])


def measured_by(key: str) -> Callable[[Picture, Picture], float]:
    """Return what tells that a key is held: zoom for W and S, a shift for the others."""
    if key in "WS":
        return zoom
    if key in "IK":
        return lambda first, second: shift(first, second, UPRIGHT, 0)
    return lambda first, second: shift(first, second, SIDEWAYS, 1)


def frames_of(key: str) -> range:
    """Return the frames, at 16 a second, over which the motion of a held key is steady."""
    return range(6, 14) if key in "IK" else range(10, 22)


def mean_flow(key: str, pictures: NDArray[np.uint8]) -> float:
    """Return the mean motion per frame of pictures [24, H, W, 3] in which a key is held."""
    measure = measured_by(key)
    return float(np.mean([measure(pictures[k], pictures[k + 1]) for k in frames_of(key)]))


def held_poses(key: str) -> NDArray[np.float64]:
    """Return the poses [24, 5] of holding a key from `START`."""
    return walked_poses(START, [key] * 24)
