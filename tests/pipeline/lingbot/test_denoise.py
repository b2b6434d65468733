import gc
import shutil
from dataclasses import replace
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor

from pipeline.lingbot import control, trajectory
from pipeline.lingbot.condition import encode_prefix
from pipeline.lingbot.config import DiTConfig, latent_frames, video_frames
from pipeline.lingbot.denoise import DenoiseState, Reuse, Text, denoise_chunk
from pipeline.lingbot.dit import DiT, compile_blocks
from pipeline.lingbot.errors import BadWindow
from pipeline.lingbot.image import resize
from pipeline.lingbot.kv_cache import KVCache, Window
from pipeline.lingbot.sampler import ChunkNoise, NoiseCursor, few_steps
from pipeline.lingbot.vae import State
from tests.pipeline.lingbot.reference import Fixture, close, dit, fixture, names, vae

# The official pipeline end to end


def chunks_of(f: Fixture) -> tuple[int, int]:
    chunk = f.about["chunk_frames"]
    return chunk, f["latents"].shape[1] // chunk


def injected(f: Fixture, c: int) -> ChunkNoise:
    chunk, _ = chunks_of(f)
    again = [f[f"c{c}.s{s}.renoise"] for s in range(len(f.about["timesteps"]) - 1)]
    return ChunkNoise(f["noise"][:, c * chunk : (c + 1) * chunk], tuple(again))


def e2e_window(f: Fixture) -> Window:
    local, (h, w) = f.about["local_attn_size"], f["latents"].shape[2:]
    return Window(
        frame_tokens=h * w // 4,
        frames=f["latents"].shape[1] if local == -1 else local,
        sink=f.about["sink_size"],
        rolling=local != -1,
        max_attention_tokens=f.about["max_attention_tokens"],
    )


@pytest.mark.parametrize("name", names("e2e"))
def test_the_whole_pipeline_equals_the_official_one(name: str) -> None:
    """Image, action string and injected noise in; condition, control, latents and video out."""
    f = fixture(name)
    model, coder = dit(f.about["weights"]["dit"]), vae(f.about["weights"]["vae"])
    chunk, count = chunks_of(f)
    height, width = f.about["video_shape"][2:]

    wasd, ijkl = trajectory.parse_actions(f.about["action_string"])
    poses = trajectory.trajectory(trajectory.motions(wasd, ijkl)).float()
    close(poses, f["poses"])
    wanted = min(f.about["frame_num_requested"], len(poses))
    assert latent_frames(wanted, chunk) == chunk * count
    assert video_frames(chunk * count) == f.about["video_shape"][1]
    wanted -= (wanted - 1) % 4
    rel = trajectory.relative_poses(trajectory.latent_poses(f["poses"][:wanted], chunk * count))
    intrinsics = control.scale_intrinsics(f["intrinsics"], height, width)[0]
    whole_control = control.control_cam(rel, intrinsics, height, width)

    image = resize(f["image_uint8"], height, width)
    close(image[:, None], f["cond_video_first_frame"])
    prefix = encode_prefix(coder, image, latents=min(chunk * count, 30))
    close(prefix.condition(0, chunk * count)[4:], f["cond_latent"])

    steps = few_steps(f.about["shift"], tuple(f.about["timesteps_index"]))
    assert [s.timestep for s in steps] == f.about["timesteps"]
    state = DenoiseState(
        KVCache.allocate(model.config, e2e_window(f)),
        Text.of(model, f["context"]),
        NoiseCursor(0),
    )
    decoder: State = None
    latents, frames = [], []
    for c in range(count):
        y = prefix.condition(c * chunk, chunk)
        part = whole_control[:, :, c * chunk : (c + 1) * chunk]
        close(y, f[f"c{c}.y"])
        close(part, f[f"c{c}.control"])
        latent, state = denoise_chunk(model, state, y, part, steps, noise=injected(f, c))
        close(latent, f[f"c{c}.x0"])
        video, decoder = coder.decode(latent[None], decoder, per_call=None)
        latents.append(latent)
        frames.append(video[0].clamp(-1, 1))
    close(torch.cat(latents, dim=1), f["latents"])
    whole = torch.cat(frames, dim=1)
    pixels = whole[:, 0].numel()
    close(whole.sum((0, 2, 3)), f["video_sum_per_frame"], atol=2e-5 * pixels**0.5)
    stored = next(v for k, v in f.tensors.items() if k.startswith("video_frames_"))
    close(whole[:, f.about["video_frame_indices_stored"]], stored)


