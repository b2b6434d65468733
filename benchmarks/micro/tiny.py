"""The embedded world's stages on one thread, without service or browser.

What is measured: processor time a latent (4 frames) of denoise and decode, walking the judge's
kind of tour, in the fast forms that are played and in the plain ones that are trained, alternating
so that whatever else the machine does hits both. Then the compute factor of the warm-up's walk at
each frame rate (control → last frame ÷ duration, 95th percentile, wall clock).
The ceiling: decode is 2.4 GFLOP a latent, so about 25 ms at 95 GFLOPS in float32.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from pipeline.service import SessionStart
from pipeline.tiny import motion
from pipeline.tiny.cells import cells_of
from pipeline.tiny.controls import NOTHING_UNSPENT, Steering
from pipeline.tiny.decoder import FastDecoder, multiplies_bfloat16
from pipeline.tiny.networks import FRAMES_PER_LATENT
from pipeline.tiny.renderer import Renderer
from pipeline.tiny.stages import torch_thread
from pipeline.tiny.starts import STARTS
from pipeline.tiny.warm_up import RATES, UNCOUNTED, Speed, Walker
from pipeline.tiny.weights import load_weights
from pipeline.tiny.world import make_world

MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
    "OMP_NUM_THREADS": "1",
}  # as the worker is spawned
TOUR = ("W", "WL", "L", "WJ", "W", "K", "WD", "I", "J", "W", "", "WL")
LATENTS, CHUNKS = 60, 40


def tour_poses(count: int) -> list[motion.Array]:
    """Return the poses [4, 5] of `count` latents."""
    player, latents = STARTS["waterhole"][1], []
    for number in range(count):
        held = TOUR[number // 5 % len(TOUR)]
        wanted, _ = Steering.holding(held).frames(NOTHING_UNSPENT, FRAMES_PER_LATENT, 1 / 16)
        players = []
        for frame in wanted:
            player = motion.step(player, frame, 1 / 16)
            players.append(player)
        latents.append(motion.poses_of(players))
    return latents


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of one call on this thread."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1e3


def stage_times() -> dict[str, float]:
    """Return median milliseconds a latent of both stages, fast and plain."""
    veldt, _ = load_weights()
    precision = torch.bfloat16 if multiplies_bfloat16() else torch.float32
    renderer, decoder = Renderer(veldt.scene), FastDecoder(veldt.decoder, precision)
    times: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        times.setdefault(name, []).append(value)

    for number, poses in enumerate(tour_poses(LATENTS + UNCOUNTED)):
        latents = veldt.latents(poses)
        cells = cells_of(latents)
        measured = {
            "tiny_denoise_ms": milliseconds(lambda p=poses: renderer.cells(p)),  # type: ignore[misc]
            "tiny_denoise_plain_ms": milliseconds(lambda p=poses: veldt.latents(p)),  # type: ignore[misc]
            "tiny_decode_ms": milliseconds(lambda c=cells: decoder.pictures(c)),  # type: ignore[misc]
            "tiny_decode_plain_ms": milliseconds(lambda x=latents: veldt.decoder(x)),  # type: ignore[misc]
        }
        if number >= UNCOUNTED:
            for name, value in measured.items():
                note(name, value)
    return {name: median(values) for name, values in times.items()}


def walk_speed() -> Speed:
    """Return the seconds that a chunk of the warm-up's walk takes."""
    world = make_world(fps=24)
    walker = Walker(world.stages(), world.policy(SessionStart()))
    return Speed.of([walker.chunk() for _ in range(UNCOUNTED + CHUNKS)][UNCOUNTED:])


def figures() -> dict[str, float]:
    """Measure everything."""
    with torch_thread(1):
        measured, speed = stage_times(), walk_speed()
    measured["tiny_chunk_p50_ms"] = speed.median_seconds * 1e3
    measured["tiny_chunk_p95_ms"] = speed.p95_seconds * 1e3
    return measured | {f"tiny_alone_factor_{fps:.0f}": speed.factor(fps) for fps in RATES}


def main() -> None:
    """Print the figures, then one line of JSON."""
    if any(os.environ.get(name) != value for name, value in MALLOC.items()):
        module = "benchmarks.micro.tiny"
        os.execve(sys.executable, [sys.executable, "-m", module], {**os.environ, **MALLOC})
    measured = figures()
    for stage in ("denoise", "decode"):
        fast, plain = measured[f"tiny_{stage}_ms"], measured[f"tiny_{stage}_plain_ms"]
        print(f"{stage} {fast:.1f} ms a latent, plain form {plain:.1f} ms, ×{plain / fast:.2f}")
    print(
        f"chunk p50 {measured['tiny_chunk_p50_ms']:.1f}, p95 {measured['tiny_chunk_p95_ms']:.1f} ms"
    )
    rates = ", ".join(
        f"{measured[f'tiny_alone_factor_{fps:.0f}']:.2f} at {fps:.0f}" for fps in RATES
    )
    print(f"compute factor {rates} frames a second")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
