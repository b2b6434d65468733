"""Measure the neural veldt against the true picture; prints every figure as it is known.

    python -m training.tiny.evaluate                 all of it (a few minutes on two cores)
    python -m training.tiny.evaluate --seconds 10    shorter rollouts
    python -m training.tiny.evaluate --into-weights  also stores the figures in the weights

`--report FILE` writes the figures as JSON, `--sheet FILE` draws moments of the rollouts, the truth
above the model. Pictures are made exactly as the service makes them on this machine.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.tiny.cells import cells_of
from pipeline.tiny.motion import MAX_PITCH, Array, Player, poses_of
from pipeline.tiny.networks import Veldt
from pipeline.tiny.place import OBSTACLES
from pipeline.tiny.starts import STARTS
from pipeline.tiny.weights import PACKAGED, load_weights, save_weights
from training.tiny import flow
from training.tiny.judge import Artist, Pictures, flicker, psnr, true_pictures
from training.tiny.poses import (
    JUDGED_FPS,
    random_keys,
    random_poses,
    tour_keys,
    walked,
    walked_poses,
)

Pair = tuple[Pictures, Pictures]  # true, model: one picture [H, W, 3] each
TOUR_START = Player(-6.5, 0.2, 0.35)
Note = Callable[[str, object], None]


def rollout(artist: Artist, poses: Array) -> tuple[dict[str, Any], list[Pair]]:
    """Return figures of one rollout and six of its moments."""
    true, made = true_pictures(poses), artist.pictures(poses)
    decibel = psnr(true, made)
    second = int(JUDGED_FPS)
    seconds = [part.mean() for part in np.array_split(decibel, max(1, len(decibel) // second))]
    figures: dict[str, Any] = {
        "mean": decibel.mean(),
        "worst_second": min(seconds),
        "worst_frame": decibel.min(),
        "first_10s": decibel[: 10 * second].mean(),
        "last_10s": decibel[-10 * second :].mean(),
    }
    figures = {name: round(float(value), 2) for name, value in figures.items()}
    figures["frame_to_frame_change"] = flicker(true, made)
    moments = np.linspace(0, len(made) - 1, 6).astype(int)
    return figures, [(true[k], made[k]) for k in moments]


def held_out(artist: Artist, count: int = 48) -> dict[str, float]:
    """Return mean and worst dB of poses drawn as in training, but never trained on."""
    poses = random_poses(np.random.RandomState(999), count)
    decibel = psnr(true_pictures(poses), artist.pictures(poses))
    return {"mean": round(float(decibel.mean()), 2), "worst": round(float(decibel.min()), 2)}


def extreme_looks(artist: Artist, count: int = 96) -> dict[str, float]:
    """Return mean and worst dB of random poses that look as far down or up as they can."""
    poses = random_poses(np.random.RandomState(12), count)
    poses[:, 3] = np.where(np.arange(count) % 2, MAX_PITCH, -MAX_PITCH)
    decibel = psnr(true_pictures(poses), artist.pictures(poses))
    return {"mean": round(float(decibel.mean()), 2), "worst": round(float(decibel.min()), 2)}


def flows(artist: Artist) -> dict[str, dict[str, float]]:
    """Measure the picture's motion per frame for each key: pixels (J L A D I K) or zoom (W S)."""
    result = {}
    for key in "WSJLADIK":
        poses = flow.held_poses(key)
        films = (("true", true_pictures(poses)), ("model", artist.pictures(poses)))
        result[key] = {name: round(flow.mean_flow(key, film), 4) for name, film in films}
    return result


def collisions(artist: Artist) -> dict[str, dict[str, float]]:
    """Hold W straight into a tree, a rock and the hut: the eye stops at the obstacle's circle."""
    result = {}
    for name, index in (("tree", 1), ("rock", 9), ("hut", 14)):
        x, y, radius = OBSTACLES[index]
        players = walked(Player(x - (radius + 2.5), y, 0.0, -6.0), ["W"] * 60)
        poses = poses_of(players[-12:])
        result[name] = {
            "stops_at": round(math.hypot(players[-1].x - x, players[-1].y - y), 3),
            "radius": round(float(radius), 3),
            "psnr": round(float(psnr(true_pictures(poses), artist.pictures(poses)).mean()), 2),
        }
    return result


