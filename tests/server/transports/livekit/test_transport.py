from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import psutil
import pytest

from server.protocol.rooms import WORKER, room_name
from server.protocol.status import Ack
from server.transports.base import (
    Identity,
    LeaveReason,
    MediaServerUnreachable,
    PlayingElsewhere,
    Topic,
    TransportClosed,
)
from server.transports.livekit.service import RoomService
from server.transports.livekit.tokens import Role, mint
from tests.fakes.frames import i420_frame
from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.waiting import MARGIN_SECONDS, until
from tests.livekit_server import LiveKitServer

from .conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]
MakeStage = Callable[..., Stage]


async def test_a_player_sees_each_frame_with_its_receipt_and_id(stage: Stage) -> None:
    player = await stage.player()
    stage.play()
    await player.until(lambda: len(player.frames) >= 40)
    assert all(frame.receipt == 7 << 32 | frame.frame_id for frame in player.frames[1:])
    ids = [frame.frame_id for frame in player.frames]
    assert ids == sorted(ids)
    assert len(set(ids)) > 30


async def test_the_first_picture_is_there_for_whoever_comes_while_it_stands(stage: Stage) -> None:
    first = await stage.player()
    stage.transport.send_frame(i420_frame(1, receipt=9))
    await first.until(lambda: bool(first.frames))
    later = await stage.player(take_over=True)  # nothing was sent meanwhile
    await later.until(lambda: any(frame.receipt == 9 for frame in later.frames))


async def test_messages_go_both_ways_under_their_topics(stage: Stage) -> None:
    player = await stage.player()
    await player.send(Topic.COMMAND, b"one")
    await player.send(Topic.KEYS, b"two", reliable=False)
    await player.send("veldt.other", b"three")
    await stage.sink.until(lambda sink: sorted(sink.payloads()) == [b"one", b"two"])
    assert stage.transport.send_message(Ack(id="a", epoch=1))
    assert stage.transport.send_message(Ack(id="b", epoch=2), Identity(player.who))
    assert not stage.transport.send_message(Ack(id="c", epoch=3), Identity("somebody"))
    await player.until(lambda: len(player.of("ack")) == 2)
    assert [ack["id"] for ack in player.of("ack")] == ["a", "b"]
    await player.until(lambda: any(e["code"] == "unknown_topic" for e in player.of("error")))


async def test_whoever_is_not_expected_is_counted_and_ignored(stage: Stage) -> None:
    player = await stage.player()
    stranger = LiveKitPlayer()
    room = room_name(stage.address.room_prefix, stage.session)
    token = mint(stage.address, Role.PLAYER, room, "player-99")
    await stranger.join({"url": stage.address.url, "token": token})
    for _ in range(5):
        await stranger.send(Topic.COMMAND, b"stop")
        await stranger.send(Topic.KEYS, b"keys", reliable=False)
    await player.send(Topic.COMMAND, b"last")
    await stage.sink.until(lambda sink: b"last" in sink.payloads())
    assert stage.sink.payloads() == [b"last"]
    await until(lambda: stage.transport.counters["unknown_sender"] >= 5)
    assert stage.sink.payloads() == [b"last"]
    assert [event for event in stage.sink.kinds() if event[1] == "player-99"] == []
    await stranger.aclose()


async def test_a_live_player_keeps_its_place_until_a_newer_one_is_up(stage: Stage) -> None:
    old = await stage.player()
    with pytest.raises(PlayingElsewhere):
        await stage.connect()
    answer = await stage.connect(take_over=True)
    assert ("left", old.who, LeaveReason.REPLACED) not in stage.sink.kinds()
    new = LiveKitPlayer()
    stage.players.append(new)
    await new.join(answer.details)
    await stage.sink.until(lambda sink: ("joined", new.who) in sink.kinds())
    kinds = stage.sink.kinds()
    assert kinds == [
        ("joined", old.who),
        ("left", old.who, LeaveReason.REPLACED),
        ("joined", new.who),
    ]
    await old.until(lambda: old.gone is not None)
    assert [error["code"] for error in old.of("error")] == ["playing_elsewhere"]
    assert old.gone == "PARTICIPANT_REMOVED"


