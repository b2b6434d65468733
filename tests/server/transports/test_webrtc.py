from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
import pytest

from server.protocol.status import Ack, Error
from server.transports.base import (
    BadOffer,
    ConnectOffer,
    Identity,
    LeaveReason,
    NoMediaAddress,
    PlayingElsewhere,
    Topic,
    TransportClosed,
)
from server.transports.impairment import Fate, Impairment
from server.transports.settings import TransportSettings
from tests.fakes.frames import i420_frame
from tests.fakes.rtc_client import Candidates, RtcPlayer
from tests.server.transports.conftest import Stage, opened_sockets

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_task_left")]


async def test_pictures_arrive_with_the_receipts_they_were_sent_with(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    assert stage.sink.events == [("joined", "player-1")]
    grey: dict[int, int] = {}
    for number in range(1, 33):
        grey[number] = 40 + 5 * number
        frame = i420_frame(number, receipt=9 << 32 | number, luma=grey[number])
        assert stage.transport.send_frame(frame)
        await asyncio.sleep(1 / 32)
        # A picture that is still to be encoded when the next one comes would be left out.
        await player.until(lambda n=number: n in player.clock.told_frames[-1:])
    await player.frame(lambda frame: frame.frame_id == 31)
    known = [frame for frame in player.frames if frame.frame_id is not None]
    assert len(known) >= 28
    for frame in known:
        assert frame.receipt == 9 << 32 | (frame.frame_id or 0)
        shown = float(np.mean(frame.rgb))
        sent = (grey[frame.frame_id or 0] - 16) * 255 / 219  # studio range
        assert abs(shown - sent) < 3, (frame.frame_id, shown, sent)
    await player.aclose()


async def test_messages_go_both_ways_on_their_topics(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    player.command({"type": "hello", "id": "h", "nonce": 5, "version": 1})
    seq = player.keys("KeyW")
    await stage.sink.until(lambda s: len(s.payloads(Topic.KEYS)) >= 4)  # it repeats itself
    assert len(stage.sink.payloads(Topic.COMMAND)) == 1
    assert all(b'"seq":%d' % seq in payload for payload in stage.sink.payloads(Topic.KEYS))
    assert stage.transport.send_message(Ack(id="h", epoch=3))
    assert not stage.transport.send_message(Ack(id="h", epoch=4), to=Identity("player-9"))
    assert stage.transport.send_message(Ack(id="h", epoch=5), to=Identity("player-1"))
    await player.until(lambda: len(player.statuses) == 2)
    assert [message.epoch for message in player.statuses if isinstance(message, Ack)] == [3, 5]
    await player.aclose()


async def test_goodbye_is_heard_at_once_and_the_player_can_return(stage: Stage) -> None:
    stage.play()
    for number in range(1, 4):
        player = RtcPlayer()
        await player.connect(stage.connect())
        await player.until(lambda player=player: bool(player.frames))
        await player.aclose()
        await stage.sink.until(lambda s, n=number: len(s.kinds()) == 2 * n)
    assert stage.sink.kinds() == [
        event
        for n in range(1, 4)
        for event in (("joined", f"player-{n}"), ("left", f"player-{n}", LeaveReason.CLOSED))
    ]


async def test_channel_that_closes_is_a_goodbye(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    player.channels[Topic.COMMAND].close()
    await stage.sink.until(lambda s: len(s.kinds()) == 2)
    assert stage.sink.kinds()[-1] == ("left", "player-1", LeaveReason.CLOSED)
    await player.aclose()


async def test_lone_picture_is_sent_with_its_receipt(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    stage.transport.send_frame(i420_frame(7, receipt=70))
    await player.until(lambda: player.clock.told_frames == [7])
    stage.transport.send_frame(i420_frame(8))  # aiortc shows a picture when the next one comes
    await player.until(lambda: bool(player.frames))
    await player.aclose()


async def test_connection_overtaken_while_answering_is_told_by_the_call_alone(
    stage: Stage,
) -> None:
    player = RtcPlayer()
    offer = ConnectOffer(await player.offer())
    calls = [asyncio.create_task(stage.transport.connect(offer)) for _ in range(5)]
    await asyncio.wait(calls)
    faults = [call.exception() for call in calls]
    assert [isinstance(fault, TransportClosed) for fault in faults] == [True] * 2 + [False] * 3
    assert faults[2:] == [None] * 3
    assert stage.sink.events == []
    await player.aclose()


async def test_second_tab_is_refused_and_takes_over_only_once_up(stage: Stage) -> None:
    stage.play()
    first, second = RtcPlayer(), RtcPlayer()
    await first.connect(stage.connect())
    with pytest.raises(PlayingElsewhere):
        await second.connect(stage.connect())
    answer = await stage.connect(take_over=True)(second.pc.localDescription.sdp)
    shown = len(first.frames)
    await first.until(lambda: len(first.frames) > shown + 8)  # it plays on
    await second.apply(answer)
    await second.until(lambda: bool(second.frames))
    await first.until(lambda: first.closed)
    assert [(m.code, m.id) for m in first.statuses if isinstance(m, Error)] == [
        ("playing_elsewhere", None)
    ]
    assert stage.sink.kinds() == [
        ("joined", "player-1"),
        ("left", "player-1", LeaveReason.REPLACED),
        ("joined", "player-2"),
    ]
    first.keys("KeyW")
    second.keys("KeyS")
    await stage.sink.until(lambda s: bool(s.payloads(Topic.KEYS)))
    assert {event[1] for event in stage.sink.events if event[0] == "received"} == {"player-2"}
    await asyncio.gather(first.aclose(), second.aclose())


async def test_silent_player_gives_way_without_take_over(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(lost_seconds=60)
    first, second = RtcPlayer(), RtcPlayer()
    await first.connect(stage.connect())
    first.freeze()
    async with asyncio.timeout(30):
        while True:
            try:
                await second.connect(stage.connect())
                break
            except PlayingElsewhere:
                await asyncio.sleep(0.25)  # as the page does after a reload
                second = RtcPlayer()
    assert stage.sink.kinds()[-2:] == [
        ("left", "player-1", LeaveReason.REPLACED),
        ("joined", "player-2"),
    ]
    await asyncio.gather(first.aclose(), second.aclose())


@pytest.mark.parametrize("how", ["freeze", "vanish"])
async def test_dead_player_is_found(make_stage: Callable[..., Stage], how: str) -> None:
    stage = make_stage(lost_seconds=2)
    stage.play()
    player = RtcPlayer()
    await player.connect(stage.connect())
    await player.until(lambda: bool(player.frames))
    if how == "freeze":
        player.freeze()
    else:
        await player.vanish()
    await stage.sink.until(lambda s: len(s.kinds()) == 2, seconds=20)
    assert stage.sink.kinds()[-1] == ("left", "player-1", LeaveReason.LOST)
    assert not stage.transport.send_frame(i420_frame(1))
    await player.aclose()


async def test_quiet_player_is_not_taken_for_dead(make_stage: Callable[..., Stage]) -> None:
    """No frames, no keys, no reports: the checks of ICE alone tell that it lives."""
    stage = make_stage(lost_seconds=6.5)  # aioice checks every 4 to 6 s, Chromium every 2.5 s
    player = RtcPlayer()
    await player.connect(stage.connect())
    player.mute()
    await asyncio.sleep(8.5)
    assert stage.sink.kinds() == [("joined", "player-1")]
    await player.aclose()


async def test_worker_that_was_stopped_itself_keeps_its_players(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(lost_seconds=2)
    player = RtcPlayer()
    await player.connect(stage.connect())
    time.sleep(3.5)  # noqa: ASYNC251 - as after SIGSTOP and SIGCONT
    player.keys("KeyW")
    await stage.sink.until(lambda s: bool(s.payloads(Topic.KEYS)))
    await asyncio.sleep(1.5)
    assert stage.sink.kinds() == [("joined", "player-1")]
    await player.aclose()


@pytest.mark.parametrize("end_of_candidates", [True, False])
@pytest.mark.parametrize("candidates", ["mdns", "none", "dead"])
async def test_hidden_or_wrong_candidates_connect_at_once(
    stage: Stage, candidates: Candidates, end_of_candidates: bool
) -> None:
    stage.play()
    player = RtcPlayer(candidates=candidates, end_of_candidates=end_of_candidates)
    async with asyncio.timeout(15):  # where it fails it hangs
        await player.connect(stage.connect())
        await player.until(lambda: bool(player.frames))
    await player.aclose()


async def test_player_that_never_answers_fails_once_by_the_limit(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(connect_seconds=0.3)
    silent = RtcPlayer()
    await stage.connect()(await silent.offer())
    await stage.sink.until(lambda s: bool(s.events))
    stage.transport._settings = TransportSettings()  # whoever comes now is given time
    player = RtcPlayer()
    await player.connect(stage.connect())
    assert stage.sink.events == [
        ("left", "player-1", LeaveReason.FAILED),
        ("joined", "player-2"),
    ]
    await asyncio.gather(silent.aclose(), player.aclose())


async def test_loopback_bind_opens_no_socket_elsewhere(stage: Stage) -> None:
    before = opened_sockets()
    player = RtcPlayer(candidates="mdns")
    answers: list[str] = []

    async def answer(sdp: str) -> str:
        answers.append(await stage.connect()(sdp))
        return answers[0]

    await player.connect(answer)
    assert {address for address, _ in opened_sockets() - before} == {"127.0.0.1"}
    offered = [line.split() for line in answers[0].splitlines() if line.startswith("a=candidate")]
    assert {fields[4] for fields in offered} == {"127.0.0.1"}
    await player.aclose()


async def test_address_that_cannot_be_bound_is_named(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(bind_host="192.0.2.77")  # TEST-NET-1, on no machine
    player = RtcPlayer()
    with pytest.raises(NoMediaAddress, match=r"192\.0\.2\.77"):
        await player.connect(stage.connect())
    assert stage.sink.events == []
    await player.aclose()


async def test_offers_of_other_clients_are_refused_and_a_good_one_still_plays(
    stage: Stage,
) -> None:
    player = RtcPlayer()
    good = await player.offer()
    mid = "a=fingerprint:sha-256 "
    fine_but_odd = {
        good.replace(mid, "a=fingerprint:sha-256 zz", 1).replace("a=ice-pwd:", "a=ice-pwd:/"),
    }
    bad = [
        None,
        "",
        "v=0\r\n",
        good.replace("a=recvonly", "a=sendonly"),
        good.replace("a=setup:actpass", "a=setup:active"),
        good + good[good.index("m=video") : good.index("m=application")],
        good[: good.index("m=application")],
        good + "a=x:" + "y" * 1_000_000,
        good.replace("UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVPF x"),
        good.replace("a=rtpmap:", "a=rtpmap:x"),
        good.replace("a=sctp-port:5000", "a=sctp-port:many"),
        good.replace("a=group:BUNDLE 0 1", "a=group:BUNDLE 1 2"),
        good.replace("m=video 9", "m=video nine").replace("m=video ", "m=video x"),
    ]
    for sdp in bad:
        with pytest.raises(BadOffer):
            await stage.transport.connect(ConnectOffer(sdp))
    for sdp in fine_but_odd:  # it cannot come up, which the connect limit says
        await stage.transport.connect(ConnectOffer(sdp))
    await player.connect(stage.connect())
    assert ("left", "player-1", LeaveReason.FAILED) not in stage.sink.events
    assert stage.sink.events[-1][0] == "joined"
    await player.aclose()


@pytest.mark.parametrize("line", ["", "a=recvonly", "a=sendrecv"])
async def test_offer_without_a_direction_of_its_own_is_served(stage: Stage, line: str) -> None:
    stage.play()
    player = RtcPlayer()

    async def answer(sdp: str) -> str:
        assert sdp.count("a=recvonly\r\n") == 1
        session, video = sdp.replace("a=recvonly\r\n", "").split("m=video", 1)
        return await stage.connect()(session + (f"{line}\r\n" if line else "") + "m=video" + video)

    await player.connect(answer)
    await player.until(lambda: bool(player.frames))
    await player.aclose()


async def test_keys_are_impaired_and_commands_are_not(make_stage: Callable[..., Stage]) -> None:
    script = (Fate.DELAY, Fate.DUPLICATE, Fate.LOSE)
    stage = make_stage(impair=Impairment(script=script))
    player = RtcPlayer()
    await player.connect(stage.connect())
    for number in range(4):
        player.send(Topic.COMMAND, f"c{number}")
        player.send(Topic.KEYS, f"{number}")
        await stage.sink.until(lambda s, n=number: len(s.payloads(Topic.COMMAND)) == n + 1)
    await stage.sink.until(lambda s: len(s.payloads(Topic.KEYS)) == 4)
    assert stage.sink.payloads(Topic.KEYS) == [b"1", b"1", b"0", b"3"]
    await player.aclose()


async def test_flood_is_dropped_told_and_survived(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    player.send(Topic.KEYS, b"x" * 9000)
    for _ in range(40):
        for _ in range(75):
            player.send(Topic.KEYS, b"x")
        await asyncio.sleep(0.01)
    await player.until(
        lambda: (
            {m.code for m in player.statuses if isinstance(m, Error)}
            >= {"message_too_large", "too_many_messages"}
        )
    )
    player.send(Topic.COMMAND, b"still here")
    await stage.sink.until(lambda s: b"still here" in s.payloads(Topic.COMMAND))
    assert len(stage.sink.payloads(Topic.KEYS)) < 2000
    assert all(len(payload) <= 8192 for payload in stage.sink.payloads())
    assert stage.sink.kinds() == [("joined", "player-1")]
    await player.aclose()


async def test_bytes_that_are_no_text_cost_one_message(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    channel = player.channels[Topic.COMMAND]
    sctp = channel.transport
    sctp._data_channel_queue.append((channel, 51, b"\xff\xfe"))  # a string that is no UTF-8
    await sctp._data_channel_flush()
    player.send(Topic.COMMAND, "good")
    await stage.sink.until(lambda s: s.payloads() == [b"good"])
    assert stage.transport.counters["bad_datagram"] == 1
    await player.aclose()


async def test_unknown_and_doubled_channels_are_closed(stage: Stage) -> None:
    player = RtcPlayer()
    await player.connect(stage.connect())
    odd = [player.pc.createDataChannel(label) for label in ("chat", Topic.KEYS)]
    await stage.sink.until(lambda s: bool(s.events))
    closed = asyncio.Event()
    for channel in odd:
        channel.on("close", closed.set)
    await asyncio.wait_for(closed.wait(), 15)
    assert stage.sink.kinds() == [("joined", "player-1")]
    player.keys("KeyW")
    await stage.sink.until(lambda s: bool(s.payloads(Topic.KEYS)))
    await player.aclose()


async def test_lost_media_comes_back(stage: Stage) -> None:
    """A second without any datagram: retransmission and key frames bring the picture back."""
    stage.play()
    player = RtcPlayer()
    await player.connect(stage.connect())
    await player.until(lambda: len(player.frames) > 10)
    player.lose(everything=True)
    await asyncio.sleep(1)
    player.lose(everything=False)
    shown = len(player.frames)
    await player.until(lambda: len(player.frames) > shown + 20)
    await player.aclose()


async def test_player_that_does_not_read_is_given_up_with_bounded_memory(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(lost_seconds=60)
    player = RtcPlayer()
    await player.connect(stage.connect())
    player.freeze()
    message = Error(code="x", message="y" * 1000)
    taken = sum(stage.transport.send_message(message) for _ in range(1000))
    assert 50 < taken < 80  # 64 KiB
    assert stage.sink.kinds()[-1] == ("left", "player-1", LeaveReason.LOST)
    await player.aclose()


async def test_frozen_player_costs_others_nothing(make_stage: Callable[..., Stage]) -> None:
    frozen_stage, stage = make_stage(lost_seconds=60), make_stage()
    frozen, player = RtcPlayer(), RtcPlayer()
    await frozen.connect(frozen_stage.connect())
    await player.connect(stage.connect())
    frozen.freeze()
    frozen_stage.play()
    stage.play()
    await player.until(lambda: len(player.frames) > 64)
    await asyncio.gather(frozen.aclose(), player.aclose())


async def test_sink_is_silent_once_closed(stage: Stage) -> None:
    stage.play()
    player = RtcPlayer()
    await player.connect(stage.connect())
    player.keys("KeyW")
    await stage.sink.until(lambda s: bool(s.payloads()))
    for _ in range(15):  # more than is sent at once
        assert stage.transport.send_message(Error(code="x", message="y" * 3000))
    assert stage.transport.send_message(Ack(id="last", epoch=1))
    await stage.transport.aclose()
    heard = len(stage.sink.events)
    await stage.transport.aclose()
    await player.until(lambda: player.closed)
    assert player.statuses[-1] == Ack(id="last", epoch=1)  # what was said before has arrived
    assert len(stage.sink.events) == heard
    with pytest.raises(TransportClosed):
        await stage.transport.connect(ConnectOffer(await RtcPlayer().offer()))
    await player.aclose()
