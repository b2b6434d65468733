import io
import json
import os
import pickle
import random
import re
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import save_file
from tokenizers import Tokenizer, models
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from pipeline.lingbot.archive import open_archive
from pipeline.lingbot.checkpoint import Checkpoint, find_checkpoint
from pipeline.lingbot.config import DiTConfig, UMT5Config, VAEConfig
from pipeline.lingbot.dit import DiT
from pipeline.lingbot.errors import BadWeights, CheckpointMismatch
from pipeline.lingbot.progress import progress_bar
from pipeline.lingbot.text_encoder import build_umt5, load_tokenizer, published_key
from pipeline.lingbot.vae import VAE
from pipeline.lingbot.vae_keys import diffusers_key
from pipeline.lingbot.weights import load_dit, load_text_encoder, load_vae
from pipeline.service import Progress
from tests.pipeline.lingbot.reference import OURS, Fixture, close, umt5_config
from tests.pipeline.lingbot.reference import fixture as any_fixture

State = dict[str, Tensor]


def fixture(name: str) -> Fixture:
    """Loading is about files, not numbers: always the tiny weights beside this test."""
    return any_fixture(name, OURS)


TINY: dict[str, Any] = {"heads": 4, "text_len": 12}

# The real shapes


KEYS = (Path(__file__).parent / "checkpoint_keys.txt").read_text().splitlines()


def listed(start: int, end: int | None) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for line in KEYS[start:end]:
        key, _, shape = line.partition(" ")
        shapes[key] = tuple(int(n) for n in re.findall(r"\d+", shape))
    return shapes


def spread(shapes: dict[str, tuple[int, ...]], layers: int) -> dict[str, tuple[int, ...]]:
    """In the list block 0 stands for every block."""
    return {
        key.replace("blocks.0.", f"blocks.{i}."): shape
        for key, shape in shapes.items()
        for i in (range(layers) if key.startswith("blocks.0.") else [0])
    }


def test_the_real_dit_has_exactly_the_published_keys_and_shapes() -> None:
    end = next(i for i, line in enumerate(KEYS) if line.startswith("vae params"))
    with torch.device("meta"):
        state = DiT(DiTConfig()).state_dict()
    assert {k: tuple(v.shape) for k, v in state.items()} == spread(listed(0, end), 40)
    assert len(state) == 1421
    assert sum(v.numel() for v in state.values()) == 18_544_332_864


def test_the_real_vae_has_exactly_the_published_keys_and_shapes() -> None:
    start = next(i for i, line in enumerate(KEYS) if line.startswith("vae params"))
    end = next(i for i, line in enumerate(KEYS) if line.startswith("t5 "))
    with torch.device("meta"):
        state = VAE(VAEConfig()).state_dict()
    assert {k: tuple(v.shape) for k, v in state.items()} == listed(start + 1, end)
    params, tensors = map(int, KEYS[start].split()[2:4])
    assert (sum(v.numel() for v in state.values()), len(state)) == (params, tensors)


def test_the_real_text_encoder_has_exactly_the_published_keys_and_shapes() -> None:
    start = next(i for i, line in enumerate(KEYS) if line.startswith("t5 "))
    with torch.device("meta"):
        state = build_umt5(UMT5Config()).state_dict()
    ours = {published_key(k): tuple(v.shape) for k, v in state.items()}
    assert ours == spread(listed(start + 1, None), 24)
    params, tensors = map(int, KEYS[start].split()[1:])
    sizes = {published_key(k): v.numel() for k, v in state.items()}
    assert (sum(sizes.values()), len(sizes)) == (params, tensors)


# A tiny checkpoint in each published layout


def dit_state() -> State:
    return dict(fixture("dit_tiny_weights").tensors)


def vae_state() -> State:
    return dict(fixture("vae_tiny_weights").tensors)


def t5_state() -> State:
    tensors = fixture("umt5_tiny").tensors
    return {k.removeprefix("w."): v for k, v in tensors.items() if k.startswith("w.")}


def write_shards(directory: Path, state: State, stem: str, index: str, shards: int = 3) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    weight_map = {}
    for n in range(shards):
        name = f"{stem}-{n + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(state.items())[n::shards])
        save_file({k: v.contiguous() for k, v in part.items()}, directory / name)
        weight_map |= dict.fromkeys(part, name)
    size = sum(v.nbytes for v in state.values())
    about = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (directory / index).write_text(json.dumps(about))


