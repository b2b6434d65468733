"""All that is done to aiortc and aioice beyond their public interface, in one place.

Written against aiortc 1.16 and aioice 0.13; `tests/server/transports/test_rtc_seam.py` fails where
a newer one no longer has what is used here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aioice.ice import StunProtocol
from aioice.stun import Message
from aiortc import RTCPeerConnection, RTCRtpSender
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcsctptransport import RTCSctpTransport

from server.transports.vp8 import VideoPacket

log = logging.getLogger(__name__)

CLOSE_SECONDS = 3.0
TRACK_PACKETS = 16


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


def on_traffic(
    pc: RTCPeerConnection, heard: Callable[[], None], admits: Callable[[], bool]
) -> None:
    """Call `heard` for each ICE check of the player, ask `admits` for each other datagram.

    A datagram that is not admitted is dropped: decrypting and parsing one in Python costs most of
    a millisecond, so a flood must end here. The sender's congestion control then slows it down.
    """
    for transceiver in pc.getTransceivers():
        connection = transceiver.receiver.transport.transport._connection
        data_passed, check_passed = connection.data_received, connection.check_incoming

        def data_received(
            data: bytes, component: int, passed: Callable[[bytes, int], None] = data_passed
        ) -> None:
            if admits():
                passed(data, component)

        def check_incoming(
            message: Message,
            addr: tuple[str, int],
            protocol: StunProtocol,
            passed: Callable[[Message, tuple[str, int], StunProtocol], None] = check_passed,
        ) -> None:
            heard()  # the check's signature has been verified
            passed(message, addr, protocol)

        connection.data_received = data_received  # type: ignore[method-assign]
        connection.check_incoming = check_incoming  # type: ignore[method-assign]


def guard(sctp: RTCSctpTransport, fault: Callable[[Exception], None]) -> None:
    """Keep what goes wrong with one datagram (bad UTF-8 in a string message) to that datagram.

    aiortc would end the connection with an exception that nobody retrieves.
    """
    handle = sctp._handle_data

    async def guarded(data: bytes) -> None:
        try:
            await handle(data)
        except ConnectionError:
            raise
        except Exception as error:  # the border to bytes that a stranger made
            fault(error)

    sctp._handle_data = guarded  # type: ignore[method-assign]


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
