"""Reported troubles of seats that never come back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.e2e.scripted import Players, Session, becomes, beside, players
from tests.e2e.server import ServerProcess
from tests.fakes.rtc_client import RtcPlayer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
ENDS = ("stage error", "never came", "left", "reset", "killed", "worker killed")


@pytest.fixture(scope="session")
def transport() -> str:
    """Scripted players speak direct WebRTC."""
    return "webrtc"


def seats(text: str) -> dict[str, int]:
    """From `/metrics`: seats by what they are, and all of them."""
    found = re.findall(r'^veldt_seats(?:\{state="(\w+)"\}|_capacity) ([\d.]+)$', text, re.MULTILINE)
    return {name or "capacity": int(float(value)) for name, value in found}


@asynccontextmanager
async def watched(http: httpx.AsyncClient) -> AsyncIterator[list[dict[str, int]]]:
    """Looks at the seats all the time; nobody's seat is ever unaccounted for."""
    seen: list[dict[str, int]] = []

    async def look() -> None:
        while True:
            seen.append(seats((await http.get("/metrics")).text))
            await asyncio.sleep(0.2)

    async with beside(look()):
        yield seen
    wrong = [s for s in seen if s["free"] + s["resident"] + s["quarantined"] != s["capacity"]]
    assert wrong == []


async def opened(group: Players) -> Session:
    """A session, as soon as there is a seat and a worker."""
    made: list[Session] = []

    async def admitted() -> bool:
        try:
            made.append(await group.open())
        except ConnectionError as refusal:
            if str(refusal)[:3] not in ("429", "503"):
                raise
        return bool(made)

    await becomes(admitted, 30)
    return made[0]


async def end(how: str, session: Session, server: ServerProcess) -> None:
    """Begin the end of a session; most of them take their time."""
    if how == "never came":
        return
    player = await session.play(RtcPlayer(decode=False))
    if how == "left":
        await session.leave()
    elif how == "reset":
        await player.until(lambda: len(session.chunks) > 1)
        player.command({"type": "reset", "id": "again"})
        await session.leave()
    elif how == "killed":
        await player.vanish()
    elif how == "worker killed":

        async def alone() -> bool:  # the others end as they were told
            return server.metric("veldt_seats", state="free") == 1

        await becomes(alone, 30)
        [worker] = server.workers()
        worker.kill()

        async def told() -> bool:  # until then somebody else may be sent to it
            return (await session.view())["status"] == "failed"

        await becomes(told, 30)


async def test_thirty_sessions_that_end_in_every_way_leave_both_seats(
    make_server: Callable[..., ServerProcess],
) -> None:
    """Row D3: DELETE, kill -9, a reset in mid-chunk, a failing stage, expiry, a dead worker."""
    server = make_server(
        "--seats",
        "2",
        veldt_world="failing",
        veldt_world_options='{"fps": 32, "at_chunk": 24}',
        veldt_claim_seconds="5",
        veldt_lost_seconds="2",
        veldt_disconnect_grace_seconds="1",
    )
    sessions: list[Session] = []
    async with players(server) as group, watched(group.http) as seen:
        for number in range(30):
            session = await opened(group)
            sessions.append(session)
            await end(ENDS[number % len(ENDS)], session, server)

        async def free() -> bool:
            now = seats((await group.http.get("/metrics")).text)
            return now["free"] == now["capacity"] == 2

        await becomes(free, 30)
        reasons = {(await session.view())["reason"] for session in sessions}
        assert reasons == {"world_failed", "left", "disconnected", "claim_missed", "worker_died"}
        last = await opened(group)
        async with asyncio.timeout(15):
            player = await last.play(RtcPlayer())
            await player.until(lambda: bool(player.frames))
        assert {now["capacity"] for now in seen} >= {2}