async def test_a_goodbye_is_told_and_lets_the_next_one_in(stage: Stage) -> None:
    player = await stage.player()
    await player.aclose()
    async with asyncio.timeout(15):
        while True:
            try:
                again = await stage.player()  # nothing is waited for but LiveKit's own word
                break
            except PlayingElsewhere:
                await asyncio.sleep(0.05)  # as the page does, where LiveKit is slow to hear it
    assert ("left", player.who, LeaveReason.CLOSED) in stage.sink.kinds()
    assert again.who != player.who


async def test_a_silent_player_is_found_within_ten_seconds(make_stage: MakeStage) -> None:
    stage = make_stage()
    loop = asyncio.get_running_loop()
    began = loop.time()
    player = await stage.player(answers=False)
    there = loop.time()
    await stage.sink.until(lambda sink: ("left", player.who, LeaveReason.LOST) in sink.kinds(), 20)
    assert loop.time() - began > 7
    assert loop.time() - there < 10 + MARGIN_SECONDS
    await player.until(lambda: player.gone is not None)  # it is told, so that it comes again


async def test_a_player_that_answers_is_never_lost(make_stage: MakeStage) -> None:
    stage = make_stage(lost_seconds=4)
    await stage.player()
    await asyncio.sleep(7)
    assert [event[0] for event in stage.sink.kinds()] == ["joined"]


async def test_a_token_that_is_never_used_ends_in_words(make_stage: MakeStage) -> None:
    stage = make_stage(connect_seconds=1)
    await stage.connect()
    await stage.sink.until(lambda sink: sink.kinds() == [("left", "player-1", LeaveReason.FAILED)])


async def test_a_room_is_made_for_games_and_deleted_with_the_session(
    stage: Stage, livekit: LiveKitServer
) -> None:
    room = room_name(stage.address.room_prefix, stage.session)
    player = await stage.player()
    assert (await livekit.rooms())[room] == [player.who, WORKER]
    await stage.transport.aclose()
    await stage.transport.aclose()
    assert room not in await livekit.rooms()
    await player.until(lambda: player.gone is not None)
    with pytest.raises(TransportClosed):
        await stage.connect()


async def test_connecting_while_closing_leaves_no_room(
    stage: Stage, livekit: LiveKitServer
) -> None:
    connecting = asyncio.create_task(stage.connect())
    await asyncio.sleep(0)
    await stage.transport.aclose()
    with pytest.raises((TransportClosed, MediaServerUnreachable)):
        await connecting
    assert room_name(stage.address.room_prefix, stage.session) not in await livekit.rooms()
    assert stage.sink.events == []


async def test_a_server_that_is_not_there_is_named(make_stage: MakeStage, tmp_path) -> None:
    stage = make_stage(LiveKitServer(tmp_path))
    with pytest.raises(MediaServerUnreachable, match="does not answer"):
        await stage.connect()
    assert stage.sink.events == []


async def test_a_wrong_secret_is_refused_in_words(
    make_stage: MakeStage, livekit: LiveKitServer, tmp_path
) -> None:
    other = LiveKitServer(tmp_path)
    other.url = livekit.url
    with pytest.raises(MediaServerUnreachable, match="refuses"):
        await make_stage(other).connect()


async def test_a_deleted_room_is_made_again_and_plays(stage: Stage) -> None:
    player = await stage.player()
    async with RoomService(stage.address) as service:
        await service.delete(room_name(stage.address.room_prefix, stage.session))
    await stage.sink.until(lambda sink: ("left", player.who, LeaveReason.LOST) in sink.kinds())
    again = await stage.player()
    stage.play()
    await again.until(lambda: len(again.frames) > 5)


async def test_sessions_leave_no_task_thread_or_descriptor(make_stage: MakeStage) -> None:
    process = psutil.Process()

    async def one() -> None:
        stage = make_stage()
        await stage.connect()
        stage.play()
        await asyncio.sleep(0.2)
        await stage.aclose()

    for _ in range(3):
        await one()
    tasks, threads, files = len(asyncio.all_tasks()), process.num_threads(), process.num_fds()
    for _ in range(10):
        await one()

    def as_before() -> bool:  # libwebrtc ends its threads in its own time
        gc.collect()
        quiet = process.num_threads() <= threads + 2 and process.num_fds() <= files + 3
        return quiet and len(asyncio.all_tasks()) <= tasks

    await until(as_before, 20)
