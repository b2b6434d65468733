"""Weight files as they are found: what is in them is told before a byte of weights is read.

Every fault is a `BadWeights` whose sentence names the file, what it is instead, and its size. No
code in a file is ever run.
"""

from __future__ import annotations

import json
import pickle
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors import safe_open
from torch import Tensor

from pipeline.lingbot.config import Shapes
from pipeline.lingbot.errors import BadWeights

FLOATS = {"F64", "F32", "F16", "BF16"}  # anything narrower is quantised, and needs its scales
_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_HEADER = 100_000_000


class Archive(Protocol):
    """Named tensors on disk."""

    path: Path
    shapes: Shapes

    def tensor(self, key: str) -> Tensor:
        """Read one tensor; its dtype is the file's."""
        ...


class SafetensorsArchive:
    """One `.safetensors` file, or the shards that an index names."""

    def __init__(self, path: Path, files: Mapping[str, Path], shapes: Shapes) -> None:
        self.path, self._files = path, files
        self.shapes: Shapes = shapes

    @classmethod
    def of_file(cls, path: Path) -> SafetensorsArchive:
        """A single file."""
        shapes = _safetensors_shapes(path, None)
        return cls(path, dict.fromkeys(shapes, path), shapes)

    @classmethod
    def of_index(cls, index: Path) -> SafetensorsArchive:
        """The shards of `index`, whatever their names are (SPEC §6)."""
        _check_start(index, None)
        try:
            weight_map = json.loads(index.read_text())["weight_map"]
            names = {str(key): str(name) for key, name in weight_map.items()}
        except (ValueError, KeyError, AttributeError, TypeError) as fault:
            raise BadWeights(index, "not a weight index: no weight_map in it") from fault
        shards = sorted(set(names.values()))
        if strange := [name for name in shards if Path(name).name != name]:
            raise BadWeights(index, f"names the shard {strange[0]!r}, which is not beside it")
        if absent := [name for name in shards if not (index.parent / name).exists()]:
            raise BadWeights(
                index,
                f"{len(absent)} of {len(shards)} shards are missing, the first is {absent[0]}",
            )
        held = {name: _safetensors_shapes(index.parent / name, None) for name in shards}
        for key, name in names.items():
            if key not in held[name]:
                raise BadWeights(index.parent / name, f"has no tensor {key}, its index says it has")
        shapes = {key: held[name][key] for key, name in names.items()}
        return cls(index, {key: index.parent / name for key, name in names.items()}, shapes)

    def tensor(self, key: str) -> Tensor:
        """Read one tensor."""
        path = self._files[key]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(key)
        except Exception as fault:  # safetensors raises a bare Rust exception of its own
            raise BadWeights(path, f"tensor {key} cannot be read: {fault}") from fault
        return tensor


class PickleArchive:
    """A `.pth` that holds a plain state dict, read by the unpickler that knows tensors only."""

    def __init__(self, path: Path, tensors: Mapping[str, Tensor]) -> None:
        self.path, self._tensors = path, tensors
        self.shapes: Shapes = {key: tuple(tensor.shape) for key, tensor in tensors.items()}

    @classmethod
    def of_file(cls, path: Path, expected_bytes: int | None = None) -> PickleArchive:
        """Map a zip-format `.pth` into memory."""
        _check_start(path, expected_bytes)
        _check_zip(path, expected_bytes)
        try:
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except pickle.UnpicklingError as fault:
            found = re.search(r"GLOBAL (\S+)", str(fault))
            named = f" ({found[1]})" if found else ""
            raise BadWeights(
                path,
                f"holds Python objects other than tensors{named}; they are never run, "
                "so only a plain state dict can be used",
            ) from None  # the library's own words advise to trust the file
        except (RuntimeError, ValueError, EOFError, OSError, KeyError, AttributeError) as fault:
            size = _sizes(path, expected_bytes)
            raise BadWeights(path, f"a damaged .pth archive ({size})") from fault
        return cls(path, _plain(path, state))

    def tensor(self, key: str) -> Tensor:
        """The tensor, still in the file until it is used."""
        return self._tensors[key]


