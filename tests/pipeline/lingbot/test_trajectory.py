import math

import pytest
import torch

from pipeline.lingbot import trajectory
from pipeline.lingbot.errors import BadControl
from tests.pipeline.lingbot.reference import close, fixture

F = fixture("control_offline")
CASES = list(F.about["cases"])


@pytest.mark.parametrize("case", CASES)
def test_the_action_language_gives_the_reference_key_rows(case: str) -> None:
    about = F.about["cases"][case]
    wasd, ijkl = trajectory.parse_actions(about["action_string"])
    assert len(wasd) == about["frames"]
    close(wasd, F[f"{case}.wasd"])
    close(ijkl, F[f"{case}.ijkl"])
    loud = about["action_string"].upper().replace("-", " - ")
    padded, _ = trajectory.parse_actions(loud, pad=True)
    assert len(padded) == about["padded_4n_plus_1"]


@pytest.mark.parametrize("case", CASES)
def test_keys_walk_the_reference_trajectory(case: str) -> None:
    poses = trajectory.trajectory(trajectory.motions(F[f"{case}.wasd"], F[f"{case}.ijkl"]))
    close(poses, F[f"{case}.c2w"])
    assert torch.equal(poses[0], torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize("case", CASES)
def test_relative_poses_equal_the_reference_with_and_without_normalisation(case: str) -> None:
    expected = F[f"{case}.latent_c2w"]
    c2w = F[f"{case}.c2w"][: 4 * (len(expected) - 1) + 1]
    latents = trajectory.latent_poses(c2w, len(expected))
    close(latents, expected)
    close(trajectory.relative_poses(latents), F[f"{case}.rel"])
    close(trajectory.relative_poses(latents, normalise=False), F[f"{case}.rel_unnormalized"])


def test_fractional_spacing_is_interpolated_as_the_base_pipeline_does() -> None:
    about = F.about["act2cam_fractional"]
    expected = F["act2cam_fractional.latent_c2w"]
    sources = [F[f"{c}.c2w"] for c in CASES if len(F[f"{c}.c2w"]) == about["source_poses"]]
    resampled = [trajectory.latent_poses(source, about["latent"]) for source in sources]
    latents = min(resampled, key=lambda poses: (poses - expected).abs().max().item())
    close(latents, expected)
    close(trajectory.relative_poses(latents), F["act2cam_fractional.rel"])


@pytest.mark.parametrize(
    "text", ["", "w", "w-", "q-3", "w-1,,s-1", "w--3", "nonew-3", "w-999999999"]
)
def test_actions_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(BadControl):
        trajectory.parse_actions(text)


def test_poses_of_the_wrong_shape_are_refused() -> None:
    for shape in [(0, 4, 4), (4, 4), (3, 3, 4)]:
        with pytest.raises(BadControl):
            trajectory.latent_poses(torch.zeros(shape), 2)


def turned(axis: int, degrees: float) -> torch.Tensor:
    pose = torch.eye(4, dtype=torch.float64)
    i, j = [k for k in range(3) if k != axis]
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    pose[i, i], pose[i, j], pose[j, i], pose[j, j] = c, -s, s, c
    return pose


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("degrees", [0.0, 1e-7, 2.0, 90.0, 179.0, -120.0])
def test_halfway_between_two_poses_is_half_the_turn(axis: int, degrees: float) -> None:
    ends = torch.stack([turned(axis, 33.0), turned(axis, 33.0 + degrees)])
    middle = trajectory.latent_poses(ends, 3)[1]
    close(middle, turned(axis, 33.0 + degrees / 2).float())


def test_a_half_turn_between_poses_gives_a_rotation_not_nan() -> None:
    ends = torch.stack([turned(0, 0.0), turned(0, 180.0)])
    middle = trajectory.latent_poses(ends, 3)[1, :3, :3]
    close(middle @ middle.T, torch.eye(3), atol=1e-5)


def test_one_pose_stands_for_a_whole_still_video() -> None:
    poses = trajectory.latent_poses(torch.eye(4)[None], 4)
    assert torch.equal(poses, torch.eye(4).expand(4, 4, 4))
    assert torch.equal(trajectory.relative_poses(poses), torch.eye(4).expand(4, 4, 4))
