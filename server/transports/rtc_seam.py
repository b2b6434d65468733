"""All that is done to aiortc and aioice beyond their public interface, in one place.

Written against aiortc 1.16 and aioice 0.13; `tests/server/transports/test_rtc_seam.py` fails where
a newer one no longer has what is used here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec

from aioice.ice import StunProtocol
from aioice.stun import Message
from aiortc import RTCPeerConnection, RTCRtpSender
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcsctptransport import Chunk, DataChunk, RTCSctpTransport, SackChunk
from aiortc.rtp import AnyRtcpPacket, RtcpRtpfbPacket
from aiortc.utils import uint32_add

from server.transports.vp8 import VideoPacket

log = logging.getLogger(__name__)
P = ParamSpec("P")

CLOSE_SECONDS = 3.0
TRACK_PACKETS = 16
KNOWN_ADDRESSES = 16  # that a player has sent a verified check from, newest last
FIRST_DTLS_BYTE = 20  # RFC 7983: below are STUN's, which never get here unless broken
# What a player's SCTP may make this one keep in disorder; aiortc sorts and scans it for each chunk.
MAX_STREAMS = 1024
MAX_FRAGMENTS = 256  # of messages that are not whole, on one stream
MAX_MISORDERED = 256
MAX_NACKS = 128  # packets that one report of losses may name: as many as aiortc remembers
RTCP_BYTES_PER_UNIT = 128


class PacketTrack(MediaStreamTrack):
    """A video track of encoded pictures. aiortc only cuts them into RTP packets.

    The RTP timestamp of a picture is its `pts` (time base 1/90000) plus a random number that stays
    the same for the connection, modulo 2**32.
    """

    kind = "video"

    def __init__(self) -> None:
        super().__init__()
        self._packets: asyncio.Queue[VideoPacket] = asyncio.Queue(TRACK_PACKETS)

    def put(self, packet: VideoPacket) -> bool:
        """Send this next; False where the sender does not keep up."""
        if self.readyState != "live" or self._packets.full():
            return False
        self._packets.put_nowait(packet)
        return True

    async def recv(self) -> VideoPacket:
        """What aiortc's sender asks for."""
        return await self._packets.get()


def on_keyframe_request(sender: RTCRtpSender, wanted: Callable[[], None]) -> None:
    """Call `wanted` where the receiver reports a lost picture (PLI, FIR)."""
    sender._send_keyframe = wanted  # type: ignore[method-assign]


