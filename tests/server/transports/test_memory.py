from __future__ import annotations

import pytest

from server.protocol.status import Ack, Error
from server.transports.base import (
    ConnectOffer,
    Identity,
    LeaveReason,
    MediaTransport,
    PlayingElsewhere,
    Topic,
    TransportClosed,
)
from server.transports.factory import make_transport
from server.transports.impairment import Fate, Impairment
from server.transports.memory import MemoryPlayer, MemoryTransport
from server.transports.settings import TransportSettings
from tests.fakes.frames import i420_frame
from tests.fakes.sink import FakeSink

pytestmark = pytest.mark.anyio


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_player_joins_plays_and_leaves() -> None:
    sink = FakeSink()
    transport = make_transport("memory", "s", sink, TransportSettings())
    assert not transport.send_frame(i420_frame(1))  # nobody is there
    player = MemoryPlayer(nonce=7)
    player.join(await transport.connect(ConnectOffer()))
    command = player.hello()
    seq = player.keys("KeyW", copies=3)
    assert transport.send_frame(i420_frame(2, receipt=7 << 32 | seq))
    assert transport.send_message(Ack(id=command, epoch=0))
    assert not transport.send_message(Ack(id=command, epoch=0), to=Identity("somebody else"))
    assert (await player.next_frame()).receipt == 7 << 32 | seq
    assert await player.next_message("ack") == Ack(id=command, epoch=0)
    player.leave()
    with pytest.raises(ConnectionError):
        player.keys("KeyW")
    assert sink.kinds() == [("joined", player.who), ("left", player.who, LeaveReason.CLOSED)]
    assert len(sink.payloads(Topic.KEYS)) == 3
    await transport.aclose()


async def test_second_tab_is_refused_until_it_takes_over() -> None:
    sink = FakeSink()
    transport = MemoryTransport("s", sink)
    first, second = MemoryPlayer(nonce=1), MemoryPlayer(nonce=2)
    await first.connect(transport)
    with pytest.raises(PlayingElsewhere):
        await second.connect(transport)
    answer = await transport.connect(ConnectOffer(take_over=True))
    assert first.closed is None  # only once the newer one is up
    second.join(answer)
    assert first.closed is LeaveReason.REPLACED
    last = first.messages[-1]
    assert isinstance(last, Error)
    assert last.code == "playing_elsewhere"
    assert sink.kinds() == [
        ("joined", first.who),
        ("left", first.who, LeaveReason.REPLACED),
        ("joined", second.who),
    ]
    assert transport.send_frame(i420_frame(1))
    assert not first.frames
    await transport.aclose()


async def test_silent_connection_gives_way_without_take_over() -> None:
    clock, sink = Clock(), FakeSink()
    transport = MemoryTransport("s", sink, clock=clock)
    first, second = MemoryPlayer(), MemoryPlayer()
    await first.connect(transport)
    clock.now += 3.1
    await second.connect(transport)
    assert first.closed is LeaveReason.REPLACED
    await transport.aclose()


async def test_connection_that_never_comes_up_fails_once() -> None:
    sink = FakeSink()
    transport = MemoryTransport("s", sink, TransportSettings(connect_seconds=0.01))
    answer = await transport.connect(ConnectOffer())
    await sink.until(lambda s: len(s.events) == 1)
    assert sink.events == [("left", "player-1", LeaveReason.FAILED)]
    with pytest.raises(ConnectionError):
        MemoryPlayer().join(answer)
    await MemoryPlayer().connect(transport)  # the session can still be played
    await transport.aclose()


async def test_sink_is_silent_once_closed() -> None:
    sink = FakeSink()
    transport = MemoryTransport("s", sink)
    player = MemoryPlayer()
    await player.connect(transport)
    await transport.aclose()
    await transport.aclose()
    assert player.closed is LeaveReason.CLOSED
    assert sink.kinds() == [("joined", player.who)]
    with pytest.raises(TransportClosed):
        await transport.connect(ConnectOffer())
    assert not transport.send_message(Ack(id="x", epoch=0))


async def test_player_that_does_not_read_costs_a_dropped_frame() -> None:
    transport = MemoryTransport("s", FakeSink())
    player = MemoryPlayer()
    await player.connect(transport)
    player.reads = False
    assert not transport.send_frame(i420_frame(1))
    assert transport.frames_dropped == 1
    await transport.aclose()


async def test_keys_are_lost_doubled_and_reordered_by_the_script() -> None:
    sink = FakeSink()
    script = (Fate.DELAY, Fate.DUPLICATE, Fate.LOSE, Fate.DELIVER)
    transport = MemoryTransport("s", sink, TransportSettings(impair=Impairment(script=script)))
    player = MemoryPlayer()
    await player.connect(transport)
    for number in range(4):
        player.send(Topic.KEYS, b"%d" % number)
        player.send(Topic.COMMAND, b"c")  # commands are reliable
    assert sink.payloads(Topic.KEYS) == [b"1", b"1", b"0", b"3"]
    assert len(sink.payloads(Topic.COMMAND)) == 4
    await transport.aclose()


async def test_oversized_and_too_many_messages_are_dropped_and_told() -> None:
    clock, sink = Clock(), FakeSink()
    transport: MediaTransport = MemoryTransport("s", sink, clock=clock)
    player = MemoryPlayer()
    player.join(await transport.connect(ConnectOffer()))
    player.send(Topic.KEYS, b"x" * 8193)
    player.send(Topic.STATUS, b"x")
    for _ in range(10_000):
        player.send(Topic.KEYS, b"x")
    assert len(sink.payloads()) == 240
    codes = [m.code for m in player.messages if isinstance(m, Error)]
    assert codes == ["message_too_large", "unknown_topic", "too_many_messages"]
    clock.now += 1.0
    player.send(Topic.KEYS, b"x")
    told = player.messages[-1]
    assert isinstance(told, Error)
    assert (told.code, told.count) == ("too_many_messages", 10_000 - 240 - 1)
    await transport.aclose()
