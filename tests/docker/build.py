"""Runs the steps of docker/Dockerfile in order in clean Debian trees, where no Docker engine is.

The real thing: every instruction, the build context, all that the steps install. Standing in: the
base images, which are a minimal Debian of the same release with this machine's Python, or PyPI's
build of Node, of the same version. `python -m tests.docker.proof` runs what was built.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.docker import trees
from tests.docker.dockerfile import (
    Context,
    Copy,
    Dockerfile,
    Stage,
    Unknown,
    argument,
    copy,
    environment,
    exec_form,
    expand,
    health,
    parse,
)

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker/Dockerfile"
# The machine's certificates and index may be its own; a RUN sees no more of it than that.
BORROWED = {
    "PIP_CERT": str(trees.CERTIFICATES),
    "PIP_DEFAULT_TIMEOUT": "180",
    "NODE_EXTRA_CA_CERTS": str(trees.CERTIFICATES),
}


@dataclass
class Image:
    """A tree and what is said about it."""

    tree: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": trees.PATH})
    folder: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    exposed: list[str] = field(default_factory=list)


class Builder:
    """Builds every stage of a file in a folder of its own."""

    def __init__(self, work: Path, context: Context, say: Callable[[str], None] = print) -> None:
        """`work` is empty, and on a disk that holds the image three times."""
        self._work, self._context, self._say = work, context, say
        self._images: dict[str, Image] = {}
        self._bases: dict[str, Path] = {}

    def build(self, file: Dockerfile) -> Image:
        """The last stage's image."""
        image: Image | None = None
        for number, stage in enumerate(file.stages):
            name = stage.name or str(number)
            image = self._stage(stage, self._work / f"stage-{name}", file)
            self._images[name] = image
        if image is None:
            raise Unknown("a file without a stage")
        return image

    def drop(self, image: Image) -> None:
        """Remove every tree but that image's."""
        for each in (*self._bases.values(), *(made.tree for made in self._images.values())):
            if each != image.tree:
                shutil.rmtree(each, ignore_errors=True)

    def _stage(self, stage: Stage, tree: Path, file: Dockerfile) -> Image:
        self._say(f"FROM {stage.base}" + (f" AS {stage.name}" if stage.name else ""))
        trees.clone(self._base(stage.base), tree)
        image = Image(tree)
        given: dict[str, str] = {}
        for step in stage.steps:
            started = time.monotonic()
            self._say(f"  {step}")
            known = {**given, **image.environment}
            match step.word:
                case "ARG":
                    name, default = argument(step.rest)
                    given[name] = file.arguments.get(name, default or "")
                case "ENV":
                    image.environment |= environment(step.rest, known)
                case "WORKDIR":
                    image.folder = str(PurePosixPath(image.folder) / expand(step.rest, known))
                    (tree / image.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
                case "USER":
                    image.user = expand(step.rest, known)
                case "COPY":
                    self._copy(copy(expand(step.rest, known)), image)
                case "RUN":
                    self._run(step.rest, image, given)
                case "EXPOSE":
                    image.exposed += step.rest.split()
                case "HEALTHCHECK":
                    image.health = health(step.rest)
                case "ENTRYPOINT":
                    image.entrypoint = exec_form(step.rest)
                case "CMD":
                    image.command = exec_form(step.rest)
                case _:
                    raise Unknown(str(step))
            if (took := time.monotonic() - started) > 1:
                self._say(f"    {took:.0f} s")
        return image

    def _base(self, name: str) -> Path:
        """What stands in for an image."""
        if "" not in self._bases:
            self._bases[""] = self._work / "debian"
            trees.minimal(self._bases[""])
        if name not in self._bases:
            tree = self._work / f"base-{len(self._bases)}"
            trees.clone(self._bases[""], tree)
            if python := re.fullmatch(rf"python:(\d+\.\d+)-slim-{trees.SUITE}", name):
                what = trees.with_python(tree, python[1])
            elif node := re.fullmatch(rf"node:(\d+)-{trees.SUITE}-slim", name):
                what = trees.with_node(tree, int(node[1]))
            else:
                raise Unknown(f"the image {name}")
            self._say(f"  (stands in: minimal Debian {trees.SUITE} with {what})")
            self._bases[name] = tree
        return self._bases[name]

    def _run(self, script: str, image: Image, given: dict[str, str]) -> None:
        known = {**BORROWED, **given, **image.environment}
        entry = trees.Entry(image.tree, known, image.folder, image.user)
        subprocess.run(entry.argv("/bin/sh", "-c", script), check=True)

    def _copy(self, said: Copy, image: Image) -> None:
        into = image.tree / (PurePosixPath(image.folder) / said.destination).relative_to("/")
        folder = said.destination.endswith("/") or len(said.sources) > 1
        for source in said.sources:
            if said.stage is not None:
                made = self._images[said.stage].tree / source.lstrip("/")
                into.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-a", "--reflink=auto", str(made), str(into)], check=True)
                continue
            files = self._context.files(source)
            if not files:
                raise FileNotFoundError(f"COPY {source}: nothing of that name is sent")
            root = PurePosixPath(source)
            for path in files:
                if path == root:
                    target = into / path.name if folder or into.is_dir() else into
                else:
                    target = into / path.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self._context.root / path, target, follow_symlinks=False)


def build(work: Path, say: Callable[[str], None] = print, **arguments: str) -> Image:
    """Build docker/Dockerfile in `work`; what only the build needed is removed."""
    builder = Builder(work, Context(ROOT), say)
    image = builder.build(parse(FILE.read_text(), **arguments))
    builder.drop(image)
    return image
