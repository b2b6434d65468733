"""LingBot-World-Fast at its real shape with random weights: seconds a stage, on one GPU.

Measures a live session at 464x832: prompt, image prefix, chunks of 3 latents once the window is
full, decode latent by latent and a chunk at once; memory; layers compiled or not. The ceiling is
the bf16 matrix rate that this very machine reaches, measured first; real time needs 0.75 s a chunk.

`python -m benchmarks.micro.lingbot_gpu` prints a table and one JSON line. Without CUDA it says "not
run"; `--tiny` walks the same code at toy size anywhere, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TypeVar

import torch
from torch import Tensor, nn

from pipeline.lingbot.condition import ImagePrefix, encode_prefix
from pipeline.lingbot.config import CHUNK, FPS, DiTConfig, UMT5Config, VAEConfig, frame_tokens
from pipeline.lingbot.denoise import DenoiseState, Text, denoise_chunk
from pipeline.lingbot.dit import DiT, compile_blocks, keep_float32
from pipeline.lingbot.kv_cache import KVCache, Window, kv_bytes
from pipeline.lingbot.sampler import NoiseCursor, few_steps
from pipeline.lingbot.text_encoder import build_umt5, encode_prompt
from pipeline.lingbot.vae import VAE, State, state_tensors

REAL_TIME_SECONDS = 4 * CHUNK / FPS
COMPILE_WARM_UP = 2


Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Setup:
    """What is measured."""

    dit: DiTConfig = field(default_factory=DiTConfig)
    vae: VAEConfig = field(default_factory=VAEConfig)
    umt5: UMT5Config = field(default_factory=UMT5Config)
    latent_hw: tuple[int, int] = (58, 104)
    window: int = 21
    sink: int = 3
    chunks: int = 5
    device: str = "cuda"


TINY = Setup(
    dit=DiTConfig(dim=128, ffn_dim=256, layers=2, heads=1, text_dim=32, text_len=8),
    vae=VAEConfig(dim=4),
    umt5=UMT5Config(vocab=64, dim=32, attn_dim=32, ffn_dim=64, heads=4, layers=2),
    latent_hw=(4, 6),
    window=9,
    chunks=2,
    device="cpu",
)


def random_weights(build: Callable[[], Model], dtype: torch.dtype, device: str) -> Model:
    """A model of real shape whose values are small noise: speed does not depend on them."""
    with torch.device("meta"):
        model = build().to(dtype)
    model.to_empty(device=device)
    for parameter in model.parameters():
        parameter.requires_grad_(False).normal_(std=0.02)
    model.train(False)
    return model


def seconds(run: Callable[[], object], device: str) -> float:
    """How long one call takes, the device's queue emptied before and after."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def matrix_rate(device: str, size: int) -> float:
    """FLOP/s of a large bf16 matrix product here: the roof."""
    a, b = (torch.randn(size, size, device=device).bfloat16() for _ in range(2))
    times = [seconds(lambda: a @ b, device) for _ in range(6)]
    return float(2 * size**3 / median(times[1:]))


def chunk_flops(dit: DiT, tokens: int, seen: int, steps: int) -> float:
    """FLOPs of one chunk as it is computed here: camera once, text never, commit as one call."""
    layers = dict(dit.blocks.named_modules())
    weights = {n: m.weight.numel() for n, m in layers.items() if isinstance(m, nn.Linear)}
    camera = sum(count for name, count in weights.items() if ".cam_" in name)
    cross = ("cross_attn.k", "cross_attn.v")
    text = sum(count for name, count in weights.items() if name.endswith(cross))
    each_call = 2 * (sum(weights.values()) - camera - text) * tokens
    attention = 4 * tokens * (seen + dit.config.text_len) * dit.config.dim * dit.config.layers
    return float((steps + 1) * (each_call + attention) + 2 * camera * tokens)


