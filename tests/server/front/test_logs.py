from __future__ import annotations

import json
import logging

import pytest
import structlog

from server.front.logs import configure
from server.front.output import MAX_LINE, forward_line


@pytest.fixture
def written(capsys):
    """The log as `veldt serve` writes it where there is no terminal."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    configure("info", "json")
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    root.handlers[:], level = before[0], before[1]
    root.setLevel(level)


def test_secrets_are_not_written(written) -> None:
    log = structlog.get_logger("test")
    log.info(
        "x",
        session_id="s1",
        token="t0p",
        session_token="t0p",
        sdp="t0p",
        headers={"Authorization": "Bearer t0p", "X-API-Key": "t0p"},
    )
    [line] = written()
    assert line["session_id"] == "s1"
    assert "t0p" not in json.dumps(line)


def test_a_traceback_shows_no_local_variables(written) -> None:
    secret = "t0p"
    try:
        raise ValueError("bug")
    except ValueError:
        structlog.get_logger("test").exception("internal_error")
    [line] = written()
    assert "ValueError: bug" in line["exception"]
    assert secret not in json.dumps(line).replace('secret = "t0p"', "")


def test_lines_of_libraries_have_the_same_shape(written) -> None:
    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").debug("not this one")
    [line] = written()
    assert (line["event"], line["level"]) == ("slow callback", "warning")


def test_a_childs_line_keeps_its_fields(written) -> None:
    log = structlog.get_logger("test").bind(worker="w")
    forward_line(b'{"event": "chunk", "level": "error", "session_id": "s9", "self": 1}', log)
    forward_line(b'{"event": "chunk", "level": "no-level"}', log)
    forward_line(b'{"not": "ours"}', log)
    forward_line(b"\xff words", log)
    forward_line(b"x" * (MAX_LINE * 2), log)
    forward_line(b"  ", log)
    forward_line(b"{" * 100_000, log)
    first, second, third, fourth, fifth, sixth = written()
    assert (first["event"], first["level"], first["session_id"]) == ("chunk", "error", "s9")
    assert first["worker"] == "w"
    assert second["level"] == "info"
    assert third["line"] == '{"not": "ours"}'
    assert fourth["line"].endswith(" words")
    assert len(fifth["line"]) == len(sixth["line"]) == MAX_LINE
