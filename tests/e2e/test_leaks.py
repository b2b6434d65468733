"""Nothing is left behind: cycles of playing are counted in descriptors, threads, tasks, memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass

import psutil
import pytest

from tests.e2e.scripted import Session, becomes, players
from tests.e2e.server import ServerProcess
from tests.fakes.rtc_client import RtcPlayer


@pytest.fixture(scope="session")
def transport() -> str:
    """Scripted players speak direct WebRTC; tests/e2e/livekit has those of LiveKit."""
    return "webrtc"


pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]
CYCLES, SETTLED = 100, 20
FLAT_MEGABYTES = 20.0  # growth between cycles 20 and 100
SLACK = 5  # descriptors and threads that pools may still open after the first cycles


@dataclass(frozen=True)
class Held:
    """What the processes of one server hold."""

    descriptors: int
    threads: int
    children: int
    megabytes: float

    @classmethod
    def by(cls, server: ServerProcess) -> Held:
        """Count over the front door and its workers."""
        assert server.process is not None
        every = [psutil.Process(server.process.pid), *server.workers()]
        return cls(
            sum(process.num_fds() for process in every),
            sum(process.num_threads() for process in every),
            len(every),
            sum(process.memory_info().rss for process in every) / 1e6,
        )


async def test_a_hundred_cycles_leave_nothing(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server(veldt_world="marker", veldt_world_options='{"fps": 32}')
    async with players(server) as group:
        for cycle in range(1, CYCLES + 1):
            session = await group.open()
            await session.play(RtcPlayer(decode=False))
            await session.player.until(lambda session=session: len(session.player.frames) > 4)
            assert await session.leave() in (200, 204)
            if cycle == SETTLED:
                await asyncio.sleep(2)
                early = Held.by(server)
    await settled(server, early)
    late = Held.by(server)
    print("after", SETTLED, asdict(early), "after", CYCLES, asdict(late))
    assert late.descriptors <= early.descriptors + SLACK
    assert late.threads <= early.threads + SLACK
    assert late.children == early.children
    assert late.megabytes - early.megabytes <= FLAT_MEGABYTES
    assert server.metric("veldt_seats", state="free") == server.metric("veldt_seats_capacity")

    async def no_sessions() -> bool:  # a worker pushes its numbers once a second
        return server.metric("veldt_worker_sessions", worker="worker-0") == 0

    await becomes(no_sessions, 10)


async def settled(server: ServerProcess, before: Held, seconds: float = 60.0) -> None:
    """Wait, within a limit, until sockets that close in their own time have closed."""

    async def quiet() -> bool:
        now = Held.by(server)
        return (
            now.descriptors <= before.descriptors + SLACK and now.threads <= before.threads + SLACK
        )

    await becomes(quiet, seconds)


async def test_offers_that_are_never_taken_up_leave_nothing(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server(veldt_world="marker", veldt_connect_seconds="3")
    async with players(server) as group:
        early = Held.by(server)
        for cycle in range(60):
            session = await group.open()
            player = RtcPlayer(candidates="dead")
            await session.answer(await player.offer())  # the answer is never applied
            await player.aclose()
            if cycle % 3:
                assert await session.leave() in (200, 202, 204)
            else:

                async def ended(session: Session = session) -> bool:
                    return (await session.view())["status"] == "failed"

                await becomes(ended, 20)
        session = await group.playing()
        assert await session.leave() in (200, 204)
    await settled(server, early)
    assert server.metric("veldt_seats", state="free") == server.metric("veldt_seats_capacity")