def write_tokenizer(directory: Path) -> None:
    built = Tokenizer(models.WordLevel({"<pad>": 0, "</s>": 1, "<unk>": 2}, unk_token="<unk>"))
    PreTrainedTokenizerFast(
        tokenizer_object=built, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(directory)


DIT_INDEX = "diffusion_pytorch_model.safetensors.index.json"


def published(root: Path) -> None:
    """The base repository with the Fast one inside it."""
    write_shards(root / "lingbot_world_fast", dit_state(), "model", DIT_INDEX)
    half = {k: v.bfloat16() for k, v in t5_state().items()}
    torch.save(half, root / "models_t5_umt5-xxl-enc-bf16.pth")
    torch.save(vae_state(), root / "Wan2.1_VAE.pth")
    write_tokenizer(root / "google" / "umt5-xxl")


def single(root: Path) -> None:
    """Everything in one repository, the DiT in one file."""
    published(root)
    for path in (root / "lingbot_world_fast").iterdir():
        path.unlink()
    (root / "lingbot_world_fast").rmdir()
    save_file(dit_state(), root / "diffusion_pytorch_model.safetensors")


def conversion(root: Path) -> None:
    """The diffusers layout: DiT names are kept, text encoder and VAE have theirs."""
    write_shards(root / "transformer", dit_state(), "diffusion_pytorch_model", DIT_INDEX)
    (root / "vae").mkdir()
    vae = {diffusers_key(k): v for k, v in vae_state().items()}
    save_file(vae, root / "vae" / "diffusion_pytorch_model.safetensors")
    with torch.device("meta"):
        names = list(build_umt5(umt5_config(fixture("umt5_tiny").about)).state_dict())
    state = t5_state()
    theirs = {n: state[published_key(n)] for n in names if "embed_tokens" not in n}
    write_shards(root / "text_encoder", theirs, "model", "model.safetensors.index.json", shards=2)
    write_tokenizer(root / "tokenizer")


LAYOUTS: list[Callable[[Path], None]] = [published, single, conversion]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_checkpoint_in_each_published_layout_loads_with_a_progress_bar(
    layout: Callable[[Path], None], tmp_path: Path
) -> None:
    layout(tmp_path)
    found = find_checkpoint(tmp_path)
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with progress_bar(console) as progress:
        dit, vae, t5 = load_all(found, progress)
    for what in ("loading the DiT", "loading the VAE", "loading the text encoder"):
        assert what in text.getvalue()
    assert "100%" in text.getvalue()
    assert load_tokenizer(found.tokenizer).eos_token_id == 1

    for model, state, name in (
        (dit, dit_state(), str),
        (vae, vae_state(), str),
        (t5, t5_state(), published_key),
    ):
        held = model.state_dict()
        assert {name(k) for k in held} == state.keys()
        for key, tensor in held.items():
            assert tensor.device.type == "cpu"
            expected = state[name(key)]
            close(tensor, expected, atol=1e-2 if layout is not conversion and model is t5 else 0)
        assert not model.training
        assert not any(p.requires_grad for p in model.parameters())
    assert t5.encoder.embed_tokens.weight is t5.shared.weight
    base = fixture("dit_bidirectional")
    x, y, control = base["x"][None], base["y"][None], base["control"]
    out = dit(x, y, base["t"], dit.embed_text(base["context"]), dit.embed_camera(control))
    close(out[0], base["out_cam"])


def load_all(found: Checkpoint, progress: Progress | None = None) -> tuple:
    dit = load_dit(found.dit, dtype=torch.float32, progress=progress, **TINY)
    return (
        dit,
        load_vae(found.vae, progress=progress),
        load_text_encoder(found.text_encoder, dtype=torch.float32, progress=progress),
    )


def test_progress_rises_to_one_and_names_what_is_loaded(tmp_path: Path) -> None:
    save_file(vae_state(), tmp_path / "vae.safetensors")
    seen: list[tuple[str, float]] = []
    load_vae(tmp_path / "vae.safetensors", progress=lambda what, share: seen.append((what, share)))
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert {what for what, _ in seen} == {"loading the VAE"}


def test_the_default_is_bf16_with_float32_time_and_head(tmp_path: Path) -> None:
    save_file(dit_state(), tmp_path / "dit.safetensors")
    dit = load_dit(tmp_path, **TINY)
    assert dit.blocks[0].self_attn.q.weight.dtype == torch.bfloat16
    for module in (dit.time_embedding, dit.time_projection, dit.head):
        for parameter in module.parameters():
            assert parameter.dtype == torch.float32
            assert torch.equal(parameter, parameter.bfloat16().float())  # of bf16's values


def test_the_control_kind_follows_from_the_weights_not_from_the_path(tmp_path: Path) -> None:
    (tmp_path / "cam").mkdir()
    state = dit_state() | fixture("dit_tiny_act_delta").tensors
    save_file(state, tmp_path / "cam" / "dit.safetensors")
    dit = load_dit(tmp_path / "cam", **TINY, dtype=torch.float32)
    assert dit.config.control_channels == 448


def test_the_head_count_of_a_tiny_model_must_be_given(tmp_path: Path) -> None:
    save_file(dit_state(), tmp_path / "dit.safetensors")
    with pytest.raises(BadWeights, match="give heads="):
        load_dit(tmp_path)


# Files that are not what they should be (reports J1)

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 507609880\n"
)
PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>"