class Senders:
    """The addresses that a player's verified ICE checks have come from."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], None] = OrderedDict()

    def learn(self, addr: tuple[str, int]) -> None:
        """A check from `addr` had the right signature."""
        self._known[addr] = None
        self._known.move_to_end(addr)
        while len(self._known) > KNOWN_ADDRESSES:
            self._known.popitem(last=False)

    def passes(self, data: bytes, addr: tuple[Any, ...]) -> bool:
        """Whether a datagram may be looked at: from a known address, or STUN, which is signed."""
        if not data:
            return False
        return data[0] < FIRST_DTLS_BYTE or (addr[0], addr[1]) in self._known


def on_traffic(
    pc: RTCPeerConnection, heard: Callable[[], None], admits: Callable[[], bool]
) -> Senders:
    """Call `heard` for each ICE check of the player, ask `admits` for each other datagram.

    A datagram that is not admitted is dropped: decrypting and parsing one in Python costs most of
    a millisecond, so a flood must end here. The sender's congestion control then slows it down.
    Returns whom `refuse_strangers` is to let in.
    """
    senders = Senders()
    for transceiver in pc.getTransceivers():
        connection = transceiver.receiver.transport.transport._connection
        data_passed, check_passed = connection.data_received, connection.check_incoming

        def data_received(
            data: bytes, component: int, passed: Callable[[bytes, int], None] = data_passed
        ) -> None:
            # aiortc reads the first byte of whatever comes, and ends the connection without one.
            if data and data[0] >= FIRST_DTLS_BYTE and admits():
                passed(data, component)

        def check_incoming(
            message: Message,
            addr: tuple[str, int],
            protocol: StunProtocol,
            passed: Callable[[Message, tuple[str, int], StunProtocol], None] = check_passed,
        ) -> None:
            heard()  # the check's signature has been verified
            senders.learn(addr)
            passed(message, addr, protocol)

        connection.data_received = data_received  # type: ignore[method-assign]
        connection.check_incoming = check_incoming  # type: ignore[method-assign]
    return senders


def refuse_strangers(pc: RTCPeerConnection, senders: Senders) -> None:
    """Drop datagrams of whoever has only found the port. Once the sockets are open.

    aioice hands on what comes from anywhere, so that anybody could use up what a player may send,
    keep a dead player alive, or break a handshake.
    """
    for transceiver in pc.getTransceivers():
        for protocol in transceiver.receiver.transport.transport._connection._protocols:

            def datagram_received(
                data: bytes | str,
                addr: tuple[Any, ...],
                passed: Callable[[bytes | str, tuple[Any, ...]], None] = protocol.datagram_received,
            ) -> None:
                if isinstance(data, bytes) and senders.passes(data, addr):
                    passed(data, addr)

            protocol.datagram_received = datagram_received  # type: ignore[method-assign]


def guard(pc: RTCPeerConnection, fault: Callable[[Exception], None]) -> None:
    """Keep what goes wrong with one datagram (bad UTF-8 in a string message) to that datagram.

    aiortc would end the connection with an exception that nobody retrieves.
    """

    def kept(handle: Callable[P, Awaitable[None]]) -> Callable[P, Coroutine[Any, Any, None]]:
        async def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                await handle(*args, **kwargs)
            except ConnectionError:
                raise
            except Exception as error:  # the border to bytes that a stranger made
                fault(error)

        return guarded

    if pc.sctp is not None:
        pc.sctp._handle_data = kept(pc.sctp._handle_data)  # type: ignore[method-assign]
    for transceiver in pc.getTransceivers():
        dtls = transceiver.receiver.transport
        dtls._handle_rtcp_data = kept(dtls._handle_rtcp_data)  # type: ignore[method-assign]
        dtls._handle_rtp_data = kept(dtls._handle_rtp_data)  # type: ignore[method-assign]


def bound_work(pc: RTCPeerConnection, admits: Callable[[float], bool]) -> None:
    """Let no datagram cost more than its size, whatever a player's own stack has put in it.

    `admits` is asked with a number of units before each SCTP chunk, each packet that is sent
    again, and each piece of RTCP. What is not admitted, or is not what a player can have to say,
    is dropped as if it had been lost.
    """
    if pc.sctp is not None:
        _bound_sctp(pc.sctp, admits)
    for transceiver in pc.getTransceivers():
        _bound_rtcp(transceiver.receiver.transport, admits)
        _bound_retransmissions(transceiver.sender, admits)


def _bound_sctp(sctp: RTCSctpTransport, admits: Callable[[float], bool]) -> None:
    receive = sctp._receive_chunk

    async def bounded(chunk: Chunk) -> None:
        if admits(1) and _plausible(sctp, chunk):
            await receive(chunk)

    sctp._receive_chunk = bounded  # type: ignore[method-assign]


def _bound_rtcp(dtls: Any, admits: Callable[[float], bool]) -> None:
    receive = dtls._handle_rtcp_data

    async def bounded(data: bytes) -> None:
        if admits(1 + len(data) // RTCP_BYTES_PER_UNIT):
            await receive(data)

    dtls._handle_rtcp_data = bounded


def _bound_retransmissions(sender: RTCRtpSender, admits: Callable[[float], bool]) -> None:
    receive, retransmit = sender._handle_rtcp_packet, sender._retransmit

    async def bounded(packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpRtpfbPacket):
            del packet.lost[MAX_NACKS:]
        await receive(packet)

    async def again(sequence_number: int) -> None:
        if admits(1):
            await retransmit(sequence_number)

    sender._handle_rtcp_packet = bounded  # type: ignore[method-assign]
    sender._retransmit = again  # type: ignore[method-assign]


def _plausible(sctp: RTCSctpTransport, chunk: Chunk) -> bool:
    if isinstance(chunk, SackChunk):
        return _acknowledges_what_was_sent(sctp, chunk)
    if isinstance(chunk, DataChunk):
        return _has_room(sctp, chunk)
    return True


def _acknowledges_what_was_sent(sctp: RTCSctpTransport, chunk: SackChunk) -> bool:
    """Whether every gap is among them: aiortc counts through gaps of up to 18 million TSNs."""
    sent = uint32_add(sctp._local_tsn, -1 - chunk.cumulative_tsn)
    before = 0
    for first, last in chunk.gaps:
        if not before < first <= last:
            return False
        before = last
    return before <= sent < 1 << 31


def _has_room(sctp: RTCSctpTransport, chunk: DataChunk) -> bool:
    if chunk.stream_id >= MAX_STREAMS or sctp._last_received_tsn is None:
        return False
    if len(chunk.user_data) > sctp._advertised_rwnd:
        return False
    stream = sctp._inbound_streams.get(chunk.stream_id)
    if stream is not None and len(stream.reassembly) >= MAX_FRAGMENTS:
        return False
    comes_next = chunk.tsn == uint32_add(sctp._last_received_tsn, 1)
    return comes_next or len(sctp._sack_misordered) < MAX_MISORDERED


async def close(pc: RTCPeerConnection) -> None:
    """Close within a bound, sockets included even where a part of it hangs or raises."""
    connections = [t.receiver.transport.transport._connection for t in pc.getTransceivers()]
    if pc.sctp is not None:
        connections.append(pc.sctp.transport.transport._connection)
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await pc.close()
    except Exception:
        log.exception("a peer connection did not close; closing its sockets")
        for connection in dict.fromkeys(connections):
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.close()
