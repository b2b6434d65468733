"""Sessions come and go in rooms, and nothing of them is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from tests.e2e.livekit.scripted import Players
from tests.e2e.server import ServerProcess
from tests.e2e.test_leaks import Held, settled
from tests.fakes.waiting import until
from tests.livekit_server import LiveKitServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
WARM, SESSIONS = 4, 20


async def test_twenty_sessions_in_rooms_leave_nothing(
    make_server: Callable[..., ServerProcess],
    make_players: Callable[[ServerProcess], Players],
    own_livekit: LiveKitServer,
) -> None:
    server = make_server(veldt_world="marker", **own_livekit.settings)
    players = make_players(server)

    async def one() -> None:
        session = await players.playing()
        player = session.player
        await player.until(lambda: len(player.frames) > 4)
        assert await session.leave() in (202, 204)

    for _ in range(WARM):
        await one()
    early = Held.by(server)
    tasks = server.metric("veldt_tasks", process="front")
    for _ in range(SESSIONS):
        await one()

    async def no_rooms() -> bool:
        return await own_livekit.rooms() == {}

    async def no_sessions() -> bool:  # a worker pushes its numbers once a second
        return server.metric("veldt_worker_sessions", worker="worker-0") == 0

    async def no_tasks() -> bool:
        return server.metric("veldt_tasks", process="front") <= tasks + 2

    await until(no_rooms)
    await until(no_sessions)
    await until(no_tasks)
    await settled(server, early)
    late = Held.by(server)
    print("after", WARM, asdict(early), "after", WARM + SESSIONS, asdict(late))
    late.assert_no_more_than(early)
    assert server.metric("veldt_livekit_strays_removed_total") == 0
