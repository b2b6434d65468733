"""Latents as they are played: cells of 2 × 2 pixels, the features of a pixel side by side.

The networks are written for planes, latent [n, 24, H/2, W/2]; sampling and convolution are faster
when the numbers of one place lie together: cells [n, H/2, W/2, 32], of which each quarter is one
pixel (upper left, upper right, lower left, lower right) with 6 features and 2 zeros.

Until they are cells, pixels are kept in *cell order*, [n, H/2, ROW]: one row of cells after
another, the four pixels of a cell together. That way everything per pixel is one long vector, and
no copy is needed at the end.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from pipeline.tiny.camera import HEIGHT, WIDTH
from pipeline.tiny.scene import FEATURES

LANES: Final = 8  # numbers a pixel: its features, then zeros
CELL_ROWS, CELL_COLUMNS = HEIGHT // 2, WIDTH // 2
ROW: Final = 4 * CELL_COLUMNS  # pixels in a row of cells
CELL_CHANNELS: Final = 4 * LANES
CELLS_SHAPE: Final = (CELL_ROWS, CELL_COLUMNS, CELL_CHANNELS)


def cells_of(latents: Tensor) -> Tensor:
    """Turn latents [n, 24, H/2, W/2] into cells [n, H/2, W/2, 32]."""
    count, _, rows, columns = latents.shape
    planes = latents.view(count, FEATURES, 4, rows, columns).permute(0, 3, 4, 2, 1)
    padded = torch.nn.functional.pad(planes, (0, LANES - FEATURES))
    return padded.reshape(count, rows, columns, CELL_CHANNELS)


def latents_of(cells: Tensor) -> Tensor:
    """Turn cells [n, H/2, W/2, 32] into latents [n, 24, H/2, W/2]."""
    count, rows, columns, _ = cells.shape
    lanes = cells.view(count, rows, columns, 4, LANES)[..., :FEATURES]
    return lanes.permute(0, 4, 3, 1, 2).reshape(count, 4 * FEATURES, rows, columns)


def pixel_rows() -> Tensor:
    """Return the picture row of every pixel's middle, in cell order [H/2, ROW]."""
    pairs = torch.arange(CELL_ROWS)[:, None, None, None] * 2
    inner = torch.arange(2)[None, None, :, None]
    return (pairs + inner).expand(-1, CELL_COLUMNS, -1, 2).reshape(CELL_ROWS, ROW) + 0.5


def pixel_columns() -> Tensor:
    """Return the picture column of every pixel's middle, the same in each row of cells [ROW]."""
    pairs = torch.arange(CELL_COLUMNS)[:, None, None] * 2
    inner = torch.arange(2)[None, None]
    return (pairs + inner).expand(-1, 2, -1).reshape(ROW) + 0.5


def table_of(grid: Tensor) -> Tensor:
    """Turn a map [1, c, h, w] into rows of LANES numbers [h * w, LANES], one a texel."""
    rows = grid[0].flatten(1).T
    return torch.nn.functional.pad(rows, (0, LANES - rows.shape[1])).contiguous()
