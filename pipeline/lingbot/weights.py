"""From published weight files to models, tensor by tensor. SPEC §6.

Models are made on the meta device, checked against the files' keys and shapes, and only then
filled: memory never holds more than the model and one tensor of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn
from transformers import UMT5EncoderModel

from pipeline.lingbot.archive import Archive, open_archive
from pipeline.lingbot.attention import Attend, sdpa
from pipeline.lingbot.config import Shapes, infer_dit, infer_umt5, infer_vae
from pipeline.lingbot.dit import DiT, keep_float32
from pipeline.lingbot.errors import BadWeights, CheckpointMismatch, LingBotError
from pipeline.lingbot.text_encoder import build_umt5, published_key
from pipeline.lingbot.vae import VAE
from pipeline.lingbot.vae_keys import diffusers_key, is_diffusers
from pipeline.service import Progress

VAE_BYTES = 126_892_531 * 4  # about the size of the published Wan2.1_VAE.pth, fp32
TEXT_ENCODER_BYTES = 5_680_910_336 * 2  # of models_t5_umt5-xxl-enc-bf16.pth

Config = TypeVar("Config")
KeyOf = Callable[[str], str]  # the model's name of a tensor → its key in the file


def load_dit(
    path: Path,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
    attend: Attend = sdpa,
    heads: int | None = None,
    text_len: int = 512,
    progress: Progress | None = None,
) -> DiT:
    """The DiT in `path` (file, index or directory); `heads` and `text_len` only for tiny models.

    Time MLPs and head keep float32 parameters, of `dtype`'s values (SPEC §2).

    Raises:
        BadWeights: the files are not a whole DiT.
    """
    archive = open_archive(path)
    config = _inferred(archive, lambda shapes: infer_dit(shapes, heads, text_len), "DiT")
    with torch.device("meta"):
        dit = DiT(config, attend)
    fill(dit, archive, dtype=dtype, device=device, progress=progress, what="loading the DiT")
    return keep_float32(dit)


def load_vae(
    path: Path,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> VAE:
    """The Wan2.1 VAE in `path`, in its published keys or those of diffusers."""
    archive = open_archive(path, VAE_BYTES)
    _refuse_other_vae(archive)
    key_of = diffusers_key if is_diffusers(archive.shapes) else _same
    width = archive.shapes.get(key_of("encoder.conv1.weight"))
    config = _inferred(
        archive, lambda _: infer_vae({"encoder.conv1.weight": width} if width else {}), "VAE"
    )
    with torch.device("meta"):
        vae = VAE(config)
    fill(
        vae, archive, key_of, dtype=dtype, device=device, progress=progress, what="loading the VAE"
    )
    return vae


def load_text_encoder(
    path: Path,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> UMT5EncoderModel:
    """The UMT5 encoder in `path`, in its published Wan keys or those of transformers."""
    archive = open_archive(path, TEXT_ENCODER_BYTES)
    theirs = "shared.weight" in archive.shapes or "encoder.embed_tokens.weight" in archive.shapes
    shapes = archive.shapes
    if theirs:
        shapes = {published_key(k): s for k, s in shapes.items() if _is_encoder(k)}
    config = _inferred(archive, lambda _: infer_umt5(shapes), "UMT5 encoder")
    with torch.device("meta"):
        encoder = build_umt5(config)
    embedding = next((k for k in _EMBEDDINGS if k in archive.shapes), "token_embedding.weight")
    keys: KeyOf = (lambda n: embedding if n in _EMBEDDINGS else n) if theirs else published_key
    what = "loading the text encoder"
    fill(encoder, archive, keys, dtype=dtype, device=device, progress=progress, what=what)
    encoder.encoder.embed_tokens.weight = encoder.shared.weight  # one table under two names
    return encoder


def fill(
    model: nn.Module,
    archive: Archive,
    key_of: KeyOf | None = None,
    *,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
    what: str = "loading",
) -> None:
    """Give a model on the meta device its parameters, for inference.

    Raises:
        CheckpointMismatch: keys or shapes differ; nothing was read then.
    """
    key_of = key_of or _same
    targets = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    _check(archive, {key_of(name): shape for name, shape in targets.items()})
    total = sum(map(_count, targets.values()))
    done = 0
    for name, shape in targets.items():
        value = archive.tensor(key_of(name)).to(device=device, dtype=dtype, copy=True)
        module, _, parameter = name.rpartition(".")
        setattr(model.get_submodule(module), parameter, nn.Parameter(value, requires_grad=False))
        done += _count(shape)
        if progress is not None:
            progress(what, done / total)
    model.train(False)


def _check(archive: Archive, wanted: Shapes) -> None:
    shapes = archive.shapes
    known = set(wanted) | {k for k in _EMBEDDINGS if wanted.keys() & set(_EMBEDDINGS)}
    missing = tuple(sorted(wanted.keys() - shapes.keys()))
    unexpected = tuple(sorted(shapes.keys() - known))
    misshaped = tuple(
        f"{key} {shapes[key]} instead of {shape}"
        for key, shape in sorted(wanted.items())
        if key in shapes and shapes[key] != shape
    )
    if missing or unexpected or misshaped:
        prefix = common_prefix(shapes, wanted)
        summary = (
            f"every key carries the prefix {prefix!r}; save the weights without it"
            if prefix
            else "the tensors in it are not those of this model"
        )
        raise CheckpointMismatch(archive.path, summary, missing, unexpected, misshaped)


def common_prefix(shapes: Shapes, wanted: Shapes) -> str:
    """What stands before most keys and, taken off, makes them ours; empty if nothing does.

    >>> common_prefix({"module.a.w": (1,), "module.b": (2,)}, {"a.w": (1,), "b": (2,)})
    'module.'
    """
    prefixes = Counter(
        key[: -len(ours)]
        for key in shapes
        for ours in _suffixes(key)
        if ours in wanted and len(ours) < len(key)
    )
    prefix, count = prefixes.most_common(1)[0] if prefixes else ("", 0)
    return prefix if 2 * count > len(shapes) else ""


def _suffixes(key: str) -> list[str]:
    return [key[match.end() :] for match in re.finditer(r"\.", key)]


_EMBEDDINGS = ("shared.weight", "encoder.embed_tokens.weight")


def _is_encoder(key: str) -> bool:
    return key in _EMBEDDINGS or key.startswith(("encoder.block.", "encoder.final_layer_norm."))


def _same(name: str) -> str:
    return name


def _count(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def _inferred(archive: Archive, infer: Callable[[Shapes], Config], model: str) -> Config:
    try:
        return infer(archive.shapes)
    except LingBotError as fault:
        for key in ("patch_embedding.weight", "encoder.conv1.weight", "token_embedding.weight"):
            for found in archive.shapes:
                if found.endswith(f".{key}") or (found != key and found.endswith(key)):
                    prefix = found.removesuffix(key)
                    raise CheckpointMismatch(
                        archive.path,
                        f"every key carries the prefix {prefix!r}; save the weights without it",
                    ) from fault
        raise BadWeights(archive.path, f"not the weights of a {model}: {fault}") from fault


def _refuse_other_vae(archive: Archive) -> None:
    """Wan2.2's VAE has 48 latent channels and other layers; it cannot serve this model."""
    for key in ("conv2.weight", "post_quant_conv.weight"):
        shape = archive.shapes.get(key)
        if shape and shape[0] != 16:
            raise CheckpointMismatch(
                archive.path,
                f"a VAE with {shape[0]} latent channels (Wan2.2 has 48); LingBot-World-Fast needs "
                "Wan2.1's, which has 16",
            )
