"""Things break for real: a worker, a player, LiveKit itself. Nobody waits for ever."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import httpx
import pytest
from playwright.sync_api import Page, expect

from server.protocol.rooms import WORKER
from server.settings import Settings
from tests.e2e.livekit.breaks import through_reconnecting
from tests.e2e.livekit.scripted import Players, Session
from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, hud, seen_key, wait_for
from tests.e2e.server import ServerProcess
from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.waiting import MARGIN_SECONDS, until
from tests.livekit_server import LiveKitServer

pytestmark = pytest.mark.timeout(180)
RECONCILE_SECONDS = Settings.model_fields["reconcile_seconds"].default
MakeServer = Callable[..., ServerProcess]
MakePlayers = Callable[[ServerProcess], Players]


async def events(session: Session, http: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    """What the service says of a session, from now until it closes the stream."""
    path = f"{session.path}/events"
    async with http.stream("GET", path, headers=session.headers, timeout=30) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                yield dict(json.loads(line.removeprefix("data:")))


def is_last(event: dict[str, Any]) -> bool:
    return event["event"] == "ended"


@pytest.mark.anyio
async def test_a_killed_worker_leaves_no_room_and_the_player_is_told(
    make_server: MakeServer, make_players: MakePlayers, own_livekit: LiveKitServer
) -> None:
    server = make_server(veldt_world="marker", **own_livekit.settings)
    session = await make_players(server).playing()
    [(room, inside)] = (await own_livekit.rooms()).items()
    assert session.id in room
    assert inside == ["player-1", WORKER]
    [worker] = server.workers()
    worker.kill()

    async def gone() -> bool:
        return room not in await own_livekit.rooms()

    await until(gone, RECONCILE_SECONDS)
    await session.player.until(lambda: session.player.gone == "ROOM_DELETED")
    view = await session.view()
    assert (view["status"], view["reason"]) == ("failed", "worker_died")
    await until(lambda: server.metric("veldt_livekit_strays_removed_total") == 1)


@pytest.mark.anyio
async def test_a_killed_service_leaves_no_room_once_it_is_back(
    make_server: MakeServer, make_players: MakePlayers, own_livekit: LiveKitServer
) -> None:
    settings = {**own_livekit.settings, "veldt_room_prefix": "mine"}
    server = make_server(veldt_world="marker", **settings)
    await make_players(server).playing()
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGKILL)
    assert len(await own_livekit.rooms()) == 1
    make_server(veldt_world="marker", **settings)

    async def gone() -> bool:
        return await own_livekit.rooms() == {}

    await until(gone, RECONCILE_SECONDS)


@pytest.mark.anyio
async def test_whoever_joins_without_media_ends_in_words_and_frees_the_seat(
    make_server: MakeServer, make_players: MakePlayers, own_livekit: LiveKitServer
) -> None:
    """Row A4 of the reports."""
    server = make_server(
        "--seats", "1", veldt_world="marker", veldt_connect_seconds="6", **own_livekit.settings
    )
    players = make_players(server)
    session = await players.open()
    details = await session.connect()
    url = f"{own_livekit.http}/rtc?access_token={details['token']}&auto_subscribe=1"
    async with aiohttp.ClientSession() as http, http.ws_connect(url):  # signalling, no media
        [last] = [event async for event in events(session, players.http) if is_last(event)]
    assert last["reason"] in ("connect_failed", "connect_timeout")
    view = await session.view()
    assert (view["status"], view["reason"]) == ("failed", last["reason"])

    async def no_rooms() -> bool:
        return await own_livekit.rooms() == {}

    await until(no_rooms)
    await players.playing()


@pytest.mark.anyio
async def test_a_player_that_dies_is_lost_within_ten_seconds_and_may_come_back(
    make_server: MakeServer, make_players: MakePlayers
) -> None:
    server = make_server(veldt_world="marker")
    session = await make_players(server).playing()
    session.player.answers = False  # and it sends no keys either
    loop = asyncio.get_running_loop()
    began = loop.time()

    await session.becomes("suspended", 30)
    assert loop.time() - began < 10 + MARGIN_SECONDS
    await session.play()


@pytest.mark.anyio
async def test_a_restarted_livekit_is_joined_again_by_the_worker(
    make_server: MakeServer, make_players: MakePlayers, own_livekit: LiveKitServer
) -> None:
    server = make_server(
        veldt_world="marker", veldt_disconnect_grace_seconds="60", **own_livekit.settings
    )
    session = await make_players(server).playing()
    own_livekit.restart()
    first = session.player

    async def back() -> bool:
        try:
            if first.room.isconnected() and first.gone is None and session.state == "running":
                newest = len(first.frames)  # some may have been on their way before
                await first.until(lambda: len(first.frames) > newest + 16, 4)
                return True  # the SDK has mended it by itself
            await session.play(take_over=True)
        except (ConnectionError, TimeoutError, *LiveKitPlayer.Unreachable):
            return False
        return True

    await until(back, 90)
    player = session.player
    seen = len(player.frames)
    await player.until(lambda: len(player.frames) > seen + 10)
    await session.becomes("running")


def test_the_page_plays_on_after_livekit_was_restarted(
    page: Page, make_server: MakeServer, own_livekit: LiveKitServer
) -> None:
    server = make_server(
        veldt_world="marker", veldt_disconnect_grace_seconds="60", **own_livekit.settings
    )
    enter(page, server)
    session = hud(page)["session"]
    grab_frames(page, 4)
    through_reconnecting(page, own_livekit.restart)
    assert len(grab_frames(page, 10)) == 10
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")
    assert hud(page)["session"] == session


@pytest.mark.anyio
async def test_a_livekit_that_stays_away_ends_the_session_after_its_grace(
    make_server: MakeServer, make_players: MakePlayers, own_livekit: LiveKitServer
) -> None:
    server = make_server(
        veldt_world="marker", veldt_disconnect_grace_seconds="4", **own_livekit.settings
    )
    session = await make_players(server).playing()
    own_livekit.stop()

    assert (await session.becomes("expired", 40))["reason"] == "disconnected"
    assert server.metric("veldt_seats", state="free") == server.metric("veldt_seats_capacity")
    with pytest.raises(ConnectionError, match="media_server_unreachable"):
        await (await make_players(server).open()).connect()


def test_the_page_of_a_livekit_that_stays_away_tries_again_and_ends_in_words(
    page: Page, make_server: MakeServer, own_livekit: LiveKitServer
) -> None:
    server = make_server(
        veldt_world="marker", veldt_disconnect_grace_seconds="12", **own_livekit.settings
    )
    enter(page, server)
    own_livekit.stop()
    wait_for(page, "reconnecting")
    wait_for(page, "ended", 60)
    expect(page.get_by_test_id("reason")).not_to_be_empty()
    page.get_by_test_id("play-again").click()
    wait_for(page, "error")
    expect(page.get_by_test_id("sheet-title")).to_contain_text("media server")


def test_the_page_says_before_it_asks_for_a_seat_that_livekit_is_down(
    page: Page, make_server: MakeServer, own_livekit: LiveKitServer
) -> None:
    server = make_server(veldt_world="marker", **own_livekit.settings)
    page.goto(server.url)
    own_livekit.stop()
    page.get_by_test_id("play").click()
    wait_for(page, "error")
    expect(page.get_by_test_id("sheet-title")).to_contain_text("media server")
    assert server.metric("veldt_sessions_created_total") == 0
    own_livekit.start()
    page.get_by_test_id("retry").click()
    page.get_by_test_id("play").click()
    wait_for(page, "playing", 40)


def test_a_second_use_of_the_same_identity_shows_playing_elsewhere(
    page: Page, make_server: MakeServer
) -> None:
    server = make_server(veldt_world="marker")
    with page.expect_response("**/connect") as answered:
        enter(page, server)
    details = answered.value.json()
    done = threading.Event()

    async def somebody_else() -> None:
        other = LiveKitPlayer()
        await other.join(details)
        await asyncio.to_thread(done.wait, 30)
        await other.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(somebody_else()))
    thread.start()
    try:
        wait_for(page, "elsewhere")
        page.wait_for_timeout(3000)
        wait_for(page, "elsewhere", 1)  # it does not fight back
        page.get_by_test_id("take-over").click()
        wait_for(page, "playing")
        page.keyboard.down("KeyW")
        seen_key(page, "KeyW")
        page.keyboard.up("KeyW")
    finally:
        done.set()
        thread.join(40)
    assert not thread.is_alive()