def truncated(path: Path) -> bytes:
    whole = path.read_bytes()
    return whole[: len(whole) // 2]


FAULTS: list[tuple[Callable[[Path], bytes], str]] = [
    (lambda _: POINTER, r"a git-lfs pointer.*\(\d+ bytes found, about 507,609,880 expected\)"),
    (lambda _: PAGE, r"a web page, not weights \(60 bytes found"),
    (lambda _: b"", r"empty \(0 bytes found"),
    (truncated, r"truncated.*bytes found"),
    (lambda p: p.read_bytes()[:50], r"(truncated|damaged|neither|safetensors).*\d+ bytes found"),
    (lambda _: b"\x80\x02}q\x00." * 50, r"bytes found"),
    (lambda _: random.Random(0).randbytes(4000), r"bytes found"),
    (lambda _: struct.pack("<Q", 40) + b"[" * 40 + b"x" * 99, r"(damaged|neither).*bytes found"),
]
PARTS = {
    "dit": "lingbot_world_fast/model-00002-of-00003.safetensors",
    "vae": "Wan2.1_VAE.pth",
    "text_encoder": "models_t5_umt5-xxl-enc-bf16.pth",
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("spoil", "says"), FAULTS)
def test_a_bad_file_is_named_with_what_it_is_and_its_size(
    spoil: Callable[[Path], bytes], says: str, part: str, tmp_path: Path
) -> None:
    published(tmp_path)
    path = tmp_path / PARTS[part]
    path.write_bytes(spoil(path))
    with pytest.raises(BadWeights) as caught:
        load_all(find_checkpoint(tmp_path))
    message = str(caught.value)
    assert re.search(says, message), message
    assert path.name in message
    assert len(message.splitlines()) <= 5


def test_the_published_pth_files_say_how_large_they_should_be(tmp_path: Path) -> None:
    path = tmp_path / "Wan2.1_VAE.pth"
    path.write_bytes(PAGE)
    with pytest.raises(BadWeights, match="about 507,570,124 expected"):
        load_vae(path)


def test_a_truncated_shard_says_its_true_size(tmp_path: Path) -> None:
    published(tmp_path)
    path = tmp_path / PARTS["dit"]
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadWeights, match=f"{size - 1:,} bytes found, about {size:,} expected"):
        load_all(find_checkpoint(tmp_path))


def test_missing_files_and_shards_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadWeights, match="no such directory"):
        find_checkpoint(tmp_path / "absent")
    with pytest.raises(BadWeights, match=r"Wan2.1_VAE.pth"):
        find_checkpoint(tmp_path)
    with pytest.raises(BadWeights, match="no weights in it"):
        load_dit(tmp_path)
    with pytest.raises(BadWeights, match="No such file"):
        load_vae(tmp_path / "Wan2.1_VAE.pth")
    published(tmp_path)
    (tmp_path / PARTS["dit"]).unlink()
    with pytest.raises(BadWeights, match=r"1 of 3 shards are missing, the first is model-00002"):
        load_all(find_checkpoint(tmp_path))


@pytest.mark.parametrize(
    "index",
    [
        "{}",
        "nonsense",
        '{"weight_map": 3}',
        '{"weight_map": {"a": "../../etc/passwd"}}',
        '{"weight_map": {"a": "/etc/passwd"}}',
    ],
)
def test_an_index_that_is_none_is_refused(index: str, tmp_path: Path) -> None:
    (tmp_path / DIT_INDEX).write_text(index)
    with pytest.raises(BadWeights, match=r"(not a weight index|not beside it)"):
        load_dit(tmp_path)


def test_a_shard_without_what_its_index_promises_is_named(tmp_path: Path) -> None:
    published(tmp_path)
    save_file({"other": torch.zeros(2)}, tmp_path / PARTS["dit"])
    with pytest.raises(BadWeights, match=r"model-00002.*has no tensor"):
        load_dit(tmp_path / "lingbot_world_fast")


