"""The weights on disk: safetensors in float16, with where they come from in the metadata.

Whatever is wrong with a file is said in one sentence (`BadWeights`) before anything is built on it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from pipeline.tiny.networks import Veldt

PACKAGED: Final = Path(__file__).parent / "veldt.safetensors"
WORLD: Final = "veldt"
PROVENANCE: Final = ("world", "recipe", "steps", "seed", "date", "training")
LFS_POINTER: Final = b"version https://git-lfs"


class BadWeights(RuntimeError):
    """A file does not hold the weights of the embedded world."""

    code = "bad_weights"

    def __init__(self, path: Path, fault: str) -> None:
        """Say in one sentence what is wrong with the file."""
        super().__init__(f"The embedded world cannot be loaded: {path} {fault}.")
        self.path = path


def save_weights(veldt: Veldt, path: Path, metadata: Mapping[str, Any]) -> None:
    """Write float16 weights; metadata values are stored as JSON. Needs all of `PROVENANCE`."""
    if missing := [name for name in PROVENANCE if name not in metadata]:
        raise ValueError(f"weights need to say where they come from: no {', '.join(missing)}")
    tensors = {name: tensor.half().contiguous() for name, tensor in veldt.state_dict().items()}
    save_file(tensors, path, {key: json.dumps(value) for key, value in metadata.items()})


def load_weights(path: Path = PACKAGED) -> tuple[Veldt, dict[str, Any]]:
    """Return the model in float32, ready for playing, and the metadata; raises `BadWeights`."""
    _check_container(path)
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            stored: Mapping[str, str] = file.metadata() or {}
    except (SafetensorError, OSError) as fault:
        raise BadWeights(path, f"is not a readable safetensors file ({fault})") from None
    metadata = _provenance(path, stored)
    veldt = Veldt()
    wanted = {name: tuple(tensor.shape) for name, tensor in veldt.state_dict().items()}
    if wanted != {name: tuple(tensor.shape) for name, tensor in tensors.items()}:
        raise BadWeights(path, "holds the weights of another architecture")
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise BadWeights(path, "holds weights that are not numbers")
    veldt.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return veldt.eval().requires_grad_(False), metadata


def _check_container(path: Path) -> None:
    """Raise for what often lies where weights should: half of them, a pointer, a web page."""
    try:
        with path.open("rb") as file:
            start = file.read(512)
        size = path.stat().st_size
    except FileNotFoundError:
        raise BadWeights(path, "does not exist; install veldt again") from None
    except OSError as fault:
        raise BadWeights(path, f"cannot be read ({fault.strerror})") from None
    if start.startswith(LFS_POINTER):
        raise BadWeights(path, "is a Git LFS pointer; fetch the file itself with `git lfs pull`")
    if start.lstrip()[:1] == b"<":
        raise BadWeights(path, "is a web page, not weights; download it again")
    if len(start) < 8:
        raise BadWeights(path, f"is cut off after {size} bytes; download it again")
    (header,) = struct.unpack("<Q", start[:8])
    if start[8:9] != b"{" or header > 1 << 24:
        raise BadWeights(path, "is not a safetensors file")
    end = 8 + header
    if size >= end:
        with path.open("rb") as file:
            file.seek(8)
            end += _data_bytes(path, file.read(header))
    if size < end:
        raise BadWeights(path, f"is cut off after {size} of {end} bytes; download it again")


def _data_bytes(path: Path, header: bytes) -> int:
    try:
        entries = json.loads(header)
        return max(
            (int(entry["data_offsets"][1]) for name, entry in entries.items() if name[:2] != "__"),
            default=0,
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise BadWeights(path, "is not a safetensors file") from None


def _provenance(path: Path, stored: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata, which must say what the weights are and where they come from."""
    try:
        metadata = {key: json.loads(value) for key, value in stored.items()}
    except ValueError:
        raise BadWeights(
            path, "does not say where it comes from (its metadata is not JSON)"
        ) from None
    if missing := [name for name in PROVENANCE if name not in metadata]:
        raise BadWeights(path, f"does not say where it comes from (no {', '.join(missing)})")
    if metadata["world"] != WORLD:
        raise BadWeights(path, f"holds the world {metadata['world']!r}, not {WORLD!r}")
    return metadata
