"""The front door on real sockets: raw requests, open streams, signals."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

import httpx
import psutil
import pytest

from server.front.ports import listen
from server.front.serving import serve, worker_config
from server.settings import Settings
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorker, starts

pytestmark = pytest.mark.anyio


class Served:
    def __init__(self, port: int, worker: FakeWorker, serving: asyncio.Task) -> None:
        self.port, self.worker, self.serving = port, worker, serving
        self.url = f"http://127.0.0.1:{port}"

    async def raw(self, request: bytes) -> bytes:
        """Exactly these bytes, and all that is answered."""
        reader, writer = await self.dial(request)
        try:
            async with asyncio.timeout(15):
                return await reader.read()
        finally:
            writer.close()

    async def dial(self, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which that was said before the server could have looked at it.

        So no limit of its passes while the two of us, on one event loop, are held up.
        """
        calling = socket.create_connection(("127.0.0.1", self.port))
        calling.sendall(request)
        return await asyncio.open_connection(sock=calling)


@asynccontextmanager
async def served(settings: Settings | None = None, **given) -> AsyncIterator[Served]:
    settings = settings or Settings()
    worker = given.pop("worker", None) or FakeWorker()
    listening = listen(ip_address("127.0.0.1"), 0)
    port = listening.getsockname()[1]
    ready = asyncio.Event()
    serving = asyncio.create_task(
        serve(
            settings,
            listening,
            workers=given.pop("workers", [worker]),
            on_readiness=lambda state: ready.set() if state.ready else None,
        )
    )
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    waiting.cancel()
    try:
        yield Served(port, worker, serving)
    finally:
        if not serving.done():
            os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await serving


