"""Download the published weights, when and only when somebody asks for them.

`python -m pipeline.lingbot.fetch --to DIR`. The licence is shown first and must be accepted. A
file that was cut off is carried on with, and a finished one is checked against its published hash.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from http import HTTPStatus
from pathlib import Path

from huggingface_hub import HfApi, get_session, hf_hub_url
from huggingface_hub.errors import HFValidationError
from huggingface_hub.errors import HTTPError as TransferError  # type: ignore[attr-defined]
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

from pipeline.lingbot.checkpoint import Checkpoint, find_checkpoint
from pipeline.lingbot.errors import FetchFailed, LingBotError
from pipeline.lingbot.progress import progress_bar
from pipeline.service import Progress

LICENCE = """\
LingBot-World-Fast is published by Robbyant, not by the makers of veldt.
Its code and README (robbyant/lingbot-world) say Apache License 2.0. What licence covers the files
of robbyant/lingbot-world-fast could not be verified: one port calls the LingBot-World checkpoints
CC BY-NC-SA 4.0, which forbids commercial use. Read the model pages before you use the weights:
  https://huggingface.co/robbyant/lingbot-world-fast
  https://huggingface.co/robbyant/lingbot-world-base-cam
VAE, text encoder and tokenizer come from the second page (Wan2.1 and google/umt5-xxl, Apache 2.0).
In all some 86 GB are downloaded."""

_TRIES = 5  # in a row without a single new byte


@dataclass(frozen=True)
class Source:
    """Files of one repository, and the folder below the destination that they go to."""

    repository: str
    folder: str
    patterns: tuple[str, ...]


PUBLISHED = (
    Source(
        "robbyant/lingbot-world-base-cam",
        "",
        ("models_t5_umt5-xxl-enc-bf16.pth", "Wan2.1_VAE.pth", "google/umt5-xxl/*"),
    ),
    Source(
        "robbyant/lingbot-world-fast",
        "lingbot_world_fast",
        ("*.safetensors.index.json", "model-*.safetensors", "diffusion_pytorch_model*.safetensors"),
    ),
)


@dataclass(frozen=True)
class RemoteFile:
    """One file to have: where it comes from, where it goes, and how to know that it is whole."""

    url: str
    path: Path
    size: int
    sha256: str | None  # None: a small file that the hub keeps without one


def fetch_weights(
    destination: Path,
    *,
    accept: Callable[[str], bool],
    progress: Progress | None = None,
    sources: Sequence[Source] = PUBLISHED,
    endpoint: str | None = None,
) -> Checkpoint:
    """Have the published weights below `destination`, downloading what is not there yet.

    Args:
        destination: a directory; made if it is absent.
        accept: is shown the licence text and says whether it is accepted.
        progress: is told ("downloading NAME", share of all bytes).
        sources: which repositories and files.
        endpoint: another hub than the one that `HF_ENDPOINT` or the library names.

    Raises:
        FetchFailed: the licence is not accepted, or the network, hub or disk would not.
        BadWeights: what was published is not a whole checkpoint.
    """
    if not accept(LICENCE):
        raise FetchFailed("The licence was not accepted, so nothing was downloaded")
    try:
        _prepare(destination)  # before the hub is asked: what is wrong here needs no network
        files = [file for source in sources for file in _listed(source, destination, endpoint)]
        _fetch_all(files, destination, progress)
    except (TransferError, HFValidationError) as fault:
        words = " ".join(str(fault).split())[:300]
        raise FetchFailed(
            f"The download failed ({words}); run the command again to carry on with it"
        ) from fault
    except OSError as fault:
        raise FetchFailed(_unusable(fault, destination)) from fault
    return find_checkpoint(destination)


def _listed(source: Source, destination: Path, endpoint: str | None) -> list[RemoteFile]:
    info = HfApi(endpoint=endpoint).model_info(source.repository, files_metadata=True)
    files = []
    for sibling in info.siblings or []:
        name = sibling.rfilename
        if not any(fnmatch(name, pattern) for pattern in source.patterns):
            continue
        if ".." in Path(name).parts or Path(name).is_absolute() or sibling.size is None:
            raise FetchFailed(f"{source.repository} lists a file that cannot be stored: {name!r}")
        url = hf_hub_url(source.repository, name, revision=info.sha, endpoint=endpoint)
        sha256 = sibling.lfs.sha256 if sibling.lfs else None
        files.append(RemoteFile(url, destination / source.folder / name, sibling.size, sha256))
    if not files:
        raise FetchFailed(f"{source.repository} has none of {', '.join(source.patterns)}")
    return files


def _prepare(destination: Path) -> None:
    """Make the directory, and write into it: a full or read-only disk shows only then."""
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=destination) as probe:
        probe.write(b"\0" * 4096)


def _unusable(fault: OSError, destination: Path) -> str:
    """One sentence: the path, what the system says of it, and what chooses another one."""
    path = Path(os.fsdecode(fault.filename or destination))
    sentence = f"{path} cannot be used ({fault.strerror}); choose another directory with "
    if destination == path or destination in path.parents or path in destination.parents:
        return sentence + "--to"
    return sentence + "HF_HOME, where the hub's token is looked for"


def _fetch_all(files: list[RemoteFile], destination: Path, progress: Progress | None) -> None:
    total = max(sum(file.size for file in files), 1)
    missing = [file for file in files if _size(file.path) != file.size]
    needed = sum(file.size - _size(_part(file.path)) for file in missing)
    free = shutil.disk_usage(destination).free
    if needed > free:
        raise FetchFailed(
            f"{destination} has {free / 1e9:,.1f} GB free and {needed / 1e9:,.1f} GB are needed; "
            "choose another directory with --to"
        )
    done = total - sum(file.size for file in missing)
    for file in missing:

        def report(size: int, file: RemoteFile = file, before: int = done) -> None:
            if progress is not None:
                progress(f"downloading {file.path.name}", (before + size) / total)

        _fetch(file, report)
        done += file.size


def _fetch(file: RemoteFile, report: Callable[[int], None]) -> None:
    """Bring one file in, carrying on where an earlier attempt, of any process, stopped."""
    part = _part(file.path)
    part.parent.mkdir(parents=True, exist_ok=True)
    part.touch()
    tries = 0
    while (before := _size(part)) < file.size:
        try:
            _append(file, part, report)
        except TransferError:
            tries = 0 if _size(part) > before else tries + 1
            if tries >= _TRIES:
                raise
    if _size(part) != file.size or (file.sha256 and _sha256(part) != file.sha256):
        part.unlink()
        raise FetchFailed(
            f"{file.path.name} is not what the hub published (size or hash differ); it was "
            "removed, run the command again"
        )
    part.replace(file.path)


def _append(file: RemoteFile, part: Path, report: Callable[[int], None]) -> None:
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    start = _size(part)
    if start:
        headers["Range"] = f"bytes={start}-"
    with get_session().stream("GET", file.url, headers=headers, follow_redirects=True) as answer:
        if answer.is_error:
            raise FetchFailed(
                f"The hub answered {answer.status_code} {answer.reason_phrase} for "
                f"{file.path.name}; if the model is gated, accept its terms and set HF_TOKEN"
            )
        whole = start and answer.status_code != HTTPStatus.PARTIAL_CONTENT
        with part.open("wb" if whole else "ab") as out:  # a hub may ignore the range
            for block in answer.iter_raw():
                out.write(block)
                report(out.tell())


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, download, and say where the weights are. Exit code 2 for everything that failed."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.lingbot.fetch",
        description="Download the published weights of LingBot-World-Fast (some 86 GB).",
    )
    parser.add_argument("--to", type=Path, required=True, help="the directory to put them in")
    parser.add_argument(
        "--accept-licence", action="store_true", help="accept the licence shown, without asking"
    )
    options = parser.parse_args(arguments)

    def accept(text: str) -> bool:
        print(text, file=sys.stderr)
        if options.accept_licence:
            return True
        if not sys.stdin.isatty():
            print("Not a terminal: pass --accept-licence to accept.", file=sys.stderr)
            return False
        return input("Type yes to accept and download: ").strip().lower() == "yes"

    accepted = accept(LICENCE)  # before a bar moves under the question
    try:
        with progress_bar() as progress:
            found = fetch_weights(options.to, accept=lambda _: accepted, progress=progress)
    except LingBotError as fault:
        print(fault, file=sys.stderr)
        return 2
    print(f"the weights are in {options.to} (DiT in {found.dit})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
