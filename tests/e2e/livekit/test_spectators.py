"""Others watch a session by link, through the whole service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import get_args

import httpx
import numpy as np
import pytest

from pipeline.testworlds.marker import Marker, read_marker
from server.protocol.command import Command
from server.protocol.rooms import WORKER
from server.transports.base import Topic
from server.transports.livekit.transport import ALIVE
from tests.e2e.livekit.scripted import Players, Session
from tests.e2e.server import ServerProcess
from tests.e2e.test_leaks import Held, settled
from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.waiting import until
from tests.livekit_server import LiveKitServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]
WARM, SPECTATORS = 4, 20


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


def told(player: LiveKitPlayer) -> list[str]:
    """What the worker has said of the session and its rules, oldest first."""
    return [message["type"] for message in player.of("state") + player.of("error")]


def every_command(spectator: LiveKitPlayer) -> list[dict[str, object]]:
    """One of each kind that the protocol knows."""
    given: dict[str, dict[str, object]] = {
        "hello": {"nonce": spectator.nonce, "version": 1},
        "prompt": {"text": "mine"},
        "grant": {"to": spectator.who},
    }
    union, _ = get_args(Command)
    kinds = [get_args(kind.model_fields["type"].annotation)[0] for kind in get_args(union)]
    assert set(given) < set(kinds)
    return [{"type": kind, **given.get(kind, {})} for kind in kinds]


async def say_everything(spectator: LiveKitPlayer) -> None:
    """Try each command, keys, the worker's own topics, and rubbish; to all and to the worker."""
    commands = [json.dumps({"id": "s", **body}).encode() for body in every_command(spectator)]
    messages: list[tuple[str, bytes]] = [(Topic.COMMAND, command) for command in commands]
    state = {"state": "closed", "reason": "left", "paused": False}
    messages += [
        (Topic.STATUS, json.dumps({"type": "state", **state}).encode()),
        (ALIVE, b"alive?"),
        ("veldt.other", b"\0"),
        ("", commands[0]),
    ]
    me = spectator.room.local_participant
    for topic, payload in messages:
        for to in ([], [WORKER]):
            with suppress(LiveKitPlayer.Unreachable):
                await me.publish_data(payload, topic=topic, destination_identities=to)
    await spectator.keys("KeyW", presses={"KeyW": 9})


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

    before = told(player)
    for _ in range(3):
        await say_everything(spectator)
    await player.keys("KeyD")  # the player is heard, after all that
    await player.until(lambda: held(player) == {"KeyD"})
    await player.keys()

    def released() -> Marker | None:
        seen = marker(player)
        return seen if seen is not None and seen.seq == player.seq else None

    await player.until(lambda: released() is not None)
    seen = released()
    assert seen is not None
    assert (seen.presses, seen.held) == (0, frozenset())
    assert spectator.of("ack") == spectator.of("hello") == []
    assert told(player) == before, "somebody else moved the session"
    assert {chunk["epoch"] for chunk in player.of("chunk")} == {0}
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

    await until(granted, 20)
    await spectator.hello()
    await spectator.keys("KeyW")
    await player.until(lambda: held(player) == {"KeyW"})
    await player.keys("KeyA")
    seen = len(player.frames)
    await player.until(lambda: len(player.frames) > seen + 8)
    assert "KeyA" not in held(player), "two players at once"
    await player.command(type="grant", to=player.who)
    await player.until(lambda: len(player.of("hello")) > 1)
    await player.hello()
    await player.keys("KeyD")
    await player.until(lambda: held(player) == {"KeyD"})
    await spectator.aclose()


async def test_spectators_come_and_go_and_leave_nothing(
    make_server: Callable[..., ServerProcess],
    make_players: Callable[[ServerProcess], Players],
    livekit_server: LiveKitServer,
) -> None:
    """Two dozen of them, half without a goodbye; the session is as it was before."""
    server = make_server(veldt_world="marker")
    players = make_players(server)
    session = await players.playing()
    player, ticket = session.player, await link(session, players.http)
    [room] = [name for name in await livekit_server.rooms() if session.id in name]

    async def come_and_go(number: int) -> None:
        spectator = await watch(session, players.http, ticket)
        await spectator.until(lambda: len(spectator.frames) > 2)
        if number % 2:
            await spectator.command(type="stop")
            await livekit_server.remove(room, spectator.who)
        await spectator.aclose()

    async def alone() -> bool:
        return (await livekit_server.rooms())[room] == [player.who, WORKER]

    for number in range(WARM):
        await come_and_go(number)
    await until(alone, 30)
    early, before = Held.by(server), told(player)
    for _ in range(SPECTATORS // 4):
        await asyncio.gather(*(come_and_go(number) for number in range(4)))
    await until(alone, 30)
    await settled(server, early)
    late = Held.by(server)
    print("after", WARM, asdict(early), "after", WARM + SPECTATORS, asdict(late))
    late.assert_no_more_than(early)
    assert told(player) == before
    await player.keys("KeyW")
    await player.until(lambda: held(player) == {"KeyW"})
    seen = len(player.frames)
    await player.until(lambda: len(player.frames) > seen + 10)
    assert await session.leave() in (202, 204)


async def test_direct_webrtc_says_that_nobody_can_watch(tmp_path) -> None:
    server = ServerProcess(tmp_path / "server.log", veldt_world="marker").start()
    try:
        created = server.post("/v1/sessions", {}).json()
        bearer = {"Authorization": f"Bearer {created['session_token']}"}
        answer = server.post(f"/v1/sessions/{created['session_id']}/tokens", {}, **bearer)
        assert (answer.status_code, answer.json()["code"]) == (409, "no_spectators")
    finally:
        server.stop()