async def test_a_request_without_host_or_with_another_one_gets_nothing() -> None:
    """Row H1 on the wire, with what HTTP clients do not let one send."""
    async with served() as door:
        for request, status in (
            (b"GET /healthz HTTP/1.0\r\n\r\n", b"400"),
            (b"GET /healthz HTTP/1.1\r\n\r\n", b"400"),
            (b"GET /healthz HTTP/1.0\r\nHost: evil.test\r\n\r\n", b"403"),
            (b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\nHost: evil.test\r\n\r\n", b"400"),
            (b"GET http://evil.test/healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"403"),
            (b"GET http://evil.test HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"403"),
            (b"GET ftp://127.0.0.1/healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"400"),
            (b"GET http://a@127.0.0.1/healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"400"),
            (b"GET healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"400"),
            (b"OPTIONS * HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"404"),
            (b"CONNECT evil.test:80 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"400"),
        ):
            answer = await door.raw(request)
            assert answer.split(b" ")[1] == status, (request, answer)
            assert b'"status":"ok"' not in answer


async def test_absolute_form_with_our_name_works_whatever_host_says() -> None:
    async with served() as door:
        for target in (b"http://127.0.0.1/healthz", b"HTTP://LOCALHOST:1/healthz?x=1"):
            answer = await door.raw(b"GET " + target + b" HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            assert b'"status":"ok"' in answer


async def test_a_path_that_leaves_the_page_finds_nothing(tmp_path) -> None:
    """Row H4 on the wire, where no client tidies the path up."""
    (tmp_path / "index.html").write_text("<!doctype html>")
    async with served(Settings(client_dir=tmp_path)) as door:
        for path in (
            b"/../../../../../../etc/passwd",
            b"/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
            b"/..%2f..%2f..%2f..%2fetc/passwd",
            b"//etc/passwd",
            b"/file:///etc/passwd",
            b"/\\\\host\\share",
            b"/index.html%00",
            b"/v1/sessions/../../etc/passwd",
            b"/v1/worlds/../../../etc/passwd/start_points/x/picture",
        ):
            answer = await door.raw(b"GET " + path + b" HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert answer.split(b" ")[1] in (b"401", b"404"), (path, answer)
            assert b"application/problem+json" in answer
            assert b"root:" not in answer
        assert (await door.raw(b"GET /\x00 HTTP/1.0\r\nHost: localhost\r\n\r\n"))[9:12] == b"400"


async def test_answers_do_not_name_the_server() -> None:
    async with served() as door:
        answer = await door.raw(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert b"\r\nserver:" not in answer.lower()


async def test_a_websocket_upgrade_is_an_ordinary_request_that_finds_nothing() -> None:
    async with served() as door:
        answer = await door.raw(
            b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade, close\r\nSec-WebSocket-Key: x\r\n"
            b"Sec-WebSocket-Version: 13\r\n\r\n"
        )
        assert answer.split(b" ")[1] == b"401"


async def test_a_body_that_never_comes_does_not_hold_the_server(monkeypatch) -> None:
    monkeypatch.setattr("server.front.guard.BODY_SECONDS", 0.1)
    async with served() as door:
        answer = await door.raw(
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert answer.split(b" ")[1] == b"408"
        huge = await door.raw(
            b"POST /v1/sessions HTTP/1.0\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{"
        )
        assert huge.split(b" ")[1] == b"413"


async def test_who_sends_too_much_hears_why() -> None:
    """Row A2, an offer of a megabyte: not a connection that is reset while it is being sent."""
    async with served() as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n"
        )
        for _ in range(16):
            await asyncio.sleep(0.01)  # a network's pace
            writer.write(b" " * 65_536)
            await writer.drain()
        answer = await reader.read()
        assert answer.split(b" ")[1] == b"413"
        assert b'"body_too_large"' in answer
        writer.close()


async def read_lines(response: httpx.Response, sink: list[str]) -> None:
    async for line in response.aiter_lines():
        sink.append(line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_open_streams_with_the_reason_and_then_the_server(number) -> None:
    async with served() as door, httpx.AsyncClient(base_url=door.url, timeout=20) as client:
        door.worker.plays = True
        created = (await client.post("/v1/sessions", json={})).json()
        auth = {"Authorization": f"Bearer {created['session_token']}"}
        await client.post(f"/v1/sessions/{created['session_id']}/connect", json={}, headers=auth)
        lines: list[str] = []
        url = f"/v1/sessions/{created['session_id']}/events"
        async with client.stream("GET", url, headers=auth) as response:
            reading = asyncio.create_task(read_lines(response, lines))
            await until(lambda: bool(lines))
            os.kill(os.getpid(), number)
            async with asyncio.timeout(20):
                await reading
                assert await door.serving is None
        assert "event: ended" in lines
        assert '"reason":"shutdown"' in lines[lines.index("event: ended") + 1]


async def test_a_worker_that_does_not_release_holds_the_shutdown_for_its_bound_only() -> None:
    settings = Settings(shutdown_seconds=1.0)
    async with (
        served(settings) as door,
        httpx.AsyncClient(base_url=door.url, timeout=20) as client,
    ):
        created = (await client.post("/v1/sessions", json={})).json()
        auth = {"Authorization": f"Bearer {created['session_token']}"}
        await client.post(f"/v1/sessions/{created['session_id']}/connect", json={}, headers=auth)
        door.worker.close_gate.clear()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(0.8 * settings.worker_close_seconds):
            assert await door.serving is None


async def test_the_second_signal_ends_it_at_once() -> None:
    settings = Settings(shutdown_seconds=60.0)
    async with (
        served(settings) as door,
        httpx.AsyncClient(base_url=door.url, timeout=20) as client,
    ):
        created = (await client.post("/v1/sessions", json={})).json()
        auth = {"Authorization": f"Bearer {created['session_token']}"}
        await client.post(f"/v1/sessions/{created['session_id']}/connect", json={}, headers=auth)
        door.worker.close_gate.clear()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.2)
        assert not door.serving.done()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await door.serving


async def test_a_worker_that_can_never_work_ends_it_with_its_sentence() -> None:
    def hopeless() -> FakeWorker:
        worker = FakeWorker(ready=False)
        worker.fatal("there is no world 'mars'")
        return worker

    async with served(workers=[starts(hopeless)]) as door:
        async with asyncio.timeout(30):
            assert await door.serving == "there is no world 'mars'"


def test_a_worker_is_told_what_the_settings_say() -> None:
    settings = Settings(
        world="tiny", tiny_fps=24, max_sessions_per_worker=3, test_impair_media={"loss": 0.2}
    )
    config = worker_config(settings, "worker-0")
    assert (config.world, config.world_options, config.seats) == ("tiny", {"fps": 24}, 3)
    assert config.transport_settings.bind_host == "127.0.0.1"
    assert config.transport_settings.impair.loss == 0.2


async def test_a_hundred_sessions_leave_no_task_and_no_descriptor_behind() -> None:
    """Rows D2 and E1 on the front door's side: create, watch, connect, leave, a hundred times."""
    process = psutil.Process()

    async def play(client: httpx.AsyncClient) -> None:
        answer = await client.post("/v1/sessions", json={})
        assert answer.status_code == 201
        created = answer.json()
        auth = {"Authorization": f"Bearer {created['session_token']}"}
        session = f"/v1/sessions/{created['session_id']}"
        async with client.stream("GET", f"{session}/events", headers=auth) as events:
            lines: list[str] = []
            reading = asyncio.create_task(read_lines(events, lines))
            await client.post(f"{session}/connect", json={}, headers=auth)
            assert (await client.delete(session, headers=auth)).status_code == 204
            await reading
        assert "event: ended" in lines

    async with (
        served(Settings(), worker=FakeWorker(seats=1)) as door,
        httpx.AsyncClient(base_url=door.url, timeout=20) as client,
    ):
        door.worker.plays = True
        for _ in range(5):
            await play(client)
        await asyncio.sleep(0.1)
        tasks, descriptors = len(asyncio.all_tasks()), process.num_fds()
        for _ in range(100):
            await play(client)
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        await until(lambda: process.num_fds() <= descriptors)
