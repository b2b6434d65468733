from typing import Any

import pytest
import torch
from torch import Tensor

from pipeline.lingbot.dit import DiT, keep_float32, patchify, unpatchify
from pipeline.lingbot.kv_cache import KVCache, Window
from tests.pipeline.lingbot.reference import Fixture, close, dit, fixture, names


def timestep(value: float) -> Tensor:
    return torch.tensor([value])


def window(about: dict[str, Any], **changes: Any) -> Window:
    local = about["local_attn_size"]
    tokens = about.get("frame_tokens") or about["latent_hw"][0] * about["latent_hw"][1] // 4
    settings: dict[str, Any] = {
        "frame_tokens": tokens,
        "frames": about["kv_cache_tokens"] // tokens,
        "sink": about["sink_size"],
        "rolling": local != -1,
        "max_attention_tokens": about["max_attention_tokens"],
    }
    return Window(**settings | changes)


# The bidirectional base model


BASE = fixture("dit_bidirectional")


def base_call(model: DiT, t: Tensor, control: bool = True) -> Tensor:
    camera = model.embed_camera(BASE["control"]) if control else None
    text = model.embed_text(BASE["context"])
    return model(BASE["x"][None], BASE["y"][None], t, text, camera)[0]


def test_the_bidirectional_model_and_every_module_in_it_equal_the_reference() -> None:
    model = dit(BASE.about["weights"])
    seen: dict[str, Tensor] = {}
    expected = {k.removeprefix("mid."): v for k, v in BASE.tensors.items() if k.startswith("mid.")}
    hooks = [
        model.get_submodule(name).register_forward_hook(
            lambda _, __, output, name=name: seen.update({name: output})
        )
        for name in expected
    ]
    try:
        close(base_call(model, BASE["t"]), BASE["out_cam"])
    finally:
        for hook in hooks:
            hook.remove()
    for name, value in expected.items():
        close(seen[name].expand_as(value), value)


def test_other_timesteps_a_timestep_a_token_and_no_control_equal_the_reference() -> None:
    model = dit(BASE.about["weights"])
    close(base_call(model, BASE["t"], control=False), BASE["out_nocam"])
    close(base_call(model, timestep(0)), BASE["out_t0"])
    close(base_call(model, BASE["t_per_token"]), BASE["out_t_per_token"])


