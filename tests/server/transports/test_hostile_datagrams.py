"""Datagrams that no honest stack sends: from strangers, and from players with a stack of their own.

Nothing here asserts speed: what the media stack would do for a datagram is counted.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiortc import rtp
from aiortc.rtcsctptransport import (
    SCTP_DATA_FIRST_FRAG,
    SCTP_DATA_LAST_FRAG,
    SCTP_DATA_UNORDERED,
    DataChunk,
    HeartbeatAckChunk,
    HeartbeatChunk,
    SackChunk,
)
from google_crc32c import value as crc32c

from server.transports.base import Topic
from server.transports.rtc_seam import (
    KNOWN_ADDRESSES,
    MAX_FRAGMENTS,
    MAX_MISORDERED,
    MAX_NACKS,
    MAX_STREAMS,
    Senders,
)
from tests.fakes.rtc_client import RtcPlayer
from tests.fakes.waiting import until
from tests.server.transports.conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_task_left")]

WHOLE = SCTP_DATA_FIRST_FRAG | SCTP_DATA_LAST_FRAG | SCTP_DATA_UNORDERED
JUNK = (
    b"",
    b"\x00",
    b"\x16",
    b"\x15\xfe\xfd" + bytes(8) + b"\x00\x02\x02\x28",  # a DTLS alert
    b"\x14\xfe\xfd" + bytes(8) + b"\x00\x01\x01",
    b"\x80",
    b"\x80\xc8\x00\x00",
    b"\xff" * 40,
    b"\x17" * 1400,
    b"\x00\x01\x00\x04\x21\x12\xa4\x42" + bytes(12) + b"\x00\x06\xff\xff",  # cut STUN
)


@pytest.fixture
async def player(stage: Stage) -> AsyncIterator[RtcPlayer]:
    player = RtcPlayer(decode=False)
    await player.connect(stage.connect())
    yield player
    await player.aclose()


def far_end(stage: Stage) -> Any:
    """The server's peer connection."""
    (peer,) = stage.transport._peers.values()
    return peer._pc


def ice(pc: Any) -> Any:
    return pc.getTransceivers()[0].receiver.transport.transport._connection


async def is_heard(stage: Stage, player: RtcPlayer) -> None:
    """What the player says still arrives."""
    before = len(stage.sink.payloads(Topic.COMMAND))
    player.send(Topic.COMMAND, b"still here")
    await stage.sink.until(lambda sink: len(sink.payloads(Topic.COMMAND)) > before)
    assert player.up


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: f"{junk[:6].hex()}-{len(junk)}")
async def test_whoever_finds_the_port_disturbs_nobody(
    stage: Stage, player: RtcPlayer, junk: bytes
) -> None:
    (protocol,) = ice(far_end(stage))._protocols
    address = protocol.transport.get_extra_info("sockname")
    (peer,) = stage.transport._peers.values()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(900):  # more than a player may send in a second
            stranger.sendto(junk, address)
    await is_heard(stage, player)
    assert not peer.counters["datagram_flood"]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: f"{junk[:6].hex()}-{len(junk)}")
async def test_junk_from_the_player_itself_ends_nothing(
    stage: Stage, player: RtcPlayer, junk: bytes
) -> None:
    (far,), (near,) = ice(far_end(stage))._protocols, ice(player.pc)._protocols
    near.transport.sendto(junk, far.transport.get_extra_info("sockname"))
    await is_heard(stage, player)


async def test_only_the_latest_addresses_are_known() -> None:
    senders = Senders()
    for port in range(KNOWN_ADDRESSES + 1):
        senders.learn(("127.0.0.1", port))
    assert not senders.passes(b"\x17", ("127.0.0.1", 0))
    assert senders.passes(b"\x17", ("127.0.0.1", 1))
    assert senders.passes(b"\x17", ("127.0.0.1", KNOWN_ADDRESSES, 0, 0))  # as IPv6 has it


async def test_report_that_cannot_be_parsed_costs_one_datagram(
    stage: Stage, player: RtcPlayer
) -> None:
    remb = struct.pack("!LL", 1, 2) + b"REMB\xff\x00\x00\x00"  # 255 streams, none of them there
    await player.pc.sctp.transport._send_rtp(rtp.pack_rtcp_packet(rtp.RTCP_PSFB, 15, remb))
    (peer,) = stage.transport._peers.values()
    for raw in (b"\xff\xff", b"\x00"):
        await far_end(stage).sctp.transport._handle_rtcp_data(raw)
    await is_heard(stage, player)
    assert not peer.counters["work_flood"]


@pytest.mark.parametrize(
    "gaps",
    [[(1, 65_535)] * 250, [(1, 65_535)], [(9, 3)], [(2, 3), (1, 3)]],
    ids=["many", "wide", "backwards", "disordered"],
)
async def test_acknowledgement_of_what_was_never_sent_is_not_counted_through(
    stage: Stage, player: RtcPlayer, gaps: list[tuple[int, int]]
) -> None:
    heard = far_end(stage).sctp
    taken: list[SackChunk] = []
    receive = heard._receive_sack_chunk

    async def noted(chunk: SackChunk) -> None:
        taken.append(chunk)
        await receive(chunk)

    heard._receive_sack_chunk = noted
    bomb = SackChunk()
    bomb.cumulative_tsn = player.pc.sctp._last_received_tsn
    bomb.advertised_rwnd, bomb.gaps = 100_000, gaps
    await player.pc.sctp._send_chunk(bomb)
    await is_heard(stage, player)
    assert all(not chunk.gaps for chunk in taken)