def denoise_seconds(
    setup: Setup, dit: DiT, text: Text, prefix: ImagePrefix, dtype: torch.dtype = torch.bfloat16
) -> tuple[float, float, Tensor]:
    """First chunk, steady chunk (window full), and the last latents."""
    window = Window(frame_tokens(setup.latent_hw), setup.window, setup.sink)
    state = DenoiseState(
        KVCache.allocate(dit.config, window, dtype, setup.device), text, NoiseCursor(1)
    )
    control = torch.randn(
        1, dit.config.control_channels, CHUNK, *setup.latent_hw, device=setup.device
    )
    steps, times = few_steps(), []
    latents = torch.empty(0)

    def one(chunk: int) -> None:
        nonlocal state, latents
        y = prefix.condition(chunk * CHUNK, CHUNK)
        latents, state = denoise_chunk(dit, state, y, control, steps)

    filling = -(-setup.window // CHUNK) + COMPILE_WARM_UP
    for chunk in range(filling + setup.chunks):
        times.append(seconds(lambda chunk=chunk: one(chunk), setup.device))  # type: ignore[misc]
    return times[0], median(times[filling:]), latents


def decode_seconds(
    setup: Setup, vae: VAE, latents: Tensor, per_call: int | None
) -> tuple[float, int]:
    """A steady chunk of frames, and the bytes of the streaming cache."""
    state: State = None
    times = []

    def one() -> None:
        nonlocal state
        _, state = vae.decode(latents[None], state, per_call)

    for _ in range(1 + setup.chunks):
        times.append(seconds(one, setup.device))
    return median(times[1:]), sum(t.nbytes for t in state_tensors(state))


def prompt_seconds(setup: Setup) -> tuple[Tensor, float]:
    """A prompt of 100 tokens: its context, and how long it took once warm."""
    umt5 = random_weights(lambda: build_umt5(setup.umt5), torch.bfloat16, setup.device)
    ids = torch.randint(2, setup.umt5.vocab, (min(100, setup.dit.text_len),))
    context = encode_prompt(umt5, ids)
    return context, seconds(lambda: encode_prompt(umt5, ids), setup.device)


@torch.inference_mode()
def computed(setup: Setup) -> dict[str, float]:
    """What follows from the shapes alone, on the meta device: nothing is run."""
    with torch.device("meta"):
        dit, vae, umt5 = DiT(setup.dit), VAE(setup.vae), build_umt5(setup.umt5)
        h, w = setup.latent_hw
        _, encoder = vae.encode(torch.empty(1, 3, 9, 8 * h, 8 * w))
        _, decoder = vae.decode(torch.empty(1, setup.vae.z_dim, CHUNK, h, w))
    tokens, window = frame_tokens(setup.latent_hw), setup.window
    models = {"dit": dit, "vae": vae, "text_encoder": umt5}
    return {
        **{f"{n}_parameters": sum(p.numel() for p in m.parameters()) for n, m in models.items()},
        "cache_gb_per_latent_frame": kv_bytes(setup.dit, Window(tokens, 1)) / 1e9,
        "cache_gb": kv_bytes(setup.dit, Window(tokens, window, setup.sink)) / 1e9,
        "encoder_state_gb": sum(t.nbytes for t in state_tensors(encoder)) / 1e9,
        "decoder_state_gb": sum(t.nbytes for t in state_tensors(decoder)) / 1e9,
        "chunk_tflop": chunk_flops(dit, CHUNK * tokens, window * tokens, len(few_steps())) / 1e12,
    }


@torch.inference_mode()
def measure(setup: Setup, compiled: bool) -> dict[str, float | str]:
    """All figures for one setup."""
    device, half = setup.device, torch.bfloat16
    h, w = setup.latent_hw
    roof = matrix_rate(device, 8192 if device == "cuda" else 256)
    figures: dict[str, float | str] = {"matrix_tflops": roof / 1e12}

    context, figures["prompt_seconds"] = prompt_seconds(setup)
    vae = random_weights(lambda: VAE(setup.vae), torch.float32, device)
    image = torch.rand(3, 8 * h, 8 * w, device=device) * 2 - 1
    prefix = encode_prefix(vae, image)
    figures["image_prefix_seconds"] = seconds(lambda: encode_prefix(vae, image), device)

    dit = random_weights(lambda: DiT(setup.dit), half, device)
    text = Text.of(keep_float32(dit), context)
    first, steady, latents = denoise_seconds(setup, dit, text, prefix)
    tokens = CHUNK * frame_tokens(setup.latent_hw)
    flops = chunk_flops(dit, tokens, setup.window * frame_tokens(setup.latent_hw), len(few_steps()))
    figures |= {
        "first_chunk_seconds": first,
        "chunk_seconds": steady,
        "chunk_tflop": flops / 1e12,
        "roofline_share": flops / steady / roof,
    }
    if compiled:
        _, fast, latents = denoise_seconds(setup, compile_blocks(dit), text, prefix)
        figures |= {"chunk_seconds_compiled": fast, "roofline_share_compiled": flops / fast / roof}
        steady = min(steady, fast)
    by_latent, cache = decode_seconds(setup, vae, latents, 1)
    at_once, _ = decode_seconds(setup, vae, latents, None)
    figures |= {
        "decode_seconds_by_latent": by_latent,
        "decode_seconds_chunk_at_once": at_once,
        "decoder_cache_gb": cache / 1e9,
        "compute_fps": 4 * CHUNK / max(steady, min(by_latent, at_once)),
        "real_time_share": REAL_TIME_SECONDS / steady,
    }
    if device == "cuda":
        figures["peak_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        figures["device"] = torch.cuda.get_device_name()
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and the JSON line, or that it was not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.lingbot_gpu")
    parser.add_argument("--tiny", action="store_true", help="toy size on the CPU: no figures")
    parser.add_argument("--window", type=int, default=21, help="latent frames kept (default 21)")
    parser.add_argument("--sink", type=int, default=3, help="of which sink (default 3)")
    parser.add_argument("--chunks", type=int, default=5, help="steady chunks timed (default 5)")
    parser.add_argument("--no-compile", action="store_true", help="leave compiled layers out")
    options = parser.parse_args(arguments)
    setup = TINY
    if not options.tiny:
        given = {"window": options.window, "sink": options.sink, "chunks": options.chunks}
        setup = replace(Setup(), **given)
    shapes = computed(setup)
    print("computed from the shapes:")
    show(shapes)
    figures: dict[str, float | str] | str = "not run"
    if options.tiny or torch.cuda.is_available():
        figures = measure(setup, compiled=not options.no_compile)
        print(f"measured ({4 * CHUNK} frames a chunk, real time is {REAL_TIME_SECONDS} s):")
        show(figures)
    else:
        print("measured: not run, no CUDA device here")
    print(json.dumps({"lingbot_gpu": figures, "computed": shapes, "tiny": options.tiny}))


def show(figures: Mapping[str, float | str]) -> None:
    """A line a figure."""
    for name, value in figures.items():
        text = value if isinstance(value, str) else f"{value:,}" if value > 1e6 else f"{value:.4g}"
        print(f"  {name:30} {text}")


if __name__ == "__main__":
    main()
