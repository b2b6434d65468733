"""Reads the part of Dockerfile and .dockerignore that veldt's image uses, and refuses the rest."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path, PurePosixPath

WORDS = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "HEALTHCHECK"} | {
    "CMD",
    "ENTRYPOINT",
}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Unknown(ValueError):
    """The file says something that this reader does not know, so nothing may be concluded."""


@dataclass(frozen=True)
class Instruction:
    """One line of the file, continuation lines joined."""

    word: str
    rest: str

    def __str__(self) -> str:
        return f"{self.word} {self.rest}"


@dataclass
class Stage:
    """`FROM base AS name` and what follows it."""

    base: str
    name: str | None
    steps: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True)
class Dockerfile:
    """The arguments before the first stage, and the stages."""

    arguments: Mapping[str, str]
    stages: list[Stage]


@dataclass(frozen=True)
class Copy:
    """`COPY [--from=stage] source… destination`."""

    stage: str | None
    sources: tuple[str, ...]
    destination: str


def instructions(text: str) -> Iterator[Instruction]:
    """Every instruction in order."""
    joined = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or (not line.strip() and not joined):
            if re.match(r"#\s*(syntax|escape|check)\s*=", line):
                raise Unknown(f"a parser directive: {line}")
            continue
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        word, _, rest = (joined + line).strip().partition(" ")
        joined = ""
        if word not in WORDS:
            raise Unknown(f"the instruction {word}")
        yield Instruction(word, rest.strip())
    if joined:
        raise Unknown("a last line that goes on")


def parse(text: str, **arguments: str) -> Dockerfile:
    """The whole file; `arguments` are what `docker build --build-arg` would give."""
    defaults: dict[str, str] = {}
    stages: list[Stage] = []
    for step in instructions(text):
        if step.word == "FROM":
            found = re.fullmatch(r"(\S+)(?: AS (\w+))?", step.rest)
            if found is None:
                raise Unknown(str(step))
            stages.append(Stage(expand(found[1], defaults), found[2]))
        elif stages:
            stages[-1].steps.append(step)
        elif step.word == "ARG":
            name, value = argument(step.rest)
            defaults[name] = arguments.get(name, value or "")
        else:
            raise Unknown(f"{step} before the first FROM")
    return Dockerfile(defaults, stages)


def argument(rest: str) -> tuple[str, str | None]:
    """`NAME` or `NAME=default`."""
    found = re.fullmatch(r"(\w+)(?:=(\S*))?", rest)
    if found is None:
        raise Unknown(f"ARG {rest}")
    return found[1], found[2]


def environment(rest: str, known: Mapping[str, str]) -> dict[str, str]:
    """`NAME=value NAME=value`, with `$NAME` of what was known before the line."""
    pairs = rest.split()
    if any("=" not in pair or set(pair) & set("\"'\\") for pair in pairs):
        raise Unknown(f"ENV {rest}")
    return {
        name: expand(value, known) for name, _, value in (pair.partition("=") for pair in pairs)
    }


def expand(text: str, known: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}`; a name that is not known is an error, unlike in Docker."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in known:
            raise Unknown(f"the variable {name} in {text!r}")
        return known[name]

    if "${" in _VARIABLE.sub("", text):
        raise Unknown(f"a variable with a modifier in {text!r}")
    return _VARIABLE.sub(value, text)


def copy(rest: str) -> Copy:
    """What a COPY line says."""
    parts = rest.split()
    stage = parts.pop(0).removeprefix("--from=") if parts[0].startswith("--from=") else None
    if len(parts) < 2 or any(part.startswith(("--", "[", "<<")) for part in parts):
        raise Unknown(f"COPY {rest}")
    return Copy(stage, tuple(parts[:-1]), parts[-1])


def exec_form(rest: str) -> list[str]:
    """The JSON list of ENTRYPOINT and CMD."""
    try:
        said = json.loads(rest)
    except ValueError:
        raise Unknown(f"a command that is no list: {rest}") from None
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise Unknown(f"a command that is no list of words: {rest}")
    return said


def health(rest: str) -> list[str]:
    """The command of a HEALTHCHECK; its options are Docker's affair."""
    found = re.fullmatch(r"(?:--[a-z-]+=\w+\s+)*CMD\s+(.+)", rest)
    if found is None:
        raise Unknown(f"HEALTHCHECK {rest}")
    return exec_form(found[1])


class Context:
    """What `docker build` would send of a folder: all but what .dockerignore leaves out."""

    def __init__(self, root: Path) -> None:
        """Read `root/.dockerignore`; the last line that matches a path, or its parent, decides."""
        self.root = root
        self._rules: list[tuple[re.Pattern[str], bool]] = []
        self._kept: list[str] = []
        for line in (root / ".dockerignore").read_text().splitlines():
            pattern = line.strip()
            if not pattern or pattern.startswith("#"):
                continue
            keep = pattern.startswith("!")
            name = pattern.removeprefix("!").strip("/")
            self._rules.append((_pattern(name), keep))
            self._kept += [name] if keep else []

    def holds(self, path: PurePosixPath) -> bool:
        """Whether a file, relative to the root, is sent."""
        kept = True
        for pattern, keep in self._rules:
            if any(pattern.fullmatch(str(each)) for each in (path, *path.parents[:-1])):
                kept = keep
        return kept

    def files(self, source: str) -> list[PurePosixPath]:
        """The files below `source` that are sent, relative to the root."""
        start = self.root / source
        if start.is_file():
            return [path for path in [PurePosixPath(source)] if self.holds(path)]
        found = []
        for folder, inside, names in os.walk(start):
            here = PurePosixPath(Path(folder).relative_to(self.root))
            inside[:] = [name for name in inside if self._enters(here / name)]
            found += [here / name for name in names if self.holds(here / name)]
        return sorted(found)

    def _enters(self, folder: PurePosixPath) -> bool:
        """Whether something in a folder may be sent: it is, or a line brings back a part of it."""
        return self.holds(folder) or any(name.startswith(f"{folder}/") for name in self._kept)


def _pattern(text: str) -> re.Pattern[str]:
    """Go's filepath.Match, with `**` for any number of folders."""
    if set(text) & set("[]\\"):
        raise Unknown(f"the pattern {text}")
    parts = []
    for part in text.split("/"):
        if part == "**":
            parts.append("(?:[^/]+/)*")
        elif "**" in part:
            raise Unknown(f"the pattern {text}")
        else:
            parts.append(
                translate(part).removeprefix("(?s:").removesuffix(")\\Z").replace(".*", "[^/]*")
                + "/"
            )
    return re.compile("".join(parts).removesuffix("/"))