def open_archive(path: Path, expected_bytes: int | None = None) -> Archive:
    """Open a weight file, an index, or the directory of either.

    Args:
        path: `.safetensors`, `.safetensors.index.json`, `.pth`/`.pt`, or a directory with one.
        expected_bytes: about how large the published file is, for the message if it is not.

    Raises:
        BadWeights: it is not there or is not what it should be.
    """
    if path.is_dir():
        path = _only_file(path)
    if path.name.endswith(".index.json"):
        return SafetensorsArchive.of_index(path)
    if path.suffix in (".pth", ".pt"):
        return PickleArchive.of_file(path, expected_bytes)
    return SafetensorsArchive.of_file(path)


def _only_file(directory: Path) -> Path:
    for pattern in ("*.safetensors.index.json", "*.safetensors", "*.pth"):
        found = sorted(directory.glob(pattern))
        if len(found) > 1:
            names = ", ".join(path.name for path in found[:4])
            raise BadWeights(directory, f"more than one {pattern} and no telling which: {names}")
        if found:
            return found[0]
    raise BadWeights(directory, "no weights in it (no .safetensors, no index, no .pth)")


def _sizes(path: Path, expected: int | None) -> str:
    about = f", about {expected:,} expected" if expected else ""
    return f"{path.stat().st_size:,} bytes found{about}"


def _check_start(path: Path, expected: int | None) -> None:
    """Tell apart what is often found in place of weights."""
    try:
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError as fault:
        raise BadWeights(path, f"cannot be opened: {fault.strerror}") from fault
    if start.startswith(_POINTER):
        size = re.search(rb"size (\d+)", start)
        raise BadWeights(
            path,
            "a git-lfs pointer, not the weights: run `git lfs pull` or download the file "
            f"({_sizes(path, int(size[1]) if size else expected)})",
        )
    if re.match(rb"\s*<(!doctype|html|\?xml|head|body)", start, re.IGNORECASE):
        raise BadWeights(path, f"a web page, not weights ({_sizes(path, expected)})")
    if not start:
        raise BadWeights(path, f"empty ({_sizes(path, expected)})")


def _safetensors_shapes(path: Path, expected: int | None) -> Shapes:
    """Keys and shapes from the header, once the file is known to be whole."""
    _check_start(path, expected)
    size = path.stat().st_size
    with path.open("rb") as file:
        raw = file.read(8)
        length = struct.unpack("<Q", raw)[0] if len(raw) == 8 else 0
        if not 2 <= length <= _MAX_HEADER:
            raise BadWeights(path, f"not a safetensors file ({_sizes(path, expected)})")
        header = file.read(length)
    if len(header) < length:
        raise BadWeights(path, f"truncated ({_sizes(path, expected or 8 + length)})")
    try:
        entries = {k: v for k, v in json.loads(header).items() if k != "__metadata__"}
        shapes = {k: tuple(int(n) for n in v["shape"]) for k, v in entries.items()}
        whole = 8 + length + max((int(v["data_offsets"][1]) for v in entries.values()), default=0)
        narrow = {k: str(v["dtype"]) for k, v in entries.items() if v["dtype"] not in FLOATS}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as fault:
        raise BadWeights(
            path, f"a damaged safetensors header ({_sizes(path, expected)})"
        ) from fault
    if size < whole:
        raise BadWeights(path, f"truncated ({_sizes(path, whole)})")
    if narrow:
        key, dtype = next(iter(narrow.items()))
        raise BadWeights(path, f"{key} is {dtype}: quantised weights are not supported")
    return shapes


def _check_zip(path: Path, expected: int | None) -> None:
    with path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    size = _sizes(path, expected)
    if not is_zip:
        raise BadWeights(path, f"neither a zip archive of tensors nor anything known ({size})")
    if not zipfile.is_zipfile(path):
        raise BadWeights(path, f"truncated: the end of the archive is missing ({size})")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.endswith("/constants.pkl") or "/code/" in name for name in names):
        raise BadWeights(path, "a TorchScript program, not a state dict; it is never run")


def _plain(path: Path, state: object) -> dict[str, Tensor]:
    if not isinstance(state, Mapping):
        raise BadWeights(path, f"holds a {type(state).__name__}, not a state dict")
    for key, value in state.items():
        if isinstance(value, Mapping):
            raise BadWeights(path, f"the weights are nested under {key!r}; save that part alone")
        if not isinstance(value, Tensor):
            raise BadWeights(path, f"{key!r} is a {type(value).__name__}, not a tensor")
        if value.dtype not in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            raise BadWeights(path, f"{key} is {value.dtype}: quantised weights are not supported")
    return {str(key): value for key, value in state.items()}
