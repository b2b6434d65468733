"""Nothing is left behind: cycles of playing are counted in descriptors, threads, tasks, memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import pytest

from tests.e2e.scripted import becomes, players
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

    def assert_no_more_than(self, early: Held) -> None:
        """Nothing has been left since `early`; memory is judged elsewhere."""
        assert self.descriptors <= early.descriptors + SLACK
        assert self.threads <= early.threads + SLACK
        assert self.children == early.children


async def test_a_hundred_cycles_leave_nothing(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server(veldt_world="marker", veldt_world_options='{"fps": 32}')
    async with players(server) as group:
        for cycle in range(1, CYCLES + 1):
            session = await group.open()
            await session.play(RtcPlayer(decode=False))
            await session.player.until(lambda session=session: len(session.player.frames) > 4)
            await session.leave_for_good()
            if cycle == SETTLED:
                await asyncio.sleep(2)
                early = Held.by(server)
    await settled(server, early)
    late = Held.by(server)
    print("after", SETTLED, asdict(early), "after", CYCLES, asdict(late))
    late.assert_no_more_than(early)
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


class FrugalServer(ServerProcess):
    """Its processes may have 256 descriptors each: a leak shows soon, as it would in a day."""

    def command(self, *arguments: str) -> list[str]:
        return ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *super().command(*arguments)]


@pytest.fixture
def frugal_server(tmp_path: Path) -> Iterator[ServerProcess]:
    settings = {"veldt_world": "marker", "veldt_connect_seconds": "5"}
    server = FrugalServer(tmp_path / "server.log", "--seats", "25", **settings).start()
    yield server
    server.stop()


async def test_offers_that_are_never_taken_up_leave_nothing(frugal_server: ServerProcess) -> None:
    """Row D2: 300 that are left at once, 100 that nobody leaves; then somebody plays."""
    server = frugal_server
    assert server.process is not None
    assert psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE)[0] == 256
    player = RtcPlayer(candidates="dead")
    offer = await player.offer()  # its answers are never applied
    await player.aclose()
    async with players(server) as group:

        async def left_at_once() -> None:
            session = await group.open()
            await session.answer(offer)
            assert await session.leave() in (200, 202, 204)
            group.forget_closed()

        async def left_to_expire() -> None:
            session = await group.open()
            await session.answer(offer)

            async def ended() -> bool:
                return (await session.view())["status"] == "failed"

            await becomes(ended, 30)
            assert (await session.view())["reason"] in ("connect_failed", "connect_timeout")

        for _ in range(20):
            await left_at_once()
        await asyncio.gather(*(left_to_expire() for _ in range(25)))
        await settled(server, early := Held.by(server))
        tasks = server.metric("veldt_tasks", process="front")
        for _ in range(280):
            await left_at_once()
        for _ in range(3):
            await asyncio.gather(*(left_to_expire() for _ in range(25)))
        session = await group.playing()
        await session.leave_for_good()
    await settled(server, early)
    late = Held.by(server)
    print("before", asdict(early), "after", asdict(late))
    assert late.megabytes - early.megabytes <= FLAT_MEGABYTES
    assert server.metric("veldt_seats", state="free") == server.metric("veldt_seats_capacity")

    async def no_more_tasks() -> bool:
        front = server.metric("veldt_tasks", process="front") <= tasks + SLACK
        return front and server.metric("veldt_worker_sessions", worker="worker-0") == 0

    await becomes(no_more_tasks, 10)
