"""Others watch a session by link, through the whole service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from pipeline.testworlds.marker import Marker, read_marker
from tests.e2e.livekit.scripted import Players, Session
from tests.e2e.server import ServerProcess
from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]


def marker(player: LiveKitPlayer) -> Marker | None:
    """What the newest picture says."""
    if not player.frames:
        return None
    frame = player.frames[-1]
    grey = np.frombuffer(frame.i420, np.uint8)[: frame.width * frame.height]
    return read_marker(np.repeat(grey.reshape(frame.height, frame.width)[..., None], 3, axis=2))


def held(player: LiveKitPlayer) -> frozenset[str]:
    seen = marker(player)
    return seen.held if seen else frozenset()


async def link(session: Session, http: httpx.AsyncClient) -> dict[str, str]:
    answer = await http.post(f"{session.path}/tokens", headers=session.headers)
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json()['watch_token']}"}


async def watch(session: Session, http: httpx.AsyncClient, ticket: dict[str, str]) -> LiveKitPlayer:
    answer = await http.post(f"{session.path}/watch", headers=ticket)
    assert answer.status_code == 200, answer.text
    spectator = LiveKitPlayer()
    await spectator.join(answer.json())
    return spectator


async def test_a_link_lets_others_watch_and_nothing_else(
    make_server: Callable[..., ServerProcess], make_players: Callable[[ServerProcess], Players]
) -> None:
    server = make_server(veldt_world="marker")
    players = make_players(server)
    session = await players.open()
    http = players.http
    ticket = await link(session, http)
    assert (await http.post(f"{session.path}/watch", headers=ticket)).json()["code"] == (
        "nothing_to_watch"
    )
    player = await session.play()
    spectator = await watch(session, http, ticket)
    await spectator.until(lambda: len(spectator.frames) > 5)

    for path in ("", "/connect", "/events", "/tokens"):
        method = "GET" if path in ("", "/events") else "POST"
        refused = await http.request(method, session.path + path, headers=ticket, json={})
        assert refused.status_code == 404, f"{path} was open to a spectator"
    assert (await http.delete(session.path, headers=ticket)).status_code == 404
    assert (await http.post(f"{session.path}/watch", headers=session.headers)).status_code == 404

    for _ in range(10):
        await spectator.command(type="hello", nonce=spectator.nonce, version=1)
        await spectator.command(type="grant", to=spectator.who)
        await spectator.command(type="stop")
        await spectator.keys("KeyW", presses={"KeyW": 9})
    await asyncio.sleep(1)
    seen = marker(player)
    assert seen is not None
    assert (seen.held, seen.presses) == (frozenset(), 0)
    assert spectator.of("ack") == []
    assert (await session.view())["status"] == "running"
    await spectator.aclose()
    assert await session.leave() in (202, 204)
    assert (await http.post(f"{session.path}/watch", headers=ticket)).status_code == 410


async def test_the_player_hands_over_the_controls_and_takes_them_back(
    make_server: Callable[..., ServerProcess], make_players: Callable[[ServerProcess], Players]
) -> None:
    server = make_server(veldt_world="marker")
    players = make_players(server)
    session = await players.playing()
    player = session.player
    spectator = await watch(session, players.http, await link(session, players.http))
    await spectator.until(lambda: bool(spectator.frames))

    async def granted() -> bool:
        await player.command(type="grant", to=spectator.who)
        await asyncio.sleep(0.3)
        return bool(spectator.of("hello"))

    await until(granted, 10)
    await spectator.hello()
    await spectator.keys("KeyW")
    await player.until(lambda: held(player) == {"KeyW"})
    await player.keys("KeyA")
    await asyncio.sleep(0.3)
    assert "KeyA" not in held(player), "two players at once"
    await player.command(type="grant", to=player.who)
    await player.until(lambda: len(player.of("hello")) == 2)
    await player.hello()
    await player.keys("KeyD")
    await player.until(lambda: held(player) == {"KeyD"})
    await spectator.aclose()


async def test_direct_webrtc_says_that_nobody_can_watch(tmp_path) -> None:
    server = ServerProcess(tmp_path / "server.log", veldt_world="marker").start()
    try:
        created = server.post("/v1/sessions", {}).json()
        bearer = {"Authorization": f"Bearer {created['session_token']}"}
        answer = server.post(f"/v1/sessions/{created['session_id']}/tokens", {}, **bearer)
        assert (answer.status_code, answer.json()["code"]) == (409, "no_spectators")
    finally:
        server.stop()