async def test_acknowledgement_beyond_what_was_sent_is_ignored(
    stage: Stage, player: RtcPlayer
) -> None:
    heard = far_end(stage).sctp
    before = heard._last_sacked_tsn
    lie = SackChunk()
    lie.cumulative_tsn = (heard._local_tsn + 1000) % 2**32
    lie.advertised_rwnd = 100_000
    await player.pc.sctp._send_chunk(lie)
    await is_heard(stage, player)
    assert heard._last_sacked_tsn == before or heard._last_sacked_tsn < heard._local_tsn


async def test_losses_that_are_named_again_and_again_are_sent_again_a_bounded_number_of_times(
    stage: Stage, player: RtcPlayer
) -> None:
    sender = far_end(stage).getTransceivers()[0].sender
    asked: list[int] = []
    receive = sender._retransmit

    async def noted(sequence_number: int) -> None:
        asked.append(sequence_number)
        await receive(sequence_number)

    sender._retransmit = noted
    lost = struct.pack("!LL", 1, sender._ssrc) + struct.pack("!HH", 0, 0xFFFF) * 330
    await player.pc.sctp.transport._send_rtp(
        rtp.pack_rtcp_packet(rtp.RTCP_RTPFB, rtp.RTCP_RTPFB_NACK, lost)
    )
    await until(lambda: bool(asked))
    await is_heard(stage, player)
    assert len(asked) <= MAX_NACKS


async def test_flood_of_reports_is_dropped(stage: Stage, player: RtcPlayer) -> None:
    (peer,) = stage.transport._peers.values()
    reports = rtp.pack_rtcp_packet(rtp.RTCP_RR, 0, struct.pack("!L", 1)) * 150
    for _ in range(400):
        await player.pc.sctp.transport._send_rtp(reports)
    await until(lambda: bool(peer.counters["work_flood"]))
    await is_heard(stage, player)


def a_chunk(tsn: int, flags: int, data: bytes = b"x", stream: int = 1) -> DataChunk:
    chunk = DataChunk()
    chunk.flags, chunk.tsn, chunk.stream_id, chunk.user_data = flags, tsn % 2**32, stream, data
    chunk.stream_seq, chunk.protocol = 0, 53
    return chunk


async def test_message_without_an_end_is_kept_up_to_a_bound(
    stage: Stage, player: RtcPlayer
) -> None:
    heard, says = far_end(stage).sctp, player.pc.sctp
    first = says._local_tsn
    for number in range(MAX_FRAGMENTS * 2):
        flags = SCTP_DATA_UNORDERED | (0 if number else SCTP_DATA_FIRST_FRAG)
        await says._send_chunk(a_chunk(first + number, flags))
    await until(lambda: bool(heard._inbound_streams[1].reassembly))
    await settled(player)
    assert len(heard._inbound_streams[1].reassembly) <= MAX_FRAGMENTS
    assert player.up


async def test_chunks_out_of_order_are_kept_up_to_a_bound(stage: Stage, player: RtcPlayer) -> None:
    heard, says = far_end(stage).sctp, player.pc.sctp
    for number in range(MAX_MISORDERED * 2):
        await says._send_chunk(a_chunk(says._local_tsn + 5 + 2 * number, WHOLE))
    await until(lambda: bool(heard._sack_misordered))
    await settled(player)
    assert len(heard._sack_misordered) <= MAX_MISORDERED
    assert player.up


async def test_more_than_the_window_is_not_kept(stage: Stage, player: RtcPlayer) -> None:
    heard, says = far_end(stage).sctp, player.pc.sctp
    heard._advertised_rwnd = 3000
    for number in range(20):
        flags = SCTP_DATA_UNORDERED | (0 if number else SCTP_DATA_FIRST_FRAG)
        await says._send_chunk(a_chunk(says._local_tsn + number, flags, b"x" * 1000))
    await until(lambda: heard._advertised_rwnd == 0)
    await settled(player)
    assert sum(len(chunk.user_data) for chunk in heard._inbound_streams[1].reassembly) == 3000


async def test_streams_that_no_browser_has_are_not_opened(stage: Stage, player: RtcPlayer) -> None:
    heard, says = far_end(stage).sctp, player.pc.sctp
    await says._send_chunk(a_chunk(says._local_tsn, WHOLE, stream=MAX_STREAMS))
    await is_heard(stage, player)
    assert MAX_STREAMS not in heard._inbound_streams


async def test_flood_of_chunks_in_few_datagrams_is_dropped(stage: Stage, player: RtcPlayer) -> None:
    (peer,) = stage.transport._peers.values()
    heard = far_end(stage).sctp
    data = bytes(HeartbeatChunk()) * 2000
    header = struct.pack(
        "!HHL", heard._remote_port, heard._local_port, heard._local_verification_tag
    )
    packet = header + struct.pack("<L", crc32c(header + bytes(4) + data)) + data
    await heard._handle_data(packet)
    assert peer.counters["work_flood"]
    await settled(player)


async def settled(player: RtcPlayer) -> None:
    """What the player sent before is handled: a heartbeat that is sent now is answered later."""
    says = player.pc.sctp
    assert says is not None
    receive, answered = says._receive_chunk, asyncio.Event()

    async def noted(chunk: Any) -> None:
        if isinstance(chunk, HeartbeatAckChunk):
            answered.set()
        await receive(chunk)

    says._receive_chunk = noted  # type: ignore[method-assign]

    async def answer() -> bool:
        await says._send_chunk(HeartbeatChunk())
        return answered.is_set()

    await until(answer)
