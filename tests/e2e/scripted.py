"""Players without a browser: HTTP and aiortc, for what needs many of them or exact timing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from server.protocol.status import Chunk, StateStatus
from tests.e2e.server import ServerProcess
from tests.fakes.rtc_client import RtcPlayer


class Session:
    """One session over HTTP, and the player that is connected to it."""

    def __init__(self, http: httpx.AsyncClient, created: dict[str, str]) -> None:
        self._http = http
        self.id = created["session_id"]
        self.world = created["world"]
        self.headers = {"Authorization": f"Bearer {created['session_token']}"}
        self.path = f"/v1/sessions/{self.id}"
        self.player = RtcPlayer(decode=False)
        self.left = False

    async def answer(self, offer: str, *, take_over: bool = False) -> str:
        """Bring an offer; raises with the problem's text where it is refused."""
        body = {"sdp": offer, "take_over": take_over}
        response = await self._http.post(f"{self.path}/connect", json=body, headers=self.headers)
        if response.status_code != 200:
            raise ConnectionError(f"{response.status_code} {response.text}")
        return str(response.json()["sdp"])

    async def play(self, player: RtcPlayer | None = None, *, take_over: bool = False) -> RtcPlayer:
        """Connect, say hello, and wait until the world runs."""
        self.player = player or self.player

        async def answer(offer: str) -> str:
            return await self.answer(offer, take_over=take_over)

        await self.player.connect(answer)
        await self.player.hello()
        await self.player.until(lambda: self.running, 30)
        return self.player

    @property
    def running(self) -> bool:
        """Whether the worker says that the world runs."""
        states = [m.state for m in self.player.statuses if isinstance(m, StateStatus)]
        return bool(states) and states[-1] == "running"

    @property
    def chunks(self) -> list[tuple[float, Chunk]]:
        """Every chunk reported so far, with its time of arrival."""
        both = zip(self.player.status_at, self.player.statuses, strict=True)
        return [(at, message) for at, message in both if isinstance(message, Chunk)]

    async def view(self) -> dict[str, str]:
        """What `GET /v1/sessions/{id}` says."""
        response = await self._http.get(self.path, headers=self.headers)
        return dict(response.json())

    async def leave(self) -> int:
        """DELETE, then close the connection; returns the status code."""
        response = await self._http.delete(self.path, headers=self.headers)
        await self.player.aclose()
        self.left = True
        return response.status_code

    async def leave_for_good(self) -> None:
        """Leave, and wait until the worker holds nothing of it any more.

        DELETE says so itself, unless that takes longer than two seconds; asked again it does.
        """
        status = await self.leave()

        async def released() -> bool:
            nonlocal status
            if status == 202:
                status = (await self._http.delete(self.path, headers=self.headers)).status_code
            return status != 202

        await becomes(released, 30)
        if status not in (200, 204):
            raise ConnectionError(f"leaving was answered with {status}")


class Players:
    """Opens sessions on one server."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self._opened: list[Session] = []

    async def open(self, **start: str) -> Session:
        """POST /v1/sessions."""
        response = await self.http.post("/v1/sessions", json=start)
        if response.status_code != 201:
            raise ConnectionError(f"{response.status_code} {response.text}")
        session = Session(self.http, response.json())
        self._opened.append(session)
        return session

    async def playing(self, **start: str) -> Session:
        """Open a session and play it."""
        session = await self.open(**start)
        await session.play()
        return session

    def forget_closed(self) -> None:
        """Keep no record of sessions that have been left."""
        self._opened = [session for session in self._opened if not session.left]

    async def leave_all(self) -> None:
        """End whatever is still open."""
        for session in self._opened:
            if not session.left:
                await session.leave()


@asynccontextmanager
async def players(server: ServerProcess) -> AsyncIterator[Players]:
    """Players of one server; all of them leave at the end."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as http:
        group = Players(http)
        try:
            yield group
        finally:
            await group.leave_all()


def slow(**options: float) -> dict[str, str]:
    """The emulated world, as settings of a server."""
    return {"veldt_world": "slow", "veldt_world_options": json.dumps(options)}


@dataclass
class Standstill:
    """For how long this process could do nothing, all in all."""

    seconds: float = 0.0


@asynccontextmanager
async def standstill() -> AsyncIterator[Standstill]:
    """Watches while it is open whether the machine lets this process run."""
    stood = Standstill()

    async def watch() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            stood.seconds += max(0.0, time.monotonic() - before - 0.05)

    async with beside(watch()):
        yield stood


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Something else goes on while this is open."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def becomes(check: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Wait until something outside this process is so; TimeoutError where it never is."""
    async with asyncio.timeout(seconds):
        while not await check():  # noqa: ASYNC110 (another process: nothing here can tell)
            await asyncio.sleep(0.1)


async def chunk_periods(session: Session, seconds: float) -> list[float]:
    """Times between the chunks that arrive within the next `seconds`."""
    begin = time.monotonic()
    await session.player.until(lambda: time.monotonic() - begin >= seconds, seconds + 20)
    arrived = [at for at, _ in session.chunks if at >= begin]
    return [float(period) for period in np.diff(arrived)]


def p95(values: list[float]) -> float:
    """95th percentile."""
    return float(np.percentile(values, 95))
