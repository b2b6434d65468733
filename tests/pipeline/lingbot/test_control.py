import math

import pytest
import torch

from pipeline.lingbot import control, trajectory
from pipeline.lingbot.control import Camera, LiveCamera, Motion
from pipeline.lingbot.errors import BadControl
from tests.pipeline.lingbot.reference import close, fixture

F = fixture("control_offline")
CASES = list(F.about["cases"])


def test_intrinsics_scale_with_the_picture() -> None:
    scaled = [k for k in F.tensors if k.startswith("K_") and k != "K_org"]
    assert scaled
    for key in scaled:
        height, width = map(int, key[2:].split("x"))
        close(control.scale_intrinsics(F["K_org"], height, width), F[key])


@pytest.mark.parametrize("case", [c for c in CASES if f"{c}.plucker" in F])
def test_rays_and_both_control_tensors_equal_the_reference(case: str) -> None:
    plucker = F[f"{case}.plucker"]
    height, width = plucker.shape[1:3]
    intrinsics = F[f"K_{height}x{width}"][0]
    rel = F[f"{case}.rel"]
    close(control.rays(rel, intrinsics, height, width), plucker)
    close(control.control_cam(rel, intrinsics, height, width), F[f"{case}.control_cam"])
    rows = trajectory.act_rows(F[f"{case}.wasd"], len(rel))
    close(rows, F[f"{case}.act_rows"])
    act = control.control_act(rel, intrinsics, height, width, rows)
    close(act, F[f"{case}.control_act"])


def test_live_control_equals_offline_for_a_steady_walk_but_is_causal() -> None:
    state, chunks = LiveCamera(), []
    for _ in range(3):
        steps = [Motion(forward=1)] * control.live_steps(state, 3)
        rel, state = control.live_relative(state, steps)
        chunks.append(rel)
    offline = trajectory.relative_poses(
        trajectory.latent_poses(trajectory.trajectory([Motion(forward=1)] * 32), 9)
    )
    close(torch.cat(chunks), offline, atol=2e-5)


def test_live_chunks_carry_on_where_the_last_one_ended() -> None:
    script = [Motion(1, 0, 1, 0)] * 8 + [Motion(0, 1, -1, 1)] * 12 + [Motion(-1, 0, 0, -1)] * 12
    state, chunks, at = LiveCamera(), [], 0
    for _ in range(3):
        n = control.live_steps(state, 3)
        rel, state = control.live_relative(state, script[at : at + n], divisor=1.0)
        chunks.append(rel)
        at += n
    whole = trajectory.relative_poses(
        trajectory.latent_poses(trajectory.trajectory(script), 9), normalise=False
    )
    close(torch.cat(chunks), whole)
    pose = torch.eye(4)
    for rel in torch.cat(chunks):
        pose = pose @ rel
    assert state.camera is not None
    close(pose, state.camera.pose.float(), atol=1e-4)


@pytest.mark.parametrize(
    ("key", "axis", "sign"), [("KeyW", 2, 1), ("KeyS", 2, -1), ("KeyD", 0, 1), ("KeyA", 0, -1)]
)
def test_each_move_key_moves_along_its_axis(key: str, axis: int, sign: int) -> None:
    moved = Camera.at_origin().stepped(control.motion({key})).pose[:3, 3]
    assert moved[axis].item() == pytest.approx(sign * control.MOVE, rel=1e-5)
    assert moved.norm().item() == pytest.approx(control.MOVE, rel=1e-5)


@pytest.mark.parametrize(
    ("key", "axis", "sign"), [("KeyL", 0, 1), ("KeyJ", 0, -1), ("KeyI", 1, -1), ("KeyK", 1, 1)]
)
def test_each_turn_key_looks_its_way(key: str, axis: int, sign: int) -> None:
    looks = Camera.at_origin().stepped(control.motion({key})).pose[:3, 2]  # y is down
    assert looks[axis].item() == pytest.approx(sign * math.sin(math.radians(2)))


def test_opposite_keys_cancel_and_axes_scale_the_same_motion() -> None:
    assert control.motion({"KeyW", "KeyS", "Space"}) == Motion()
    assert control.motion((), {"forward": 0.25, "zoom": 3.0}) == Motion(forward=0.25)
    assert control.motion({"KeyW"}, {"forward": 1.0}) == Motion(forward=1)


def test_a_tilt_past_the_limit_is_dropped_whole() -> None:
    camera = Camera(torch.eye(4, dtype=torch.float64), pitch_degrees=84.0)
    assert camera.stepped(Motion(pitch=1)).pitch_degrees == 84.0
    assert camera.stepped(Motion(pitch=0.5)).pitch_degrees == 85.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_controls_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(BadControl):
        control.motion((), {"yaw": bad})
    with pytest.raises(BadControl):
        control.live_relative(LiveCamera(), [Motion(forward=bad)] * 8)
    with pytest.raises(BadControl):
        control.live_relative(LiveCamera(), [Motion()] * 8, divisor=bad)
    poses = torch.eye(4).repeat(5, 1, 1)
    poses[2, 0, 3] = bad
    with pytest.raises(BadControl):
        trajectory.latent_poses(poses, 2)
    with pytest.raises(BadControl):
        trajectory.motions(torch.full((3, 4), bad), torch.zeros(3, 4))
    with pytest.raises(BadControl):
        control.scale_intrinsics(torch.tensor([500.0, bad, 0, 0]), 480, 832)


def test_a_part_of_a_latent_is_refused() -> None:
    with pytest.raises(BadControl, match="4 for each latent"):
        control.live_relative(LiveCamera(), [Motion()] * 7)
