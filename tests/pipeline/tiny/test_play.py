"""The world as played through the model-author contract, judged by its pictures."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image

from pipeline.service import ControlSnapshot, SessionStart
from pipeline.tiny.motion import poses_of
from pipeline.tiny.networks import Veldt
from pipeline.tiny.stages import walk
from pipeline.tiny.starts import FOLDER, STARTS
from pipeline.tiny.states import DecodeState, DenoiseState
from pipeline.tiny.world import make_world
from tests.fakes.player import FakePlayer, holding
from training.tiny import flow
from training.tiny.judge import Artist, psnr, true_pictures
from training.tiny.poses import random_keys, random_poses, walked_poses

pytestmark = pytest.mark.timeout(400)  # the true renderer is compiled here, on however few cores

WALK = [holding("KeyW"), holding("KeyW", "KeyL"), holding(), holding("KeyJ"), holding("KeyS")]


def test_a_chunk_is_one_latent_of_four_frames_that_leave_one_by_one(world):
    player = FakePlayer(world)
    frames = player.chunk()
    assert frames.shape == (4, 160, 256, 3)
    assert frames.dtype == np.uint8
    assert player.pieces == [1, 1, 1, 1]
    player.close()


def test_same_start_and_same_controls_give_identical_frames(world):
    assert np.array_equal(FakePlayer(world).play(WALK), FakePlayer(world).play(WALK))


def test_other_controls_from_chunk_n_on_change_nothing_before_and_everything_after(world):
    first = FakePlayer(world).play(WALK)
    other = FakePlayer(world).play([*WALK[:3], holding("KeyL"), holding("KeyW")])
    tap = ControlSnapshot(presses={"KeyL": 1})
    tapped = FakePlayer(world).play([*WALK[:3], tap, holding()])
    for changed in (other, tapped):
        assert np.array_equal(first[:12], changed[:12])
        assert (first[12] != changed[12]).mean() > 0.2


def test_a_session_saved_and_resumed_after_every_chunk_plays_on_identically(world):
    def through_disk(stage: str, state: object) -> object:
        if isinstance(state, DenoiseState):
            return DenoiseState.from_dict(json.loads(json.dumps(state.to_dict())))
        if isinstance(state, DecodeState):
            return DecodeState.from_dict(copy.deepcopy(state.to_dict()))
        return state

    tapping = [ControlSnapshot(presses={"KeyW": 9}), *WALK]
    player = FakePlayer(world)
    resumed = player.play(tapping, between=through_disk)
    assert np.array_equal(FakePlayer(world).play(tapping), resumed)
    assert isinstance(player.states["denoise"], DenoiseState)


def test_a_state_can_be_kept_and_played_on_twice(world):
    player = FakePlayer(world)
    player.play(WALK[:2])
    kept = dict(player.states)
    first = player.play(WALK[2:])
    player.states, player.index = kept, 2
    assert np.array_equal(first, player.play(WALK[2:]))


@pytest.mark.parametrize("key", "WSJLADIK")
def test_a_held_key_moves_the_picture_as_the_pose_says(world, key):
    player = FakePlayer(world)
    player.states["denoise"] = DenoiseState(flow.START, 16.0)
    player.states["decode"] = DecodeState(16.0, frame=1000)  # the start picture is long gone
    player.index = 1
    film = player.play([holding(f"Key{key}")] * 6)
    measured = flow.mean_flow(key, film)
    expected = flow.mean_flow(key, true_pictures(flow.held_poses(key)))
    if key in "WS":
        assert (measured - 1) * (1 if key == "W" else -1) > 0.01
        assert measured == pytest.approx(expected, abs=0.002)
    else:
        direction = {"J": 1, "L": -1, "A": 1, "D": -1, "I": 1, "K": -1}[key]
        assert measured * direction > 1.5
        assert measured == pytest.approx(expected, abs=0.25)


@pytest.mark.parametrize("name", STARTS)
def test_the_start_picture_dissolves_into_the_world(world, name):
    player = FakePlayer(world, SessionStart(start_point=name))
    picture = np.asarray(Image.open(FOLDER / f"{name}.png"))
    film = player.play([holding()] * 3 + [holding("KeyL")])
    assert psnr(picture, film[0]) > 38  # its own place: only the wind has moved
    assert isinstance(player.states["decode"], DecodeState)
    assert player.states["decode"].start is None


def test_any_picture_may_be_brought_and_is_gone_after_750_ms(world):
    red = Image.new("RGB", (300, 900), (220, 20, 30))
    path = FOLDER / "hut.png"
    content = path.read_bytes() if red is None else png(red)
    brought = FakePlayer(world, SessionStart(start_point="hut", image=content))
    own = FakePlayer(world, SessionStart(start_point="hut"))
    film, plain = brought.play([holding()] * 4), own.play([holding()] * 4)
    assert film[0].mean((0, 1)) == pytest.approx([220, 20, 30], abs=25)
    redness = film[:12, ..., 0].mean((1, 2)) - film[:12, ..., 1].mean((1, 2))
    assert (np.diff(redness) < 0).all()
    assert np.array_equal(film[12:], plain[12:])


def png(image: Image.Image) -> bytes:
    from io import BytesIO

    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def likeness(veldt: Veldt) -> np.ndarray:
    poses = np.concatenate(
        [
            random_poses(np.random.RandomState(999), 16),
            walked_poses(STARTS["hut"][1], random_keys(np.random.RandomState(7), 160))[::5],
        ]
    )
    return psnr(true_pictures(poses), Artist(veldt).pictures(poses))


def test_the_packaged_weights_are_like_the_truth(veldt):
    decibel = likeness(veldt)
    assert decibel.mean() >= 47
    assert decibel.min() >= 44


def test_random_weights_are_not(veldt):
    torch.manual_seed(0)
    assert likeness(Veldt().eval().requires_grad_(False)).max() < 25


@pytest.mark.parametrize("fps", [24.0, 32.0])
def test_at_any_frame_rate_the_pictures_are_like_the_truth(fps):
    world = make_world(fps=fps)
    assert world.info.chunk_seconds == pytest.approx(4 / fps)
    player = FakePlayer(world, SessionStart(start_point="open-plain"))
    control = holding("KeyW", "KeyL")
    player.play([control] * math.ceil(0.75 * fps / 4))
    before = player.states["denoise"]
    assert isinstance(before, DenoiseState)
    steering = player.policy.bind(player.index, control)["control"]
    players, _ = walk(before, steering)
    film = player.play([control])
    assert psnr(true_pictures(poses_of(players)), film).min() >= 44
