"""From poses to cells: what a player sees, by the fast forms of the trained scene.

Parts are drawn first, since the background then needs to be drawn only where it shows: how much of
each pixel they leave uncovered goes into the weights with which the maps are sampled.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.tiny.background import Background
from pipeline.tiny.cells import CELLS_SHAPE
from pipeline.tiny.parts import Parts
from pipeline.tiny.scene import Scene


class Renderer:
    """Renders features. Holds weights only, and what follows from the last horizon."""

    def __init__(self, scene: Scene) -> None:
        """Take over the weights of a trained scene."""
        self._parts, self._background = Parts(scene), Background(scene)

    def cells(self, poses: NDArray[np.float64]) -> Tensor:
        """Return cells [n, H/2, W/2, 32] of poses [n, 5] (x, y, yaw, pitch, clock)."""
        drawn = self._parts.draw(poses)
        features = self._background.draw(torch.from_numpy(poses).float(), drawn.uncovered)
        return drawn.add_to(features).view(len(poses), *CELLS_SHAPE)
