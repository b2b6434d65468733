"""Clients that keep the front door waiting, on real sockets."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from server.front import connections
from server.front.connections import Connection, accept_at_once, connection_limit
from server.front.events import EventStream
from tests.server.front.test_serving import Served, served

pytestmark = pytest.mark.anyio

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


async def closes(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side closes, which it has to."""
    try:
        async with asyncio.timeout(15):
            return await reader.read()
    except ConnectionResetError:
        return b""


async def answers(door: Served) -> bool:
    answer = await door.raw(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
    return answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("begun", [b"", b"GET", HEAD], ids=["nothing", "a word", "half a head"])
async def test_a_request_that_never_comes_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.2)
    async with served() as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(begun)
        assert await closes(reader) == b""
        writer.close()


async def test_bytes_that_trickle_in_buy_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.3)
    async with served() as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
        closed = asyncio.create_task(closes(reader))
        while not closed.done():
            writer.write(b"x")
            await asyncio.wait({closed}, timeout=0.02)
        assert closed.result() == b""
        writer.close()


async def test_the_second_request_is_not_waited_for_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.3)
    async with served() as door:
        reader, writer = await door.dial(HEAD + b"\r\n")
        assert b'{"status":"ok"}' in await reader.readuntil(b"}")
        writer.write(HEAD)
        assert await closes(reader) == b""
        writer.close()


async def test_an_open_stream_is_no_request_that_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.1)
    monkeypatch.setitem(EventStream.__init__.__kwdefaults__, "comment_seconds", 0.05)
    async with served() as door:
        created = await post(door, b"/v1/sessions")
        reader, writer = await stream_of(door, created)
        async with asyncio.timeout(15):
            assert b"event: admitted" in await reader.readuntil(b"\n\n")
            for _ in range(8):  # four times as long as a head may take
                assert b": still here" in await reader.readuntil(b"\n\n")
        writer.close()


async def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "unread_seconds", 0.3)
    async with served() as door:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        await asyncio.get_running_loop().sock_connect(deaf, ("127.0.0.1", door.port))
        with deaf, pytest.raises((ConnectionResetError, BrokenPipeError)):
            await ask_for_ever(deaf)


async def test_too_many_connections_push_out_the_oldest_idle_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "connection_limit", lambda: 4)
    async with served() as door:
        stream, _ = await stream_of(door, await post(door, b"/v1/sessions"))
        opened = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(6)]
        for _, writer in opened:
            writer.write(HEAD)
        for reader, _ in opened[:3]:
            assert await closes(reader) == b""
        assert await answers(door)
        async with asyncio.timeout(15):
            assert b"event: admitted" in await stream.readuntil(b"\n\n")  # it is no idle one
        for _, writer in opened:
            writer.close()


async def test_a_house_full_of_busy_connections_refuses_the_newcomer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "connection_limit", lambda: 1)
    async with served() as door:
        stream, _ = await stream_of(door, await post(door, b"/v1/sessions"))
        async with asyncio.timeout(15):
            await stream.readuntil(b"\n\n")
        reader, _ = await asyncio.open_connection("127.0.0.1", door.port)
        assert await closes(reader) == b""
        assert not stream.at_eof()


@pytest.mark.parametrize(
    ("files", "limit", "at_once"), [(256, 192, 16), (1024, 864, 64), (1 << 20, 4096, 512)]
)
def test_descriptors_are_left_for_everything_else(
    monkeypatch: pytest.MonkeyPatch, files: int, limit: int, at_once: int
) -> None:
    monkeypatch.setattr(connections, "_files_allowed", lambda: files)
    assert connection_limit() == limit
    assert accept_at_once() == at_once
    assert limit + 2 * at_once < files


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    ],
    ids=["TLS", "no Host", "two Hosts", "bad length"],
)
async def test_what_is_no_http_gets_a_problem_with_all_headers(garbage: bytes) -> None:
    async with served() as door:
        head, _, body = (await door.raw(garbage)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    assert b"content-security-policy: default-src 'none'" in head
    assert json.loads(body)["code"] == "bad_request"


async def ask_for_ever(deaf: socket.socket) -> None:
    """Request after request, until that fails."""
    async with asyncio.timeout(30):
        while True:
            await asyncio.get_running_loop().sock_sendall(deaf, (HEAD + b"\r\n") * 200)


async def post(door: Served, path: bytes) -> dict[str, str]:
    """Create something."""
    answer = await door.raw(
        b"POST " + path + b" HTTP/1.0\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    created: dict[str, str] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return created


async def stream_of(
    door: Served, created: dict[str, str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An open event stream."""
    path = f"/v1/sessions/{created['session_id']}/events"
    secret = f"Authorization: Bearer {created['session_token']}"
    asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{secret}\r\n\r\n"
    reader, writer = await door.dial(asked.encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer
