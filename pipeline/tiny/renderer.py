"""From poses to latents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.tiny.networks import Veldt


class Renderer:
    """Renders what a player sees into latents. Holds weights only."""

    def __init__(self, veldt: Veldt) -> None:
        """Take over the weights of a trained scene."""
        self._veldt = veldt

    def latents(self, poses: NDArray[np.float64]) -> Tensor:
        """Return latent frames [n, 24, H/2, W/2] of poses [n, 5] (x, y, yaw, pitch, clock)."""
        return self._veldt.latents(poses)
