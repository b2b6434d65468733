"""The image's recipe as far as it can be read; `make docker-proof` runs it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from tests.docker.build import FILE
from tests.docker.composed import ROOT
from tests.docker.dockerfile import (
    Context,
    Unknown,
    copy,
    environment,
    exec_form,
    expand,
    health,
    instructions,
    parse,
)


def test_lines_that_go_on_are_one_instruction() -> None:
    said = list(instructions("# a word\nRUN a && \\\n  # between\n  b\n\nUSER 1\n"))
    assert [str(one) for one in said] == ["RUN a &&   b", "USER 1"]


@pytest.mark.parametrize(
    "text",
    [
        "ADD a b",
        "run a",
        "# syntax=docker/dockerfile:1\nFROM a",
        "USER 1\nFROM a",
        "FROM --platform=x a",
        "FROM $A",
        "RUN a \\",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(Unknown):
        parse(text)


@pytest.mark.parametrize("rest", ["--chown=1 a b", '["a", "b"]', "a", "a <<END b"])
def test_a_copy_of_another_kind_is_refused(rest: str) -> None:
    with pytest.raises(Unknown):
        copy(rest)


def test_arguments_and_variables_are_put_in() -> None:
    file = parse("ARG A=one\nARG B\nFROM ${A}:$B AS x\nENV P=$P:q", B="two")
    assert (file.stages[0].base, file.stages[0].name) == ("one:two", "x")
    assert environment("P=/b:$P Q=1", {"P": "/a"}) == {"P": "/b:/a", "Q": "1"}
    for unknown in ("$NO", "${A:-b}"):
        with pytest.raises(Unknown):
            expand(unknown, {"A": "a"})


def test_commands_are_lists_of_words() -> None:
    assert exec_form('["a", "b c"]') == ["a", "b c"]
    assert health('--interval=1s --timeout=5s CMD ["a"]') == ["a"]
    for other in ("a b", '{"a": 1}', "[1]"):
        with pytest.raises(Unknown):
            exec_form(other)


def test_the_context_is_what_dockerignore_leaves(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("*\n!kept\n!one/file\nkept/out\n**/cache\n*.pyc\n")
    for name in ("kept/a", "kept/out/b", "kept/d/cache/c", "kept/x.pyc", "one/file", "one/two"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    context = Context(tmp_path)
    sent = {str(path) for path in (*context.files("kept"), *context.files("one"))}
    assert sent == {"kept/a", "kept/x.pyc", "one/file"}
    assert not context.holds(PurePosixPath("other"))


def test_all_that_the_image_copies_is_there_and_sent() -> None:
    context = Context(ROOT)
    copies = [
        copy(s.rest)
        for stage in parse(FILE.read_text()).stages
        for s in stage.steps
        if s.word == "COPY"
    ]
    assert any(said.stage is None for said in copies)
    for said in copies:
        for source in said.sources if said.stage is None else ():
            assert context.files(source), source


def test_it_does_not_run_as_root_and_says_how_it_is() -> None:
    last = parse(FILE.read_text()).stages[-1]
    words = {step.word: step.rest for step in last.steps}
    assert words["USER"].isdigit()
    assert int(words["USER"]) > 0
    assert health(words["HEALTHCHECK"])[0] == "python"
    assert exec_form(words["ENTRYPOINT"]) == ["veldt"]
    assert words["EXPOSE"] == "8000"
