"""From keys to the control tensor: motion → camera poses → relative poses → rays. SPEC §3.

Camera convention is OpenCV (x right, y down, z forward), poses are camera-to-world [4, 4].
`live_control` is the causal rule of a session; the offline functions are the reference's, which
normalises by the whole sequence and so cannot run live.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pipeline.lingbot.config import SPATIAL_STRIDE, TEMPORAL_STRIDE
from pipeline.lingbot.errors import BadControl

MOVE = 0.05  # world units per video frame at full motion
TURN_DEGREES = 2.0  # per video frame at full motion
PITCH_LIMIT_DEGREES = 85.0
INTRINSICS_HW = (480, 832)  # the picture size that intrinsics are given for
DEFAULT_INTRINSICS = (502.91, 502.91, 415.78, 239.78)  # fx, fy, cx, cy of most published examples
TRANSLATION_DIVISOR = TEMPORAL_STRIDE * MOVE  # makes a steady W |t| = 1 per latent, as offline
MAX_ACTION_FRAMES = 100_000

WASD: tuple[str, ...] = ("w", "a", "s", "d")
IJKL: tuple[str, ...] = ("i", "j", "k", "l")
_SEGMENT = re.compile(r"(none|[wasdijkl]+)-(\d{1,9})")


@dataclass(frozen=True)
class Motion:
    """What the camera does during one video frame, each −1..1; keys give −1, 0 or 1."""

    forward: float = 0.0  # W, S
    strafe: float = 0.0  # D, A
    yaw: float = 0.0  # L, J
    pitch: float = 0.0  # I, K


def motion(held: Collection[str], axes: Mapping[str, float] | None = None) -> Motion:
    """The motion of held `KeyboardEvent.code`s plus analog axes, clamped to −1..1.

    >>> motion({"KeyW", "KeyL"}), motion({"KeyA", "KeyD"}, {"pitch": 0.5})
    (Motion(forward=1, strafe=0, yaw=1, pitch=0), Motion(forward=0, strafe=0, yaw=0, pitch=0.5))

    Raises:
        BadControl: an axis is NaN or infinite.
    """
    down = {key: f"Key{key.upper()}" in held for key in (*WASD, *IJKL)}
    keys = Motion(
        forward=down["w"] - down["s"],
        strafe=down["d"] - down["a"],
        yaw=down["l"] - down["j"],
        pitch=down["i"] - down["k"],
    )
    analog = {name: value for name, value in (axes or {}).items() if name in Motion.__annotations__}
    if not all(map(math.isfinite, analog.values())):
        raise BadControl(f"control axes must be finite numbers, got {analog}")
    sums = {name: getattr(keys, name) + value for name, value in analog.items()}
    return replace(keys, **{name: max(-1.0, min(1.0, value)) for name, value in sums.items()})


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


@dataclass(frozen=True)
class Camera:
    """Where the camera is after some video frames: c2w float64 [4, 4] and its summed pitch."""

    pose: Tensor
    pitch_degrees: float = 0.0

    @classmethod
    def at_origin(cls) -> Camera:
        """The first camera of every trajectory."""
        return cls(torch.eye(4, dtype=torch.float64))

    def stepped(self, by: Motion) -> Camera:
        """One video frame later: rotation first, then translation along the NEW rotation."""
        turn, tilt = by.yaw * TURN_DEGREES, by.pitch * TURN_DEGREES
        if abs(self.pitch_degrees + tilt) > PITCH_LIMIT_DEGREES:
            tilt = 0.0  # a step that would exceed the limit is dropped, not cut
        rotation = _yaw(turn) @ self.pose[:3, :3] @ _pitch(tilt)
        forward, right = _level(rotation[:, 2]), _level(rotation[:, 0])
        pose = self.pose.clone()
        pose[:3, :3] = rotation
        pose[:3, 3] += MOVE * (by.forward * forward + by.strafe * right)  # diagonals are √2 faster
        return Camera(pose, self.pitch_degrees + tilt)


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


def scale_intrinsics(intrinsics: Tensor, height: int, width: int) -> Tensor:
    """[fx, fy, cx, cy] given for 480x832, for a picture of height x width: [..., 4]."""
    if not torch.isfinite(intrinsics).all() or (intrinsics[..., :2] <= 0).any():
        raise BadControl("intrinsics must be finite with positive focal lengths")
    h, w = height / INTRINSICS_HW[0], width / INTRINSICS_HW[1]
    return intrinsics * torch.tensor([w, h, w, h], dtype=intrinsics.dtype)


def rays(relative: Tensor, intrinsics: Tensor, height: int, width: int) -> Tensor:
    """Relative poses [F, 4, 4] and scaled intrinsics [4] → [F, h, w, 6]: (origin, direction).

    SPEC §8.8: called Plücker in the reference, but there is no moment in it.
    """
    fx, fy, cx, cy = intrinsics.float().unbind(-1)
    v, u = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    camera = torch.stack([(u - cx) / fx, (v - cy) / fy, torch.ones_like(u)], dim=-1)
    camera = camera / torch.linalg.vector_norm(camera, dim=-1, keepdim=True)
    direction = torch.einsum("fij,hwj->fhwi", relative[:, :3, :3], camera)
    origin = relative[:, None, None, :3, 3].expand_as(direction)
    return torch.cat([origin, direction], dim=-1)


def control_cam(relative: Tensor, intrinsics: Tensor, height: int, width: int) -> Tensor:
    """Relative poses [F, 4, 4] → the "cam" control [1, 384, F, h/8, w/8]."""
    return _space_to_depth(rays(relative, intrinsics, height, width))


def control_act(
    relative: Tensor, intrinsics: Tensor, height: int, width: int, wasd: Tensor
) -> Tensor:
    """The "act" control [1, 448, F, h/8, w/8]: ray directions and the wasd rows [F, 4]."""
    direction = rays(relative, intrinsics, height, width)[..., 3:]
    keys = wasd[:, None, None, :].expand(-1, height, width, -1)
    return _space_to_depth(torch.cat([direction, keys], dim=-1))


def act_rows(wasd: Tensor, latents: int) -> Tensor:
    """The wasd rows of video frames 4i for latents i, zero where the keys have ended: [F, 4]."""
    rows = torch.zeros(latents, 4)
    taken = wasd[::TEMPORAL_STRIDE][:latents].float()
    rows[: len(taken)] = taken
    return rows


@dataclass(frozen=True)
class LiveCamera:
    """What live control carries from chunk to chunk: the camera; None before the first chunk."""

    camera: Camera | None = None


def live_steps(state: LiveCamera, latents: int) -> int:
    """How many motions a chunk of `latents` takes: one a video frame, none for the very first.

    >>> live_steps(LiveCamera(), 3), live_steps(LiveCamera(Camera.at_origin()), 3)
    (8, 12)
    """
    return TEMPORAL_STRIDE * (latents - (state.camera is None))


def live_relative(
    state: LiveCamera, steps: Sequence[Motion], divisor: float = TRANSLATION_DIVISOR
) -> tuple[Tensor, LiveCamera]:
    """One chunk's motions (`live_steps` of them) → relative poses [F, 4, 4], next state. Causal.

    Latent j stands where its video frame 4j does, so each relative pose holds the four steps of
    the frames it decodes to. The first chunk starts with the identity; the first pose of later
    ones is relative to the LAST of the chunk before. Translations are divided by a constant (SPEC
    §3: recipes span a factor of 20, hence a setting).

    Raises:
        BadControl: a motion or the divisor is not finite, the divisor is not positive, or the
            number of motions is not that of whole latents.
    """
    parts = [value for s in steps for value in (s.forward, s.strafe, s.yaw, s.pitch)]
    if not all(map(math.isfinite, parts)) or not (math.isfinite(divisor) and divisor > 0):
        raise BadControl("motions must be finite and the translation divisor a positive number")
    if len(steps) % TEMPORAL_STRIDE:
        raise BadControl(f"{len(steps)} motions are not {TEMPORAL_STRIDE} for each latent frame")
    camera = state.camera or Camera.at_origin()
    relative = [] if state.camera else [torch.eye(4, dtype=torch.float64)]
    for first in range(0, len(steps), TEMPORAL_STRIDE):
        before = camera
        for step in steps[first : first + TEMPORAL_STRIDE]:
            camera = camera.stepped(step)
        relative.append(torch.linalg.inv(before.pose) @ camera.pose)
    poses = torch.stack(relative)
    poses[:, :3, 3] /= divisor
    return poses.float(), LiveCamera(camera)


def _space_to_depth(x: Tensor) -> Tensor:
    """[F, h, w, C] → [1, C·64, F, h/8, w/8]: channel c·64 + row·8 + column of the 8x8 block."""
    s = SPATIAL_STRIDE
    f, h, w, c = x.shape
    blocks = x.reshape(f, h // s, s, w // s, s, c)
    return blocks.permute(5, 2, 4, 0, 1, 3).reshape(1, c * s * s, f, h // s, w // s)


def _level(axis: Tensor) -> Tensor:
    flat = axis * torch.tensor([1.0, 0.0, 1.0], dtype=axis.dtype)
    length: Tensor = torch.linalg.vector_norm(flat)
    return flat / (length + 1e-6)


def _yaw(degrees: float) -> Tensor:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return torch.tensor([[c, 0, s], [0, 1, 0], [-s, 0, c]], dtype=torch.float64)


def _pitch(degrees: float) -> Tensor:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return torch.tensor([[1, 0, 0], [0, c, -s], [0, s, c]], dtype=torch.float64)


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
    """Rotations [F, 3, 3] → unit quaternions (w, x, y, z) [F, 4], by the largest component."""
    m = {(i, j): r[:, i, j] for i in range(3) for j in range(3)}
    one = torch.ones(len(r), dtype=r.dtype)
    squares = torch.stack(
        [
            one + m[0, 0] + m[1, 1] + m[2, 2],
            one + m[0, 0] - m[1, 1] - m[2, 2],
            one - m[0, 0] + m[1, 1] - m[2, 2],
            one - m[0, 0] - m[1, 1] + m[2, 2],
        ],
        dim=-1,
    )
    x, y, z = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    xy, xz, yz = m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    rows = torch.stack(
        [
            torch.stack([squares[:, 0], x, y, z], dim=-1),
            torch.stack([x, squares[:, 1], xy, xz], dim=-1),
            torch.stack([y, xy, squares[:, 2], yz], dim=-1),
            torch.stack([z, xz, yz, squares[:, 3]], dim=-1),
        ],
        dim=1,
    )
    best = rows[torch.arange(len(r)), squares.argmax(-1)]
    length: Tensor = torch.linalg.vector_norm(best, dim=-1, keepdim=True)
    return best / length


def _matrix(q: Tensor) -> Tensor:
    """Quaternions (w, x, y, z) [F, 4], of any length → rotations [F, 3, 3]."""
    w, x, y, z = (q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], dim=-1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], dim=-1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1),
    ]
    return torch.stack(rows, dim=1)