def encoder_round_trip(veldt: Veldt) -> dict[str, float]:
    """Return dB of decode(encode(picture)) for every start picture."""
    artist, result = Artist(veldt), {}
    for name, (_, player) in STARTS.items():
        picture = true_pictures(np.array([player.pose()]))
        pixels = torch.from_numpy(picture.copy()).permute(0, 3, 1, 2).float() / 255
        with torch.inference_mode():
            made = artist.decoded(cells_of(veldt.encoder(pixels)))
        result[name] = round(float(psnr(picture, made)[0]), 2)
    return result


def wander(artist: Artist, seconds: int) -> dict[str, float]:
    """Walk at random for long; return quality early and late, and how near and far it went."""
    keys = random_keys(np.random.RandomState(31), seconds * int(JUDGED_FPS))
    poses = walked_poses(STARTS["hut"][1], keys)
    parts = np.array_split(poses, max(1, len(poses) // 120))
    decibel = np.concatenate([psnr(true_pictures(part), artist.pictures(part)) for part in parts])
    x, y = poses[:, :1], poses[:, 1:2]
    gap = np.hypot(x - OBSTACLES[:, 0], y - OBSTACLES[:, 1]) - OBSTACLES[:, 2]
    tenth = len(decibel) // 10
    return {
        "seconds": seconds,
        "mean": round(float(decibel.mean()), 2),
        "worst_frame": round(float(decibel.min()), 2),
        "first_tenth": round(float(decibel[:tenth].mean()), 2),
        "last_tenth": round(float(decibel[-tenth:].mean()), 2),
        "farthest_from_centre": round(float(np.hypot(x, y).max()), 3),
        "closest_to_obstacle": round(float(gap.min()), 4) + 0.0,
    }


def sheet(pairs: list[Pair], path: Path, columns: int = 3) -> None:
    """Save pairs as a sheet, each with the truth above the model."""
    cells = [np.concatenate(pair, 0) for pair in pairs]
    starts = range(0, len(cells) - columns + 1, columns)
    rows = [np.concatenate(cells[k : k + columns], 1) for k in starts]
    Image.fromarray(np.concatenate(rows, 0)).save(path, optimize=True)


def evaluate(veldt: Veldt, seconds: int, wander_seconds: int, note: Note) -> list[Pair]:
    """Run all measurements, note each, and return moments of the rollouts."""
    artist, frames = Artist(veldt), seconds * int(JUDGED_FPS)
    note("held_out", held_out(artist))
    tour, seen = rollout(artist, walked_poses(TOUR_START, tour_keys(frames)))
    note("tour", tour)
    keys = random_keys(np.random.RandomState(7), frames)
    random, seen_at_random = rollout(artist, walked_poses(Player(2.0, -3.0, -2.0), keys))
    note("random_keys", random)
    note("extreme_looks", extreme_looks(artist))
    note("flow_per_frame", flows(artist))
    note("hold_w_into", collisions(artist))
    note("encoder_round_trip", encoder_round_trip(veldt))
    note("wander", wander(artist, wander_seconds))
    return seen + seen_at_random


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description="Measure the neural veldt.")
    parser.add_argument("--weights", type=Path, default=PACKAGED)
    parser.add_argument("--seconds", type=int, default=60, help="length of the two rollouts")
    parser.add_argument("--wander", type=int, default=300, help="seconds of the long walk")
    parser.add_argument("--into-weights", action="store_true")
    parser.add_argument("--report", type=Path, help="write the figures here, as JSON")
    parser.add_argument("--sheet", type=Path, help="draw moments here, truth above model")
    options = parser.parse_args()
    veldt, metadata = load_weights(options.weights)
    figures: dict[str, Any] = {}

    def note(name: str, value: object) -> None:
        figures[name] = value
        print(f"{name}: {json.dumps(value)}", flush=True)

    note("megabytes", round(options.weights.stat().st_size / 1e6, 2))
    pairs = evaluate(veldt, options.seconds, options.wander, note)
    if options.sheet:
        sheet(pairs, options.sheet)
    if options.report:
        options.report.write_text(json.dumps(figures, indent=2) + "\n")
    if options.into_weights:
        save_weights(veldt, options.weights, {**metadata, "evaluation": figures})


if __name__ == "__main__":
    main()
