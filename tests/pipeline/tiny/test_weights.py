from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from pipeline.registry import load_world
from pipeline.tiny.networks import Veldt
from pipeline.tiny.weights import PACKAGED, PROVENANCE, BadWeights, load_weights, save_weights

WHERE_FROM = {
    "world": "veldt", "recipe": {}, "steps": 1, "seed": 0, "date": "2026-11-29", "training": {},
}  # fmt: skip


def test_packaged_weights_say_where_they_come_from():
    _, metadata = load_weights()
    assert set(PROVENANCE) <= set(metadata)
    assert metadata["steps"] == 13098
    assert metadata["training"]["psnr"] > 49


def test_what_is_saved_is_what_is_loaded(tmp_path):
    path = tmp_path / "fresh.safetensors"
    fresh = Veldt()
    save_weights(fresh, path, WHERE_FROM)
    loaded, metadata = load_weights(path)
    assert metadata == WHERE_FROM
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.half().float()), name


def test_weights_without_provenance_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="training"):
        save_weights(
            Veldt(), tmp_path / "w", {k: v for k, v in WHERE_FROM.items() if k != "training"}
        )


def whole() -> bytes:
    return PACKAGED.read_bytes()


BROKEN = {
    "missing": (None, "does not exist"),
    "empty": (b"", "cut off after 0 bytes"),
    "truncated": (whole()[:100_000], "cut off after 100000 of"),
    "truncated in the header": (whole()[:600], "cut off after 600 of"),
    "LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS"),
    "web page": (b"\n<!DOCTYPE html><html><title>404</title></html>", "web page"),
    "zip": (b"PK\x03\x04" + bytes(64), "not a safetensors file"),
    "bad header": ((8).to_bytes(8, "little") + b"{{{{{{{{" + bytes(64), "not a safetensors file"),
    "list as header": (
        (8).to_bytes(8, "little") + b'{"a": 1}' + bytes(64),
        "not a safetensors file",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_in_one_sentence(tmp_path, case):
    content, words = BROKEN[case]
    path = tmp_path / "veldt.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadWeights, match=words) as caught:
        load_world("tiny", {"weights": str(path)})
    message = str(caught.value)
    assert message.count(". ") == 0
    assert message.endswith(".")
    assert str(path) in message


def resaved(path, change) -> None:
    tensors, metadata = load_file(PACKAGED), {k: json.dumps(v) for k, v in WHERE_FROM.items()}
    change(tensors, metadata)
    save_file(tensors, path, metadata)


def drop_a_tensor(tensors, metadata):
    del tensors["scene.haze"]


def reshape_a_tensor(tensors, metadata):
    tensors["scene.haze"] = tensors["scene.haze"][:, :, :-1].contiguous()


def spoil_a_number(tensors, metadata):
    tensors["scene.haze"][0, 0, 0, 0] = float("nan")


def forget_the_recipe(tensors, metadata):
    del metadata["recipe"]


def belong_elsewhere(tensors, metadata):
    metadata["world"] = json.dumps("moon")


def scribble(tensors, metadata):
    metadata["recipe"] = "{"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop_a_tensor, "another architecture"),
        (reshape_a_tensor, "another architecture"),
        (spoil_a_number, "not numbers"),
        (forget_the_recipe, "no recipe"),
        (belong_elsewhere, "'moon'"),
        (scribble, "not JSON"),
    ],
)
def test_foreign_weights_are_refused(tmp_path, change, words):
    path = tmp_path / "veldt.safetensors"
    resaved(path, change)
    with pytest.raises(BadWeights, match=words):
        load_weights(path)
