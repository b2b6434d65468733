"""The event stream: what it tells, when it ends, what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from admission.session import EndReason
from server.front.events import EventStream
from server.front.record import MAX_STREAMS, MAX_UNREAD, Watcher
from server.protocol.http import AdmittedEvent, StateEvent
from tests.fakes.waiting import until

pytestmark = pytest.mark.anyio


class Stream:
    """One reader of one event stream, on the ASGI interface, where each chunk can be seen."""

    def __init__(self, door, created) -> None:
        self.door, self.created = door, created
        self.start: dict[str, Any] = {}
        self.chunks: list[bytes] = []
        self.over = False
        self.goodbye = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        path = f"/v1/sessions/{self.created['session_id']}/events"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [
                (b"host", b"127.0.0.1:8000"),
                (b"authorization", f"Bearer {self.created['session_token']}".encode()),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        await self.door.app(scope, self._receive, self._send)

    async def _receive(self):
        await self.goodbye.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
            return
        self.chunks.append(message["body"])
        self.over = not message.get("more_body", False)

    @property
    def events(self) -> list[dict[str, Any]]:
        found = []
        for chunk in self.chunks:
            if chunk.startswith(b"event: "):
                name, data = chunk.decode().strip().split("\n")
                event = json.loads(data.removeprefix("data: "))
                assert name == f"event: {event['event']}"
                found.append(event)
        return found

    async def has(self, count: int) -> list[dict[str, Any]]:
        await until(lambda: len(self.events) >= count)
        return self.events

    async def leave(self) -> None:
        self.goodbye.set()
        await self.task


async def test_a_stream_tells_every_step_and_ends_with_the_reason(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        stream = Stream(door, created)
        [first] = await stream.has(1)
        assert first["event"] == "admitted"
        assert 0 < first["claim_seconds"] <= 20
        await door.connect(created)
        session = created["session_id"]
        door.worker.fact(session, "connected")
        door.worker.fact(session, "starting", stage="preparing the picture")
        door.worker.fact(session, "running")
        await stream.has(5)
        door.worker.fact(session, "ended", reason=EndReason.STOPPED)
        await stream.task
        assert [(event.get("state"), event.get("stage")) for event in stream.events[1:-1]] == [
            ("connecting", None),
            ("starting", None),
            ("starting", "preparing the picture"),
            ("running", None),
            ("draining", None),
        ]
        last = stream.events[-1]
        assert (last["event"], last["reason"]) == ("ended", "stopped")
        assert last["played_seconds"] >= 0
        assert stream.over


async def test_a_reconnect_begins_with_what_is_the_case(open_door) -> None:
    async with open_door() as door:
        door.worker.plays = True
        created = await door.create()
        first = Stream(door, created)
        await first.has(1)
        await first.leave()
        await door.connect(created)
        await door.settled()
        second = Stream(door, created)
        [event] = await second.has(1)
        assert event == {"event": "state", "state": "running", "stage": None}
        await door.delete(created)
        await second.task
        late = Stream(door, created)
        await late.task
        assert [event["reason"] for event in late.events] == ["left"]
        assert late.over


async def test_headers_keep_proxies_and_caches_out_of_it(open_door) -> None:
    async with open_door() as door:
        stream = Stream(door, await door.create())
        await stream.has(1)
        headers = {name.decode(): value.decode() for name, value in stream.start["headers"]}
        assert headers["content-type"].startswith("text/event-stream")
        assert headers["x-accel-buffering"] == "no"
        assert "no-store" in headers["cache-control"]
        assert "content-length" not in headers
        await stream.leave()


async def test_a_silent_stream_says_that_it_is_alive() -> None:
    watcher = Watcher(StateEvent(state="running"))
    from contextlib import nullcontext

    sent: list[bytes] = []
    alive = asyncio.Event()

    async def send(message) -> None:
        sent.append(message.get("body", b""))
        if sent.count(b": still here\n\n") == 2:
            alive.set()

    async def receive():
        await alive.wait()
        return {"type": "http.disconnect"}

    stream = EventStream(lambda: nullcontext(watcher), comment_seconds=0.02)
    async with asyncio.timeout(5):
        await stream({"type": "http"}, receive, send)
    assert alive.is_set()


def test_comments_come_often_enough_for_proxies() -> None:
    from server.front.events import COMMENT_SECONDS

    assert COMMENT_SECONDS <= 15


async def test_a_stream_that_is_left_leaves_nothing(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        [record] = door.service.live()
        streams = [Stream(door, created) for _ in range(5)]
        for stream in streams:
            await stream.has(1)
        assert record.streams == 5
        for stream in streams:
            await stream.leave()
        assert record.streams == 0
        cut = Stream(door, created)
        await cut.has(1)
        cut.task.cancel()
        await asyncio.gather(cut.task, return_exceptions=True)
        assert record.streams == 0


async def test_streams_of_one_session_are_bounded(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        streams = [Stream(door, created) for _ in range(MAX_STREAMS)]
        for stream in streams:
            await stream.has(1)
        answer = await door.client.get(
            f"/v1/sessions/{created['session_id']}/events", headers=door.auth(created)
        )
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
        for stream in streams:
            await stream.leave()


async def test_a_reader_that_is_behind_keeps_the_newest() -> None:
    watcher = Watcher(AdmittedEvent(claim_seconds=1))
    for number in range(MAX_UNREAD * 2):
        watcher.put(StateEvent(state="running", stage=str(number)))
    seen = [await watcher.next() for _ in range(MAX_UNREAD)]
    assert seen[-1] == StateEvent(state="running", stage=str(MAX_UNREAD * 2 - 1))


async def test_shutdown_ends_every_stream_with_its_reason(open_door) -> None:
    async with open_door() as door:
        door.worker.plays = True
        played, waiting = await door.create(), await door.create()
        await door.connect(played)
        streams = [Stream(door, played), Stream(door, waiting)]
        for stream in streams:
            await stream.has(1)
        await door.service.shutdown(2.0)
        for stream in streams:
            await stream.task
            assert stream.events[-1] == {
                "event": "ended",
                "reason": "shutdown",
                "played_seconds": stream.events[-1]["played_seconds"],
            }
        answer = await door.client.post("/v1/sessions", json={})
        assert (answer.status_code, answer.json()["code"]) == (503, "shutting_down")
        assert (await door.client.get("/readyz")).json()["stage"] == "stopping"


async def test_a_dead_worker_ends_its_streams_with_a_reason(open_door) -> None:
    async with open_door() as door:
        door.worker.plays = True
        created = await door.create()
        await door.connect(created)
        stream = Stream(door, created)
        await stream.has(1)
        door.worker.die()
        await stream.task
        assert stream.events[-1]["reason"] == "worker_died"
