"""Rotary positions over (frame, row, column) and the sinusoid of the timestep. SPEC §2.

Angles are made on the fly in float64, so that no table of 1,024 entries ends a session.
"""

from __future__ import annotations

import torch
from torch import Tensor


def axis_dims(head_dim: int) -> tuple[int, int, int]:
    """Complex dims of a head that turn with frame, row and column.

    >>> axis_dims(128), axis_dims(16)
    ((22, 21, 21), (4, 2, 2))
    """
    c = head_dim // 2
    return c - 2 * (c // 3), c // 3, c // 3


def frequencies(dims: int, device: torch.device | None = None) -> Tensor:
    """Radians per step of one axis: 10000^(-j/dims), float64 [dims]."""
    return 10000.0 ** (-torch.arange(dims, dtype=torch.float64, device=device) / dims)


def rotation(
    grid: tuple[int, int, int], start_frame: int, head_dim: int, device: torch.device | None = None
) -> Tensor:
    """(cos, sin) of every token of `grid` (F, H, W): float32 [2, F·H·W, head_dim/2].

    Frames count from `start_frame`, absolute since stream start; rows and columns from 0. Tokens
    are frame-major, then rows, then columns.
    """
    starts = (start_frame, 0, 0)
    axes = [
        torch.outer(
            torch.arange(start, start + n, dtype=torch.float64, device=device),
            frequencies(dims, device),
        )
        for start, n, dims in zip(starts, grid, axis_dims(head_dim), strict=True)
    ]
    frame, row, column = axes
    f, h, w = grid
    angles = torch.cat(
        [
            frame[:, None, None].expand(f, h, w, -1),
            row[None, :, None].expand(f, h, w, -1),
            column[None, None, :].expand(f, h, w, -1),
        ],
        dim=-1,
    ).reshape(f * h * w, -1)
    return torch.stack([angles.cos(), angles.sin()]).float()


def rotate(x: Tensor, cos_sin: Tensor) -> Tensor:
    """Turn adjacent pairs (x0 + i·x1) of x [B, N, H, D] by cos_sin [2, N, D/2]; dtype kept."""
    cos, sin = cos_sin[:, None, :, None, :].unbind(0)
    real, imaginary = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
    turned = torch.stack((real * cos - imaginary * sin, real * sin + imaginary * cos), dim=-1)
    return turned.flatten(-2).type_as(x)


def shift_frames_(keys: Tensor, frames: int) -> None:
    """Move rotated keys [..., D] by `frames` along the frame axis, in place.

    Keys are cached after rotation, so a shift is one more turn of their frame dims. In bf16 every
    turn rounds: turn rarely.
    """
    dims = axis_dims(keys.shape[-1])[0]
    angle = frames * frequencies(dims, keys.device)
    turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)
    part = keys[..., : 2 * dims]
    pairs = torch.view_as_complex(part.float().reshape(*part.shape[:-1], dims, 2))
    part.copy_(torch.view_as_real(pairs * turn).flatten(-2))


def timestep_sinusoid(t: Tensor, dim: int) -> Tensor:
    """Timesteps t [...] → float64 [..., dim]: cosines first, then sines.

    SPEC §8.11: `t` is the integer timestep 0..999 itself, not divided by 1,000.
    """
    angles = t.double()[..., None] * frequencies(dim // 2, t.device)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
