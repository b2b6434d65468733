"""Troubles that people reported with systems of this kind: a step each, with its right outcome."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from tests.e2e.scripted import becomes, chunk_periods, p95, players, slow
from tests.e2e.server import ServerProcess
from tests.fakes.rtc_client import RtcPlayer

MakeServer = Callable[..., ServerProcess]
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


@pytest.fixture(scope="session")
def transport() -> str:
    """Scripted players speak direct WebRTC."""
    return "webrtc"


async def test_stop_and_start_elsewhere_begins_there_each_time(make_server: MakeServer) -> None:
    server = make_server()
    async with players(server) as group:
        [world] = (await group.http.get("/v1/worlds")).json()["worlds"]
        starts = world["start_points"][:2]
        pictures = {}
        for start in starts:
            png = (await group.http.get(start["picture"])).content
            picture = Image.open(io.BytesIO(png)).convert("RGB")
            pictures[start["name"]] = np.asarray(picture, dtype=float)
        for round_ in range(8):
            name = starts[round_ % 2]["name"]
            session = await group.open(start_point=name)
            player = RtcPlayer()
            began = time.monotonic()
            await session.play(player)
            await player.until(lambda player=player: len(player.frames) > 1)
            assert time.monotonic() - began < 10
            first = player.frames[0].rgb.astype(float)
            away = {key: np.abs(first - value).mean() for key, value in pictures.items()}
            assert min(away, key=away.get) == name, away
            if round_ % 2:
                await player.ask("reset")
            assert await session.leave() in (200, 204)
    assert "never retrieved" not in server.output()
    assert "was destroyed" not in server.output()


async def test_a_player_that_vanishes_gives_its_seat_to_the_next(make_server: MakeServer) -> None:
    server = make_server(
        "--seats",
        "1",
        veldt_world="marker",
        veldt_lost_seconds="3",
        veldt_disconnect_grace_seconds="2",
    )
    async with players(server) as group:
        first = await group.playing()
        assert (await group.http.post("/v1/sessions", json={})).status_code == 429
        await first.player.vanish()

        async def free() -> bool:
            return server.metric("veldt_seats", state="free") == 1

        await becomes(free, 3 + 2 + 10)
        granted = server.metric("veldt_worker_chunks_granted_total")
        second = await group.playing()
        assert (await first.view())["reason"] == "disconnected"
        await second.leave()
        assert granted > 0


async def test_the_only_player_is_never_refused_however_quickly_it_stops_and_starts(
    make_server: MakeServer,
) -> None:
    server = make_server("--seats", "1", veldt_world="marker")
    async with players(server) as group:
        for _ in range(12):
            session = await group.playing()  # raises where it is refused
            await session.leave()


async def test_reloads_and_bad_offers_of_one_player_do_not_stop_the_other(
    make_server: MakeServer,
) -> None:
    server = make_server(**slow(denoise_ms=62, decode_ms=30))
    async with players(server) as group:
        a, b = await group.playing(), await group.playing()
        await chunk_periods(a, 2)
        usual = p95(await chunk_periods(a, 10))

        async def reload_and_err() -> None:
            for number in range(10):
                if number % 2:
                    with pytest.raises(ConnectionError, match="bad_offer"):
                        await b.answer("v=0\r\n")
                old = b.player
                await b.play(RtcPlayer(decode=False), take_over=True)
                await old.aclose()

        periods, _ = await asyncio.gather(chunk_periods(a, 12), reload_and_err())
    assert p95(periods) <= 1.5 * usual


async def test_a_loopback_service_opens_no_media_socket_elsewhere(make_server: MakeServer) -> None:
    server = make_server(veldt_world="marker")
    async with players(server) as group:
        session = await group.playing()
        await session.player.until(lambda: len(session.player.frames) > 4)
        [worker] = server.workers()
        bound = {c.laddr.ip for c in worker.net_connections("inet") if c.laddr}
        assert bound, "a playing worker has its media sockets open"
        assert bound <= {"127.0.0.1", "::1"}
