"""The reference's control of a whole video, from an action string or recorded poses. SPEC §3.

Not causal: translations are divided by the largest of the sequence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from pipeline.lingbot.config import TEMPORAL_STRIDE
from pipeline.lingbot.control import IJKL, WASD, Camera, Motion
from pipeline.lingbot.errors import BadControl

MAX_ACTION_FRAMES = 100_000
_SEGMENT = re.compile(r"(none|[wasdijkl]+)-(\d{1,9})")


def parse_actions(text: str, pad: bool = False) -> tuple[Tensor, Tensor]:
    """Key rows of the action language: "w-10,iw-15,none-3" → wasd [n, 4], ijkl [n, 4].

    Any case, spaces ignored; `pad` adds rows without keys up to 4m+1.

    Raises:
        BadControl: a segment is not keys-count, or the whole is absurdly long.
    """
    rows: list[str] = []
    for segment in text.lower().replace(" ", "").split(","):
        match = _SEGMENT.fullmatch(segment)
        if match is None:
            raise BadControl(f"action {segment[:40]!r} is not keys-count, such as iw-15 or none-3")
        keys, count = match[1].replace("none", ""), int(match[2])
        if len(rows) + count > MAX_ACTION_FRAMES:
            raise BadControl(f"more than {MAX_ACTION_FRAMES} frames of actions")
        rows += [keys] * count
    if pad:
        rows += [""] * ((1 - len(rows)) % TEMPORAL_STRIDE)
    table = torch.tensor(
        [[key in row for key in (*WASD, *IJKL)] for row in rows], dtype=torch.float32
    )
    table = table.reshape(-1, 8)
    return table[:, :4], table[:, 4:]


def motions(wasd: Tensor, ijkl: Tensor) -> list[Motion]:
    """Key rows → motions; a key is pressed if its value is above 0.5."""
    if not (torch.isfinite(wasd).all() and torch.isfinite(ijkl).all()):
        raise BadControl("key rows must be finite")
    pressed = (torch.cat([wasd, ijkl], dim=1) > 0.5).int().tolist()
    return [Motion(w - s, d - a, el - j, i - k) for w, a, s, d, i, j, k, el in pressed]


def trajectory(steps: Sequence[Motion], start: Camera | None = None) -> Tensor:
    """The n+1 poses of n motions, float64 [n+1, 4, 4]; pose k is reached by motions 0..k-1."""
    camera = start or Camera.at_origin()
    poses = [camera.pose]
    for step in steps:
        camera = camera.stepped(step)
        poses.append(camera.pose)
    return torch.stack(poses)


def latent_poses(c2w: Tensor, latents: int) -> Tensor:
    """Resample poses [N, 4, 4] to `latents` of them, evenly over 0..N-1: float32 [F, 4, 4].

    Linear translation and slerp in float64. Latent i is video frame 4i only if N = 4·(F−1)+1; the
    reference stretches any other range, giving fractional sources (SPEC §3).

    Raises:
        BadControl: no pose, or one that is not finite.
    """
    if c2w.ndim != 3 or c2w.shape[1:] != (4, 4) or not len(c2w) or not torch.isfinite(c2w).all():
        raise BadControl(f"poses must be finite [n, 4, 4] with n ≥ 1, got {tuple(c2w.shape)}")
    poses = c2w.double()
    at = torch.linspace(0, len(poses) - 1, latents, dtype=torch.float64)
    low = at.floor().long().clamp(max=max(len(poses) - 2, 0))
    high = (low + 1).clamp(max=len(poses) - 1)
    share = (at - low)[:, None]
    out = torch.eye(4, dtype=torch.float64).repeat(latents, 1, 1)
    out[:, :3, 3] = (1 - share) * poses[low, :3, 3] + share * poses[high, :3, 3]
    out[:, :3, :3] = _slerp(poses[low, :3, :3], poses[high, :3, :3], share)
    return out.float()


def relative_poses(poses: Tensor, normalise: bool = True) -> Tensor:
    """Poses [F, 4, 4] → each seen from the one before, the first = identity: float32 [F, 4, 4].

    SPEC §8.9, offline only: with `normalise` translations are divided by the largest of the WHOLE
    sequence, so that a later move rescales earlier ones.
    """
    poses = poses.float()
    poses = torch.linalg.inv(poses[0]) @ poses
    relative = torch.eye(4).repeat(len(poses), 1, 1)
    relative[1:] = torch.linalg.inv(poses[:-1]) @ poses[1:]
    largest = torch.linalg.vector_norm(relative[:, :3, 3], dim=-1).max()
    if normalise and largest > 0:
        relative[:, :3, 3] /= largest
    return relative


def act_rows(wasd: Tensor, latents: int) -> Tensor:
    """The wasd rows of video frames 4i for latents i, zero where the keys have ended: [F, 4]."""
    rows = torch.zeros(latents, 4)
    taken = wasd[::TEMPORAL_STRIDE][:latents].float()
    rows[: len(taken)] = taken
    return rows


def _slerp(low: Tensor, high: Tensor, share: Tensor) -> Tensor:
    """Rotations [F, 3, 3] a `share` [F, 1] of the shorter way from `low` to `high`."""
    a, b = _quaternion(low), _quaternion(high)
    b = torch.where((a * b).sum(-1, keepdim=True) < 0, -b, b)
    angle = (a * b).sum(-1, keepdim=True).clamp(-1, 1).arccos()
    near = angle < 1e-7  # the rotation is one and the same: sin would divide 0 by 0
    sine = torch.where(near, torch.ones_like(angle), angle.sin())
    wa = torch.where(near, 1 - share, ((1 - share) * angle).sin() / sine)
    wb = torch.where(near, share, (share * angle).sin() / sine)
    return _matrix(wa * a + wb * b)


def _quaternion(r: Tensor) -> Tensor:
    """Rotations [F, 3, 3] → unit quaternions (x, y, z, w) [F, 4], of either sign.

    The eigenvector of the largest eigenvalue (Bar-Itzhack 2000), which knows no special angles.
    """
    t = r.mT
    k = torch.zeros(len(r), 4, 4, dtype=r.dtype)
    trace = r.diagonal(dim1=1, dim2=2).sum(-1)
    k[:, :3, :3] = t + r - trace[:, None, None] * torch.eye(3, dtype=r.dtype)
    k[:, 3, 3] = trace
    k[:, 0, 3] = k[:, 3, 0] = r[:, 2, 1] - r[:, 1, 2]
    k[:, 1, 3] = k[:, 3, 1] = r[:, 0, 2] - r[:, 2, 0]
    k[:, 2, 3] = k[:, 3, 2] = r[:, 1, 0] - r[:, 0, 1]
    vectors: Tensor = torch.linalg.eigh(k).eigenvectors
    return vectors[:, :, -1]


def _matrix(q: Tensor) -> Tensor:
    """Quaternions (x, y, z, w) [F, 4], of any length → rotations [F, 3, 3]."""
    x, y, z, w = (q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], dim=-1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], dim=-1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1),
    ]
    return torch.stack(rows, dim=1)
