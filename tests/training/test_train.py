"""The recipe runs, learns, and what it saves can be played."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pipeline.registry import load_world
from pipeline.tiny.networks import Veldt
from pipeline.tiny.starts import FOLDER, STARTS
from pipeline.tiny.weights import load_weights
from tests.fakes.player import FakePlayer, holding
from training.tiny import evaluate, starts, train
from training.tiny.judge import Artist, true_pictures
from training.tiny.poses import random_poses

pytestmark = pytest.mark.timeout(400)  # the true renderer is compiled here, on however few cores


def trainer(tmp_path, *more: str) -> train.Trainer:
    torch.set_num_threads(1)
    line = [
        "--minutes",
        "60",  # far away: the step size depends on the share of them that is over
        "--out",
        str(tmp_path / "veldt.pt"),
        "--held-out",
        "4",
        "--batch",
        "2",
    ]
    return train.Trainer(train.parser_of_options().parse_args([*line, *more]))


def test_a_few_steps_lower_the_loss_and_their_weights_can_be_played(tmp_path):
    run = trainer(tmp_path, "--steps", "12")
    before = run.validate()
    run.run()
    entry = run.log[-1]
    assert entry["steps"] == 12
    assert entry["psnr"] > before["psnr"] + 0.3
    _, metadata = load_weights(tmp_path / "veldt.safetensors")
    assert metadata["steps"] == 12
    assert metadata["recipe"]["script"] == "training/tiny/train.py"
    world = load_world("tiny", {"fps": 16, "weights": str(tmp_path / "veldt.safetensors")})
    assert FakePlayer(world).play([holding("KeyW")] * 4).std() > 5

    resumed = trainer(tmp_path, "--steps", "1", "--resume", str(tmp_path / "veldt.pt"))
    assert resumed.steps == 12
    for name, tensor in run.veldt.state_dict().items():
        assert torch.equal(tensor, resumed.veldt.state_dict()[name]), name
    resumed.run()
    assert resumed.steps == 13


def test_the_true_renderer_draws_the_packaged_start_pictures():
    for name, (_, player) in STARTS.items():
        (picture,) = true_pictures(np.array([player.pose()]))
        assert np.array_equal(picture, np.asarray(Image.open(FOLDER / f"{name}.png"))), name


def test_poses_for_training_reach_everywhere_but_into_things():
    poses = random_poses(np.random.RandomState(0), 400)
    assert np.hypot(poses[:, 0], poses[:, 1]).max() <= 12
    assert np.hypot(poses[:, 0], poses[:, 1]).max() > 11
    assert np.abs(poses[:, 3]).max() == 26
    assert np.array_equal(poses, random_poses(np.random.RandomState(0), 400))


def test_the_judge_tells_packaged_weights_from_fresh_ones():
    trained, fresh = load_weights()[0], Veldt().eval().requires_grad_(False)
    assert evaluate.held_out(Artist(trained), 4)["worst"] >= 44
    assert evaluate.held_out(Artist(fresh), 4)["mean"] < 25


@pytest.mark.parametrize("module", [train, evaluate, starts])
def test_the_commands_of_the_guide_explain_themselves(module, monkeypatch, capsys):
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "tiny.md").read_text()
    assert f"python -m {module.__name__}" in guide
    if module is not starts:  # which takes no arguments
        monkeypatch.setattr("sys.argv", [module.__name__, "--help"])
        with pytest.raises(SystemExit):
            module.main()
        assert "usage" in capsys.readouterr().out
