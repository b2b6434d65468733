"""How like the truth the model's pictures are, drawn exactly as the service draws them."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.tiny.decoder import FastDecoder, multiplies_bfloat16
from pipeline.tiny.motion import Array
from pipeline.tiny.networks import FRAMES_PER_LATENT, Veldt
from pipeline.tiny.renderer import Renderer
from training.tiny import truth

Pictures = NDArray[np.uint8]  # [n, H, W, 3]
LATENTS_AT_ONCE: Final = FRAMES_PER_LATENT


class Artist:
    """Draws poses with a model's weights, in the form in which they are played."""

    def __init__(self, veldt: Veldt, precision: torch.dtype | None = None) -> None:
        """Take the weights; by default in the precision that this machine plays in."""
        if precision is None:
            precision = torch.bfloat16 if multiplies_bfloat16() else torch.float32
        self._renderer = Renderer(veldt.scene)
        self._decoder = FastDecoder(veldt.decoder, precision)

    @torch.inference_mode()
    def pictures(self, poses: Array) -> Pictures:
        """Return what the model makes of poses [n, 5]."""
        made = [
            self._decoder.pictures(self._renderer.cells(poses[start : start + LATENTS_AT_ONCE]))
            for start in range(0, len(poses), LATENTS_AT_ONCE)
        ]
        return np.concatenate(made)

    @torch.inference_mode()
    def decoded(self, cells: Tensor) -> Pictures:
        """Return the pictures of cells [n, H/2, W/2, 32]."""
        return self._decoder.pictures(cells)


def true_pictures(poses: Array) -> Pictures:
    """Return what there is to be seen from poses [n, 5]."""
    return truth.render(poses).transpose(0, 2, 3, 1)


def psnr(true: Pictures, made: Pictures) -> NDArray[np.float64]:
    """Return dB per picture."""
    error = np.square(made.astype(np.float64) - true).mean((-3, -2, -1)) / 255**2
    return np.asarray(-10 * np.log10(error + 1e-10))


def flicker(true: Pictures, made: Pictures) -> dict[str, float]:
    """Compare changes from frame to frame: mean sizes, and error of the change, in grey levels."""
    wanted = np.diff(true.astype(np.float32), axis=0)
    change = np.diff(made.astype(np.float32), axis=0)
    values = {"true": wanted, "model": change, "error": change - wanted}
    return {name: round(float(np.abs(value).mean()), 3) for name, value in values.items()}
