"""The fast forms draw what the plain forms draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pipeline.tiny.cells import cells_of, latents_of
from pipeline.tiny.decoder import FastDecoder
from pipeline.tiny.motion import MAX_PITCH, Player
from pipeline.tiny.renderer import Renderer
from training.tiny.poses import random_poses, walked_poses


def scenes() -> dict[str, np.ndarray]:
    random = random_poses(np.random.RandomState(77), 16)
    looks = random_poses(np.random.RandomState(78), 8)
    looks[:, 3] = np.where(np.arange(8) % 2, MAX_PITCH, -MAX_PITCH)
    away = random_poses(np.random.RandomState(79), 4)
    away[:, :2] = 11.9 * np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
    away[:, 2] = (0, math.pi / 2, math.pi, -math.pi / 2)  # nothing but far things ahead
    return {
        "random poses": random,
        "steepest looks": looks,
        "out of the world": away,
        "walking": walked_poses(Player(-6.5, 0.2, 0.35), ["W", "WL", "L", "WJ"] * 2),
        "looking up": walked_poses(Player(-1.1, 1.0, 0.5), ["I"] * 8),
        "at the water": walked_poses(Player(1.2, 1.6, 0.8, -12.0), ["L"] * 4),
        "into a tree": walked_poses(Player(-6.9, 4.9, 0.64), ["W"] * 12),
    }


@pytest.mark.parametrize("name", scenes())
@torch.inference_mode()
def test_fast_rendering_equals_the_plain_one(veldt, name):
    renderer, decoder = Renderer(veldt.scene), veldt.decoder
    poses = scenes()[name]
    for four in np.split(poses, len(poses) // 4):
        plain, fast = veldt.latents(four), latents_of(renderer.cells(four))
        assert (plain - fast).abs().max() < 4e-3
        assert (decoder(plain) - decoder(fast)).abs().max() * 255 < 0.75


@torch.inference_mode()
def test_rendering_does_not_depend_on_what_was_rendered_before(veldt):
    poses = scenes()["random poses"]
    used, fresh = Renderer(veldt.scene), Renderer(veldt.scene)
    for four in np.split(poses, 4):
        used.cells(four)
    assert torch.equal(used.cells(poses[:4]), fresh.cells(poses[:4]))


@torch.inference_mode()
def test_one_pose_or_many_give_the_same_cells(veldt):
    renderer, poses = Renderer(veldt.scene), scenes()["walking"]
    alone = torch.cat([renderer.cells(poses[k : k + 1]) for k in range(4)])
    assert (alone - renderer.cells(poses[:4])).abs().max() < 1e-4


@torch.inference_mode()
def test_fast_decoding_equals_the_plain_one(veldt):
    latents = veldt.latents(scenes()["random poses"][:4])
    plain = (veldt.decoder(latents).clamp(0, 1) * 255 + 0.5).to(torch.uint8)
    pictures = plain.permute(0, 2, 3, 1).numpy().astype(int)
    cells = cells_of(latents)
    exact = FastDecoder(veldt.decoder, torch.float32).pictures(cells)
    rough = FastDecoder(veldt.decoder, torch.bfloat16).pictures(cells)
    assert np.abs(exact - pictures).max() <= 1
    assert (exact != pictures).mean() < 1e-3
    assert np.abs(rough - pictures).max() <= 2
    assert (rough != pictures).mean() < 0.1


def test_cells_hold_exactly_what_latents_hold():
    latents = torch.randn(2, 24, 80, 128)
    cells = cells_of(latents)
    assert cells.shape == (2, 80, 128, 32)
    assert torch.equal(latents_of(cells), latents)