def test_two_candidates_in_one_directory_are_not_guessed_between(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.safetensors"):
        save_file(dit_state(), tmp_path / name)
    with pytest.raises(BadWeights, match="no telling which"):
        load_dit(tmp_path)


# Keys and shapes


def test_missing_unexpected_and_misshaped_keys_are_listed(tmp_path: Path) -> None:
    state = dit_state()
    del state["blocks.1.ffn.2.bias"]
    state["blocks.1.extra"] = torch.zeros(3)
    state["head.head.bias"] = torch.zeros(7)
    save_file(state, tmp_path / "dit.safetensors")
    with pytest.raises(CheckpointMismatch) as caught:
        load_dit(tmp_path, **TINY)
    assert caught.value.missing == ("blocks.1.ffn.2.bias",)
    assert caught.value.unexpected == ("blocks.1.extra",)
    assert caught.value.misshaped == ("head.head.bias (7,) instead of (64,)",)
    first, *rest = str(caught.value).splitlines()
    assert "not those of this model" in first
    assert len(rest) == 3


@pytest.mark.parametrize("prefix", ["module.", "model.diffusion_model.", "transformer."])
def test_prefixed_keys_are_recognised_and_the_prefix_named(prefix: str, tmp_path: Path) -> None:
    for name, state, load in (
        ("dit", dit_state(), load_dit),
        ("vae", vae_state(), load_vae),
        ("t5", t5_state(), load_text_encoder),
    ):
        path = tmp_path / f"{name}.safetensors"
        save_file({f"{prefix}{k}": v for k, v in state.items()}, path)
        with pytest.raises(CheckpointMismatch, match=f"carries the prefix '{prefix}'"):
            load(path)


def test_another_generation_of_the_vae_is_told_apart(tmp_path: Path) -> None:
    state = vae_state() | {"conv2.weight": torch.zeros(48, 48, 1, 1, 1)}
    torch.save(state, tmp_path / "Wan2.2_VAE.pth")
    with pytest.raises(CheckpointMismatch, match=r"48 latent channels.*needs Wan2.1's"):
        load_vae(tmp_path / "Wan2.2_VAE.pth")


def test_the_weights_of_another_part_are_refused(tmp_path: Path) -> None:
    paths = {}
    for name, state in (("dit", dit_state()), ("vae", vae_state()), ("t5", t5_state())):
        paths[name] = tmp_path / f"{name}.safetensors"
        save_file(state, paths[name])
    for load, own in ((load_dit, "dit"), (load_vae, "vae"), (load_text_encoder, "t5")):
        for name, path in paths.items():
            if name != own:
                with pytest.raises(BadWeights, match="not the weights of a"):
                    load(path)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_quantised_weights_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    state = vae_state()
    state["conv1.weight"] = state["conv1.weight"].to(dtype)
    save_file(state, tmp_path / "vae.safetensors")
    torch.save(state, tmp_path / "vae.pth")
    for name in ("vae.safetensors", "vae.pth"):
        with pytest.raises(BadWeights, match=r"conv1.weight is .*quantised"):
            load_vae(tmp_path / name)


# Pickles (reports J3)


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def refused(path: Path, says: str) -> None:
    with pytest.raises(BadWeights, match=says) as caught:
        open_archive(path)
    assert "weights_only" not in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert "weights_only argument" not in shown
    assert "Do it only if you got the file from a trusted source" not in shown


def test_a_pickle_with_code_in_it_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    torch.save({"conv1.weight": torch.zeros(2), "evil": Canary(canary)}, tmp_path / "a.pth")
    refused(tmp_path / "a.pth", r"other than tensors \((posix|nt|os)\.system\); they are never run")
    torch.save(Canary(canary), tmp_path / "b.pth", _use_new_zipfile_serialization=False)
    refused(tmp_path / "b.pth", "neither a zip archive")
    (tmp_path / "c.pth").write_bytes(pickle.dumps(Canary(canary)))
    refused(tmp_path / "c.pth", "neither a zip archive")
    assert not canary.exists()


def test_a_legacy_archive_is_refused_even_without_code(tmp_path: Path) -> None:
    path = tmp_path / "old.pth"
    torch.save(vae_state(), path, _use_new_zipfile_serialization=False)
    refused(path, "neither a zip archive")


def test_a_torchscript_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program.pt"
    with torch.inference_mode(False):
        traced = torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2))
        torch.jit.save(traced, path)
    refused(path, "TorchScript")


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ({"state_dict": {"a": torch.zeros(1)}}, "nested under 'state_dict'"),
        ({"a": torch.zeros(1), "epoch": 3}, "'epoch' is a int"),
        ([torch.zeros(1)], "holds a list"),
        (torch.zeros(3), "holds a Tensor"),
    ],
)
def test_what_is_no_plain_state_dict_is_refused(held: object, says: str, tmp_path: Path) -> None:
    torch.save(held, tmp_path / "a.pth")
    with pytest.raises(BadWeights, match=says):
        open_archive(tmp_path / "a.pth")


def test_our_own_fixtures_open() -> None:
    assert len(open_archive(OURS / "dit_tiny_weights.safetensors").shapes) == 91
