"""The words on the wire, as literals, through the real encoders. A rename fails here."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from admission.session import EndReason, State
from server.protocol.base import MAX_MESSAGE_BYTES, PROTOCOL_VERSION
from server.protocol.command import COMMAND
from server.protocol.http import (
    SESSION_EVENT,
    AdmittedEvent,
    Connect,
    Connection,
    Created,
    CreateSession,
    EndedEvent,
    IceServer,
    Problem,
    QueuedEvent,
    StateEvent,
)
from server.protocol.keys import Keys
from server.protocol.status import (
    STATUS,
    Ack,
    Chunk,
    Error,
    FrameReceipt,
    Frames,
    HelloStatus,
    Lease,
    StateStatus,
)
from server.transports.base import Topic

LARGEST = 2**64 - 1

STATUS_WORDS = [
    (
        HelloStatus(world="tiny", session="s1", epoch=0, fps=24.0, frames_per_chunk=4),
        {
            "type": "hello",
            "version": 1,
            "world": "tiny",
            "session": "s1",
            "epoch": 0,
            "fps": 24.0,
            "frames_per_chunk": 4,
        },
    ),
    (Ack(id="c1", epoch=3), {"type": "ack", "id": "c1", "epoch": 3}),
    (
        StateStatus(state=State.SUSPENDED, paused=True),
        {"type": "state", "state": "suspended", "reason": None, "paused": True, "stage": None},
    ),
    (Lease(position=1, players=4), {"type": "lease", "position": 1, "players": 4}),
    (
        Chunk(
            epoch=0, index=7, receipt=LARGEST, frame_count=4, compute_ms=81.5, real_time_factor=1.0
        ),
        {
            "type": "chunk",
            "epoch": 0,
            "index": 7,
            "receipt": "18446744073709551615",
            "frame_count": 4,
            "compute_ms": 81.5,
            "real_time_factor": 1.0,
        },
    ),
    (
        Frames(frames=(FrameReceipt(pts=2**32 - 1, frame_id=9, receipt=LARGEST),)),
        {
            "type": "frames",
            "frames": [{"pts": 4294967295, "frame_id": "9", "receipt": "18446744073709551615"}],
        },
    ),
    (
        Error(code="unsupported_by_world", message="no prompts here", id="c2", count=2),
        {
            "type": "error",
            "code": "unsupported_by_world",
            "message": "no prompts here",
            "id": "c2",
            "count": 2,
        },
    ),
]


@pytest.mark.parametrize(("message", "words"), STATUS_WORDS, ids=lambda v: type(v).__name__)
def test_status_messages_say_exactly_this(message, words) -> None:
    assert json.loads(STATUS.dump_json(message)) == words
    assert json.loads(message.model_dump_json()) == words
    assert STATUS.validate_json(STATUS.dump_json(message)) == message


COMMAND_WORDS = [
    b'{"type":"hello","id":"a","nonce":4294967295,"version":1}',
    b'{"type":"reset","id":"a"}',
    b'{"type":"pause","id":"a"}',
    b'{"type":"resume","id":"a"}',
    b'{"type":"prompt","id":"a","text":"rain"}',
    b'{"type":"stop","id":"a"}',
    b'{"type":"grant","id":"a","to":"player-2"}',
]


@pytest.mark.parametrize("words", COMMAND_WORDS, ids=lambda w: json.loads(w)["type"])
def test_commands_are_read_from_exactly_this(words: bytes) -> None:
    assert COMMAND.dump_json(COMMAND.validate_json(words)) == words


def test_keys_are_read_from_exactly_this() -> None:
    words = (
        b'{"epoch":2,"nonce":7,"seq":41,"held":["KeyW"],"presses":{"KeyW":3},"axes":{"yaw":-0.5}}'
    )
    keys = Keys.model_validate_json(words)
    assert keys.model_dump_json().encode() == words
    least = Keys.model_validate_json(b'{"epoch":0,"nonce":1,"seq":0,"held":[]}')
    assert (dict(least.presses), dict(least.axes)) == ({}, {})


@pytest.mark.parametrize(
    "words",
    [
        b'{"epoch":0,"nonce":1,"seq":0,"held":[],"more":1}',
        b'{"epoch":0,"nonce":1,"seq":0,"held":["Key W"]}',
        b'{"epoch":0,"nonce":1,"seq":0,"held":[],"axes":{"forward":1.5}}',
        b'{"epoch":0,"nonce":1,"seq":0,"held":[],"axes":{"roll":0}}',
        b'{"epoch":0,"nonce":1,"seq":0,"held":[],"axes":{"yaw":NaN}}',
        b'{"epoch":0,"nonce":4294967296,"seq":0,"held":[]}',
        b'{"epoch":0,"nonce":1,"held":[]}',
    ],
)
def test_other_keys_are_refused(words: bytes) -> None:
    with pytest.raises(ValidationError):
        Keys.model_validate_json(words)


EVENT_WORDS = [
    (
        QueuedEvent(queue_position=2, eta_seconds=90.0),
        {"event": "queued", "queue_position": 2, "eta_seconds": 90.0},
    ),
    (AdmittedEvent(claim_seconds=20.0), {"event": "admitted", "claim_seconds": 20.0}),
    (
        StateEvent(state=State.STARTING, stage="decode"),
        {"event": "state", "state": "starting", "stage": "decode"},
    ),
    (
        EndedEvent(reason=EndReason.TIME_LIMIT, played_seconds=1800.0),
        {"event": "ended", "reason": "time_limit", "played_seconds": 1800.0},
    ),
]


@pytest.mark.parametrize(("event", "words"), EVENT_WORDS, ids=lambda v: type(v).__name__)
def test_events_say_exactly_this(event, words) -> None:
    assert json.loads(SESSION_EVENT.dump_json(event)) == words


def test_bodies_and_answers_say_exactly_this() -> None:
    body = b'{"world":"tiny","start_point":"waterhole","image_id":null,"prompt":null}'
    assert CreateSession.model_validate_json(body).model_dump_json().encode() == body
    assert Connect.model_validate_json(b'{"sdp":"v=0","take_over":true}').take_over is True
    created = Created(
        session_id="s", session_token="t", status=State.ADMITTED, transport="webrtc", world="tiny"
    )
    assert json.loads(created.model_dump_json()) == {
        "session_id": "s",
        "session_token": "t",
        "status": "admitted",
        "transport": "webrtc",
        "world": "tiny",
        "claim_seconds": None,
        "queue_position": None,
        "eta_seconds": None,
    }
    connection = Connection(
        transport="webrtc",
        sdp="v=0",
        ice_servers=(IceServer(urls=("stun:host",)),),
        connect_seconds=30.0,
    )
    assert json.loads(connection.model_dump_json()) == {
        "transport": "webrtc",
        "sdp": "v=0",
        "url": None,
        "token": None,
        "ice_servers": [{"urls": ["stun:host"], "username": None, "credential": None}],
        "connect_seconds": 30.0,
    }
    problem = Problem(title="Too many players", status=429, code="full", detail="Try later.")
    assert json.loads(problem.model_dump_json()) == {
        "type": "about:blank",
        "title": "Too many players",
        "status": 429,
        "code": "full",
        "detail": "Try later.",
        "field": None,
        "session_id": None,
    }


def test_closed_lists_and_limits_are_these() -> None:
    assert [state.value for state in State] == [
        "queued",
        "admitted",
        "connecting",
        "starting",
        "running",
        "suspended",
        "draining",
        "closed",
        "failed",
        "expired",
    ]
    assert [reason.value for reason in EndReason] == [
        "left",
        "stopped",
        "kicked",
        "shutdown",
        "claim_missed",
        "queue_abandoned",
        "connect_timeout",
        "connect_failed",
        "disconnected",
        "idle",
        "time_limit",
        "worker_died",
        "world_failed",
    ]
    assert [topic.value for topic in Topic] == ["veldt.keys", "veldt.command", "veldt.status"]
    assert (PROTOCOL_VERSION, MAX_MESSAGE_BYTES) == (1, 8192)


def test_u64_travels_as_decimal_text_only() -> None:
    for receipt in ('"0"', '"18446744073709551615"'):
        words = f'{{"type":"frames","frames":[{{"pts":0,"frame_id":"1","receipt":{receipt}}}]}}'
        assert json.loads(STATUS.dump_json(STATUS.validate_json(words))) == json.loads(words)
    for receipt in ('"18446744073709551616"', '"-1"', '"1e3"', '"١"', '""'):
        words = f'{{"type":"frames","frames":[{{"pts":0,"frame_id":"1","receipt":{receipt}}}]}}'
        with pytest.raises(ValidationError):
            STATUS.validate_json(words)
