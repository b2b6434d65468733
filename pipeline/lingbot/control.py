"""From keys to the control tensor: motion → camera poses → relative poses → rays. SPEC §3.

Camera convention is OpenCV (x right, y down, z forward), poses are camera-to-world [4, 4].
`live_relative` is the causal rule of a session; trajectory.py has the reference's rule for a whole
video, which cannot run live.
"""

from __future__ import annotations

import math
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

WASD: tuple[str, ...] = ("w", "a", "s", "d")
IJKL: tuple[str, ...] = ("i", "j", "k", "l")


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