def test_one_timestep_broadcast_equals_the_same_for_every_token() -> None:
    model = dit(BASE.about["weights"])
    per_token = BASE["t"].expand_as(BASE["t_per_token"])
    close(base_call(model, BASE["t"]), base_call(model, per_token), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", names("dit_act_call"))
def test_the_act_variant_equals_the_reference(name: str) -> None:
    f = fixture(name)
    model = dit(f.about["weights"])
    frames, height, width = f["x"].shape[1:]
    cache = KVCache.allocate(model.config, Window(height * width // 4, frames)).opened(frames)
    out = model(
        f["x"][None],
        f["y"][None],
        f["t"],
        model.embed_text(f["context"]),
        model.embed_camera(f["control"]),
        cache,
    )
    close(out[0], f["out"])


# The causal model, call by call, caches included


def run_chunks(f: Fixture, cache: KVCache, check: bool = True) -> tuple[KVCache, list[Tensor]]:
    model = dit(f.about["weights"])
    text = model.embed_text(f["context"])
    outputs = []
    for c in range(f.about["chunks"]):
        control = f.tensors.get(f"c{c}.control")
        camera = None if control is None else model.embed_camera(control)
        cache = cache.opened(f.about["chunk_frames"])
        for s, t in enumerate(f.about["timesteps_per_chunk"]):
            x, y = f[f"c{c}.s{s}.x"][None], f[f"c{c}.y"][None]
            outputs.append(model(x, y, timestep(t), text, camera, cache)[0])
            if check:
                close(outputs[-1], f[f"c{c}.s{s}.out"])
        if check and f"c{c}.cache.index" in f:
            check_cache(f, c, cache)
    return cache, outputs


def check_cache(f: Fixture, chunk: int, cache: KVCache) -> None:
    assert f[f"c{chunk}.cache.index"].tolist() == [cache.cursor.end, cache.cursor.filled]
    for layer in range(len(cache.keys)):
        for got, kind in zip(cache.ordered(layer), "kv", strict=True):
            close(got, f[f"c{chunk}.cache.l{layer}.{kind}"][:, : cache.cursor.filled])


@pytest.mark.parametrize("name", names("dit_causal"))
def test_causal_chunks_their_caches_and_rollovers_equal_the_reference(name: str) -> None:
    f = fixture(name)
    model = dit(f.about["weights"])
    run_chunks(f, KVCache.allocate(model.config, window(f.about)))
    text = model.embed_text(f["context"])
    for layer, kv in enumerate(text):
        if f"cross.l{layer}.k" in f:
            close(kv.keys, f[f"cross.l{layer}.k"])
            close(kv.values, f[f"cross.l{layer}.v"])


@pytest.mark.parametrize("name", names("dit_causal"))
def test_rebased_positions_give_the_reference_results_too(name: str) -> None:
    f = fixture(name)
    limit = f.about["chunk_frames"] + 1  # far below the real one, so that every chunk moves
    cache = KVCache.allocate(dit(f.about["weights"]).config, window(f.about, position_limit=limit))
    cache, outputs = run_chunks(f, cache, check=False)
    if f.about["chunks"] > 1:
        assert cache.cursor.base > 0
    steps = len(f.about["timesteps_per_chunk"])
    for i, out in enumerate(outputs):
        close(out, f[f"c{i // steps}.s{i % steps}.out"])


def test_the_first_chunk_with_an_empty_cache_equals_the_bidirectional_model() -> None:
    model = dit(BASE.about["weights"])
    frames, height, width = BASE["x"].shape[1:]
    cache = KVCache.allocate(model.config, Window(height * width // 4, frames)).opened(frames)
    text, camera = model.embed_text(BASE["context"]), model.embed_camera(BASE["control"])
    x, y = BASE["x"][None], BASE["y"][None]
    assert torch.equal(
        model(x, y, BASE["t"], text, camera, cache), model(x, y, BASE["t"], text, camera)
    )


def test_any_attention_backend_can_take_the_seam() -> None:
    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / q.shape[-1] ** 0.5
        return torch.einsum("bhnm,bmhd->bnhd", scores.softmax(-1), v)

    weights = dit(BASE.about["weights"])
    other = DiT(weights.config, attend=plain)
    other.load_state_dict(weights.state_dict())
    close(base_call(other, BASE["t"]), base_call(weights, BASE["t"]))


def test_patch_features_are_channel_outermost_in_and_innermost_out() -> None:
    x = torch.arange(2 * 1 * 2 * 4).reshape(1, 2, 1, 2, 4).float()
    assert patchify(x)[0, 0].tolist() == [0, 1, 4, 5, 8, 9, 12, 13]
    assert unpatchify(torch.arange(8.0)[None, None], (1, 1, 1))[0, :, 0].tolist() == [
        [[0, 2], [4, 6]],
        [[1, 3], [5, 7]],
    ]


# bf16: the dtype flow of the reference on a GPU


def test_bf16_weights_keep_a_float32_residual_and_stay_near_float32() -> None:
    model = dit(BASE.about["weights"])
    half = DiT(model.config).eval()
    half.load_state_dict(model.state_dict())
    keep_float32(half.bfloat16())
    seen: dict[str, torch.dtype] = {}
    watched = ("patch_embedding", "time_projection", "blocks.0.norm1", "blocks.0.ffn", "blocks.1")
    for name in watched:
        half.get_submodule(name).register_forward_hook(
            lambda _, __, output, name=name: seen.update({name: output.dtype})
        )
    out = base_call(half, BASE["t"])
    assert seen == {
        "patch_embedding": torch.bfloat16,
        "time_projection": torch.float32,
        "blocks.0.norm1": torch.bfloat16,  # x is still bf16 there
        "blocks.0.ffn": torch.bfloat16,
        "blocks.1": torch.float32,
    }
    assert out.dtype == torch.float32
    error = (out - BASE["out_cam"]).norm() / BASE["out_cam"].norm()
    assert error < 0.03