@pytest.mark.parametrize("name", names("e2e"))
def test_every_sampling_step_equals_the_official_one(name: str) -> None:
    f = fixture(name)
    model = dit(f.about["weights"]["dit"])
    steps = few_steps(f.about["shift"], tuple(f.about["timesteps_index"]))
    seen: list[tuple[Tensor, Tensor]] = []
    hook = model.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    state = DenoiseState(
        KVCache.allocate(model.config, e2e_window(f)),
        Text.of(model, f["context"]),
        NoiseCursor(0),
    )
    try:
        for c in range(chunks_of(f)[1]):
            seen.clear()
            _, state = denoise_chunk(
                model, state, f[f"c{c}.y"], f[f"c{c}.control"], steps, noise=injected(f, c)
            )
            assert len(seen) == len(steps)  # the commit is not a forward
            for s, (x, flow) in enumerate(seen):
                close(x[0], f[f"c{c}.s{s}.x"])
                close(flow[0], f[f"c{c}.s{s}.flow"])
    finally:
        hook.remove()


# A session at tiny width, with noise of its own

SMALL = DiTConfig(dim=32, ffn_dim=64, layers=2, heads=2, text_dim=16, text_len=4, freq_dim=16)
HW = (4, 6)
STEPS = few_steps(indices=(0, 679))


@pytest.fixture(scope="module")
def small() -> DiT:
    torch.manual_seed(5)
    return DiT(SMALL).eval().requires_grad_(False)


def opened(model: DiT, reuse: Reuse | None = None, **window: Any) -> DenoiseState:
    settings: dict[str, Any] = {"frame_tokens": 6, "frames": 7, "sink": 2}
    generator = torch.Generator().manual_seed(1)
    context = torch.randn(3, SMALL.text_dim, generator=generator)
    cache = KVCache.allocate(SMALL, Window(**settings | window))
    return DenoiseState(cache, Text.of(model, context, reuse), NoiseCursor(seed=9))


def inputs(chunk: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 + chunk)
    y = torch.randn(20, 3, *HW, generator=generator)
    return y, torch.randn(1, 384, 3, *HW, generator=generator)


def played(
    model: DiT, state: DenoiseState, chunks: int, reuse: Reuse | None = None
) -> tuple[list[Tensor], DenoiseState]:
    latents = []
    for c in range(chunks):
        latent, state = denoise_chunk(model, state, *inputs(c), STEPS, reuse=reuse)
        latents.append(latent)
    return latents, state


def ordered(state: DenoiseState) -> list[Tensor]:
    return [t for layer in range(SMALL.layers) for t in state.cache.ordered(layer)]


@pytest.mark.parametrize(
    "off",
    [Reuse(text=False), Reuse(camera=False), Reuse(short_commit=False), Reuse(False, False, False)],
)
def test_each_reuse_on_equals_off_bit_for_bit(small: DiT, off: Reuse) -> None:
    on, on_state = played(small, opened(small), 4)
    without, off_state = played(small, opened(small, off), 4, off)
    assert all(map(torch.equal, on, without))
    assert all(map(torch.equal, ordered(on_state), ordered(off_state)))


def test_reuse_spares_the_calls_it_says(small: DiT) -> None:
    calls: dict[str, int] = {}

    def count(name: str) -> None:
        calls[name] = calls.get(name, 0) + 1

    watched = ("text_embedding", "patch_embedding_wancamctrl", "head")
    hooks = [
        small.get_submodule(n).register_forward_hook(lambda *_, n=n: count(n)) for n in watched
    ]
    try:
        played(small, opened(small), 2)
        assert calls == {"text_embedding": 1, "patch_embedding_wancamctrl": 2, "head": 4}
        calls.clear()
        none = Reuse(False, False, False)
        played(small, opened(small, none), 2, none)
        assert calls == {"text_embedding": 6, "patch_embedding_wancamctrl": 6, "head": 6}
    finally:
        for hook in hooks:
            hook.remove()


def compiled(model: DiT, backend: str) -> DiT:
    torch._dynamo.reset()
    fast = DiT(SMALL).eval().requires_grad_(False)
    fast.load_state_dict(model.state_dict())
    return compile_blocks(fast, backend)


def test_compiled_layers_equal_plain_ones_along_a_session(small: DiT) -> None:
    """Graphs are captured as for inductor, whose code generation the next test pays for once."""
    plain, _ = played(small, opened(small), 4)
    fast, _ = played(compiled(small, "aot_eager"), opened(small), 4)
    for a, b in zip(fast, plain, strict=True):
        close(a, b)


@pytest.mark.timeout(400)  # a C++ compiler works here, on however few cores
@pytest.mark.skipif(not shutil.which("g++"), reason="generating code needs a C++ compiler")
def test_generated_code_equals_plain_layers(small: DiT) -> None:
    plain, _ = played(small, opened(small), 1)
    fast, _ = played(compiled(small, "inductor"), opened(small), 1)
    close(fast[0], plain[0])


