"""A front door in memory, with a scripted worker behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import structlog
from blockbuster import blockbuster_ctx

from server.front import create_app
from server.protocol.worker import WorkerRequest
from server.settings import Settings
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorker


class Door:
    """The application, its worker, and a client that is on the same machine."""

    def __init__(self, app: Any, worker: FakeWorker, client: httpx.AsyncClient) -> None:
        self.app, self.worker, self.client = app, worker, client
        self.service = app.state.service

    async def create(self, **body: Any) -> dict[str, Any]:
        answer = await self.client.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def auth(self, created: dict[str, Any]) -> dict[str, str]:
        return {"Authorization": f"Bearer {created['session_token']}"}

    async def view(self, created: dict[str, Any]) -> dict[str, Any]:
        answer = await self.client.get(
            f"/v1/sessions/{created['session_id']}", headers=self.auth(created)
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def connect(self, created: dict[str, Any], **body: Any) -> httpx.Response:
        return await self.client.post(
            f"/v1/sessions/{created['session_id']}/connect", json=body, headers=self.auth(created)
        )

    async def delete(self, created: dict[str, Any]) -> httpx.Response:
        return await self.client.delete(
            f"/v1/sessions/{created['session_id']}", headers=self.auth(created)
        )

    def clock(self, clock: Callable[[], float]) -> None:
        """Let the door's limits run by another clock, before there is any session."""
        self.service._lives.clock = self.service._lives._deadlines._clock = clock

    def overdue(self) -> None:
        """Have all limits looked at now."""
        self.service._lives._overdue(self.service.now())

    async def settled(self) -> None:
        """Everything that the worker has said is heard."""
        await self.worker.heard()

    async def asked(self, kind: type[WorkerRequest], count: int = 1) -> None:
        """The worker has been asked that so many times."""
        await until(lambda: sum(isinstance(r, kind) for r in self.worker.requests) >= count)


@pytest.fixture(autouse=True)
def nothing_blocks() -> Iterator[None]:
    """A call from `server` that blocks the event loop fails the test."""
    with blockbuster_ctx("server"):
        yield


@asynccontextmanager
async def opened(
    settings: Settings | None = None, worker: FakeWorker | None = None, workers: Any = None
) -> AsyncIterator[Door]:
    worker = worker or FakeWorker()
    app = create_app(settings or Settings(), workers or [worker])
    before = asyncio.all_tasks()
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as c:
            door = Door(app, worker, c)
            await door.settled()
            yield door
    await asyncio.sleep(0)
    if left := asyncio.all_tasks() - before:
        _, left = await asyncio.wait(left, timeout=5)
    assert not left, f"tasks that nobody ended: {left}"


@pytest.fixture(autouse=True)
def _quiet_log() -> None:
    """The log goes to the standard library's, where pytest keeps it for failing tests."""
    structlog.configure(
        processors=[structlog.stdlib.render_to_log_kwargs],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    logging.getLogger().setLevel(logging.INFO)


@pytest.fixture
def open_door() -> Callable[..., Any]:
    return opened
