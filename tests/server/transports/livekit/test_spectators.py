"""Spectators see and hear everything, and nothing they do counts until they are granted."""

from __future__ import annotations

import asyncio

import pytest

from server.protocol.status import Ack
from server.transports.base import Identity, LeaveReason, Topic
from server.transports.livekit.transport import STILL_SECONDS, WATCH_SECONDS
from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.waiting import MARGIN_SECONDS, until

from .conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


async def spectator(stage: Stage) -> LiveKitPlayer:
    answer = await stage.transport.invite()
    watching = LiveKitPlayer()
    stage.players.append(watching)
    await watching.join(answer.details)
    return watching


async def present(stage: Stage, watching: LiveKitPlayer) -> None:
    """Until the worker knows that somebody watches."""
    await until(lambda: watching.who in stage.transport._audience.present, 10)


async def try_everything(watching: LiveKitPlayer) -> None:
    """Send on every topic, or be told that it may not."""
    for topic in (Topic.COMMAND, Topic.KEYS, Topic.STATUS, "veldt.alive"):
        try:
            await watching.send(topic, b"spectator", reliable=topic is Topic.COMMAND)
        except watching.Unreachable:
            continue


async def test_a_spectator_sees_and_hears_and_is_never_heard(stage: Stage) -> None:
    player = await stage.player()
    stage.play()
    watching = await spectator(stage)
    await watching.until(lambda: len(watching.frames) > 10)
    stage.transport.send_message(Ack(id="all", epoch=0))
    await watching.until(lambda: bool(watching.of("ack")))
    for _ in range(5):
        await try_everything(watching)
        await asyncio.sleep(0.1)
    await player.send(Topic.COMMAND, b"player")
    await stage.sink.until(lambda sink: b"player" in sink.payloads())
    assert stage.sink.payloads() == [b"player"]
    assert stage.sink.kinds() == [("joined", player.who)]


async def test_spectators_come_and_go_and_the_player_plays_on(stage: Stage) -> None:
    player = await stage.player()
    stage.play()
    for _ in range(4):
        watching = await spectator(stage)
        await watching.until(lambda watching=watching: bool(watching.frames))
        await watching.aclose()
    seen = len(player.frames)
    await player.until(lambda: len(player.frames) > seen + 10)
    assert stage.sink.kinds() == [("joined", player.who)]


async def test_a_spectator_of_a_picture_that_stands_sees_it_within_two_seconds(
    stage: Stage,
) -> None:
    await stage.player()
    stage.play()
    await asyncio.sleep(1)
    stage.stop()  # nothing is sent from here on
    await asyncio.sleep(2)
    watching = await spectator(stage)
    await watching.until(lambda: bool(watching.frames), 2 + MARGIN_SECONDS)
    assert WATCH_SECONDS + STILL_SECONDS < 2, "it is sent again as often as that"


async def test_the_controls_are_given_and_taken_back(stage: Stage) -> None:
    player = await stage.player()
    watching = await spectator(stage)
    await present(stage, watching)
    transport, who, to = stage.transport, Identity(player.who), Identity(watching.who)
    assert not transport.hand_over(to, to), "a spectator has nothing to give"
    assert not transport.hand_over(who, Identity("spectator-nobody"))
    assert transport.hand_over(who, to)
    await stage.sink.until(lambda sink: sink.kinds()[-1] == ("joined", to))
    await watching.send(Topic.KEYS, b"mine")
    await stage.sink.until(lambda sink: ("received", to, Topic.KEYS, b"mine") in sink.events)
    assert transport.send_message(Ack(id="to", epoch=0), to)
    assert not transport.hand_over(to, to), "what was given cannot be given on"
    assert transport.hand_over(who, who)
    assert stage.sink.kinds()[-2:] == [("left", to, LeaveReason.REPLACED), ("joined", who)]
    before = len(stage.sink.payloads())
    for _ in range(5):
        await try_everything(watching)
        await asyncio.sleep(0.1)
    assert len(stage.sink.payloads()) == before


async def test_controls_that_were_taken_back_are_not_given_after_all(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = await stage.player()
    watching = await spectator(stage)
    await present(stage, watching)
    transport, who, to = stage.transport, Identity(player.who), Identity(watching.who)
    let_speak, asked, go = transport._stay.let_speak, [], asyncio.Event()

    async def slow(whom: Identity, *, may: bool) -> None:
        asked.append(may)
        await go.wait()
        await let_speak(whom, may=may)
        asked.remove(may)

    monkeypatch.setattr(transport._stay, "let_speak", slow)
    assert transport.hand_over(who, to)
    assert transport.hand_over(who, to)
    await until(lambda: asked == [True, True])
    assert transport.hand_over(who, who)
    go.set()
    await until(lambda: not asked)
    assert stage.sink.kinds() == [("joined", who)]
    go.clear()
    assert transport.hand_over(who, to)
    assert transport.hand_over(who, to)
    await until(lambda: asked == [True, True])
    go.set()
    await until(lambda: not asked)
    assert stage.sink.kinds() == [("joined", who), ("joined", to)], "twice is once"


async def test_a_granted_spectator_that_leaves_gives_the_controls_back(stage: Stage) -> None:
    player = await stage.player()
    watching = await spectator(stage)
    await present(stage, watching)
    assert stage.transport.hand_over(Identity(player.who), Identity(watching.who))
    await stage.sink.until(lambda sink: sink.kinds()[-1] == ("joined", watching.who))
    await watching.aclose()
    await stage.sink.until(lambda sink: sink.kinds()[-1] == ("joined", player.who))


async def test_a_reload_of_the_player_takes_the_controls_back(stage: Stage) -> None:
    player = await stage.player()
    watching = await spectator(stage)
    await present(stage, watching)
    assert stage.transport.hand_over(Identity(player.who), Identity(watching.who))
    await stage.sink.until(lambda sink: sink.kinds()[-1] == ("joined", watching.who))
    again = await stage.player(take_over=True)
    assert stage.sink.kinds()[-1] == ("joined", again.who)
    assert ("left", watching.who, LeaveReason.REPLACED) in stage.sink.kinds()