def test_a_layer_compiles_without_a_break(small: DiT) -> None:
    """A graph break would silently cost the speed that compiling is for."""
    state = opened(small)
    cache = state.cache.opened(3)
    _, control_tensor = inputs(0)
    torch._dynamo.reset()
    explained = torch._dynamo.explain(small.blocks[0])(
        torch.randn(1, 18, 32),
        torch.randn(1, 1, 6, 32),
        torch.randn(2, 18, 8),
        small.embed_text(state.text.context)[0],
        small.embed_camera(control_tensor)[0],
        cache.layers()[0],
    )
    assert explained.graph_break_count == 0


@pytest.mark.parametrize("hits", [1, 2, 3])
def test_known_latents_then_sampling_equal_a_run_that_sampled_them(small: DiT, hits: int) -> None:
    sampled, end = played(small, opened(small), 5)
    state = opened(small)
    for c in range(5):
        known = sampled[c] if c < hits else None
        latent, state = denoise_chunk(small, state, *inputs(c), STEPS, known=known)
        assert torch.equal(latent, sampled[c])
    assert all(map(torch.equal, ordered(state), ordered(end)))
    assert (state.noise, state.cache.cursor) == (end.noise, end.cache.cursor)


def test_a_known_latent_is_committed_without_one_sampling_call(small: DiT) -> None:
    sampled, _ = played(small, opened(small), 1)
    calls: list[str] = []
    hook = small.head.register_forward_hook(lambda *_: calls.append("head"))
    try:
        denoise_chunk(small, opened(small), *inputs(0), STEPS, known=sampled[0])
    finally:
        hook.remove()
    assert calls == []


def test_the_same_seed_gives_the_same_latents_and_another_seed_others(small: DiT) -> None:
    first, _ = played(small, opened(small), 2)
    again, _ = played(small, opened(small), 2)
    assert all(map(torch.equal, first, again))
    state = opened(small)
    other, _ = played(small, replace(state, noise=NoiseCursor(10)), 2)
    assert not torch.equal(other[0], first[0])


def test_a_reset_plays_the_same_session_again(small: DiT) -> None:
    first, end = played(small, opened(small), 4)
    fresh = DenoiseState(end.cache.restarted(), end.text, NoiseCursor(seed=9))
    again, _ = played(small, fresh, 4)
    assert all(map(torch.equal, first, again))


def test_a_new_prompt_changes_what_follows_and_keeps_the_cache(small: DiT) -> None:
    _, after_two = played(small, opened(small), 2)
    before = ordered(after_two)
    text = Text.of(small, torch.ones(4, SMALL.text_dim))
    changed = replace(after_two, text=text)
    assert all(map(torch.equal, before, ordered(changed)))
    other, _ = denoise_chunk(small, changed, *inputs(2), STEPS)
    same, _ = played(small, opened(small), 3)
    assert not torch.equal(other, same[2])


def test_positions_rebased_or_not_give_the_same_session(small: DiT) -> None:
    plain, _ = played(small, opened(small, position_limit=None), 8)
    rebased, state = played(small, opened(small, position_limit=8), 8)
    assert state.cache.cursor.base > 0
    for a, b in zip(rebased, plain, strict=True):
        close(a, b)


def test_a_bounded_sink_distance_changes_nothing_until_it_is_reached(small: DiT) -> None:
    plain, _ = played(small, opened(small), 6)
    bounded, state = played(small, opened(small, max_sink_distance=11), 6)
    for c in range(4):  # frames 0..11: the distance is at most 11
        assert torch.equal(bounded[c], plain[c])
    assert state.cache.cursor.sink_shift > 0
    assert not torch.equal(bounded[5], plain[5])


def test_3000_latents_pass_the_position_limit_without_growing() -> None:
    torch.manual_seed(2)
    model = DiT(replace(SMALL, layers=1)).eval().requires_grad_(False)
    state = opened(model)
    state = replace(state, cache=KVCache.allocate(model.config, Window(6, 9, sink=3)))
    buffers = state.cache.keys.data_ptr(), state.cache.values.data_ptr()
    y, control_tensor = inputs(0)
    step = few_steps(indices=(679,))
    process, memory = psutil.Process(), 0
    for chunk in range(1000):
        latent, state = denoise_chunk(model, state, y, control_tensor, step)
        if chunk == 100:
            gc.collect()
            memory = process.memory_info().rss
    gc.collect()
    assert process.memory_info().rss - memory <= 20e6
    assert torch.isfinite(latent).all()
    assert state.cache.cursor.end == 3000 * 6
    assert (state.cache.keys.data_ptr(), state.cache.values.data_ptr()) == buffers
    assert state.cache.cursor.start_frame(state.cache.window) + 3 <= 1024


def test_a_chunk_that_does_not_fit_changes_nothing(small: DiT) -> None:
    state = opened(small, frames=4)
    before = state.cache.keys.clone()
    with pytest.raises(BadWindow):
        denoise_chunk(small, state, *inputs(0), STEPS)
    assert torch.equal(state.cache.keys, before)
