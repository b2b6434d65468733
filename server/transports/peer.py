"""One peer connection: from a player's offer until it is gone."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
)

from server.protocol.status import FrameReceipt, Frames, StatusMessage
from server.transports import rtc_seam
from server.transports.addresses import media_addresses
from server.transports.base import (
    BadOffer,
    I420Frame,
    Identity,
    LeaveReason,
    NoMediaAddress,
    Topic,
    TransportClosed,
)
from server.transports.bucket import Bucket
from server.transports.gate import Gate
from server.transports.impairment import Impaired
from server.transports.settings import TransportSettings
from server.transports.vp8 import VideoOut, VideoPacket

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 10.0  # gathering and negotiating; STUN servers may be slow
WATCH_SECONDS: Final = 1.0
DATAGRAMS_PER_SECOND: Final = 600.0
WORK_PER_SECOND: Final = 1000.0  # SCTP chunks, RTCP and packets sent again; a page needs 200
MAX_BUFFERED_BYTES: Final = 64 * 1024  # of unsent status messages; more means nobody reads
MAX_SURPLUS_CHANNELS: Final = 8
GOODBYE_SECONDS: Final = 0.5


class PeerListener(Protocol):
    """What a peer tells; on the event loop."""

    def came_up(self, peer: Peer) -> None:
        """Media and all data channels are open."""

    def received(self, peer: Peer, topic: Topic, payload: bytes) -> None:
        """An admitted message; only between `came_up` and `gone`."""

    def gone(self, peer: Peer, reason: LeaveReason) -> None:
        """Said once, and never after `aclose` was called."""


class Peer:
    """A connection with one player. `clock` is monotonic seconds."""

    def __init__(
        self,
        who: Identity,
        settings: TransportSettings,
        listener: PeerListener,
        clock: Callable[[], float],
    ) -> None:
        self.who = who
        self.up = False
        self.heard_at = clock()
        self.counters: Counter[str] = Counter()
        self._settings = settings
        self._listener = listener
        self._clock = clock
        self._gate = Gate(self.heard_at)
        self._impaired = Impaired(settings.impair)
        self._channels: dict[Topic, RTCDataChannel] = {}
        self._track = rtc_seam.PacketTrack()
        self._video = VideoOut(settings.bitrate, self._send_packet, self._encoder_failed)
        self._ended = False
        self._closing: asyncio.Task[None] | None = None
        self._negotiation: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._datagrams = Bucket(DATAGRAMS_PER_SECOND, self.heard_at)
        self._work = Bucket(WORK_PER_SECOND, self.heard_at)
        self._heard = 0
        self._heard_at_watch = 0
        self._silent_seconds = 0.0
        self._pc = RTCPeerConnection(
            RTCConfiguration(  # no servers given would mean aiortc's public default
                iceServers=[
                    RTCIceServer(list(s.urls), s.username, s.credential)
                    for s in settings.ice_servers
                ]
            )
        )
        self._pc.on("connectionstatechange", self._state_changed)
        self._pc.on("datachannel", self._channel_opened)

    async def answer(self, sdp: str) -> str:
        """The answer to a checked offer; from now on the connect limit runs.

        Raises `BadOffer`, `NoMediaAddress`, or `TransportClosed` where the peer was closed
        meanwhile. After any of them only `aclose` may be called.
        """
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._settings.connect_seconds, self._end, LeaveReason.FAILED)
        self._negotiation = asyncio.ensure_future(self._negotiate(sdp))
        try:
            # Cancelled half-way, aioice would forget sockets that it has just opened.
            await asyncio.shield(self._negotiation)
        except Exception as error:  # the offer is the only input, so it is at fault
            if self._closing is not None:
                raise TransportClosed("this connection was closed meanwhile") from error
            log.info("offer refused: %r", error)
            raise BadOffer("the offer cannot be answered: " + _in_words(error)) from error
        if self._closing is not None:
            raise TransportClosed("this connection was closed meanwhile")
        answer = str(self._pc.localDescription.sdp)
        if "\na=candidate:" not in answer:
            raise NoMediaAddress(
                "no media socket could be opened on "
                + (", ".join(self._settings.addresses) or "any address")
            )
        return answer

    async def _negotiate(self, sdp: str) -> None:
        transceiver = self._pc.addTransceiver(self._track, direction="sendonly")
        codecs = RTCRtpSender.getCapabilities("video").codecs
        transceiver.setCodecPreferences(
            [codec for codec in codecs if codec.mimeType in ("video/VP8", "video/rtx")]
        )
        rtc_seam.on_keyframe_request(transceiver.sender, self._video.want_keyframe)
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._pc.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
            senders = rtc_seam.on_traffic(self._pc, self._was_heard, self._admits_datagram)
            rtc_seam.bound_work(self._pc, self._admits_work)
            rtc_seam.guard(self._pc, self._bad_datagram)
            answer = await self._pc.createAnswer()
            with media_addresses(self._settings.addresses):
                await self._pc.setLocalDescription(answer)
            rtc_seam.refuse_strangers(self._pc, senders)

    def send_frame(self, frame: I420Frame, pts: int) -> None:
        """Encode and send this picture next, in place of one that still waits."""
        if self.up:
            self._video.offer(frame, pts)

    def send(self, message: StatusMessage) -> bool:
        """Send a status message; a player that has stopped reading is given up."""
        channel = self._channels.get(Topic.STATUS)
        if channel is None or channel.readyState != "open" or self._ended:
            return False
        if channel.bufferedAmount > MAX_BUFFERED_BYTES:
            self.counters["overflow"] += 1
            self._end(LeaveReason.LOST)
            return False
        channel.send(message.model_dump_json())
        return True

    def aclose(self) -> asyncio.Task[None]:
        """Begin to close (once), say no more to the listener; awaiting the task is optional."""
        self._ended = True
        self._cancel_timer()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self.who}")
        return self._closing

    async def _close(self) -> None:
        if self._negotiation is not None:
            await asyncio.wait([self._negotiation])
            if not self._negotiation.cancelled():
                self._negotiation.exception()  # `answer` has told it
        await self._video.aclose()
        await self._flush()
        await rtc_seam.close(self._pc)
        self._channels.clear()

    async def _flush(self) -> None:
        """Give the last status messages a moment to leave."""
        channel = self._channels.get(Topic.STATUS)
        if channel is None or channel.readyState != "open" or not channel.bufferedAmount:
            return
        sent = asyncio.Event()
        channel.on("bufferedamountlow", sent.set)
        channel.on("close", sent.set)
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await sent.wait()
        except TimeoutError:
            self.counters["goodbye_unread"] += 1

    def _state_changed(self) -> None:
        state = self._pc.connectionState
        if state == "connected":
            self._maybe_up()
        elif state == "closed":
            self._end(LeaveReason.CLOSED if self.up else LeaveReason.FAILED)
        elif state == "failed":
            self._end(LeaveReason.LOST if self.up else LeaveReason.FAILED)

    def _channel_opened(self, channel: RTCDataChannel) -> None:
        known = next((topic for topic in Topic if topic == channel.label), None)
        if known is None or known in self._channels:
            self.counters["surplus_channel"] += 1
            channel.close()
            if self.counters["surplus_channel"] > MAX_SURPLUS_CHANNELS:
                self._end(LeaveReason.CLOSED if self.up else LeaveReason.FAILED)
            return
        self._channels[known] = channel
        channel.on("message", lambda payload: self._message(known, payload))
        channel.on("close", self._channel_closed)
        self._maybe_up()

    def _channel_closed(self) -> None:
        self._end(LeaveReason.CLOSED if self.up else LeaveReason.FAILED)

    def _maybe_up(self) -> None:
        connected = self._pc.connectionState == "connected"
        if self._ended or self.up or not connected or len(self._channels) < len(Topic):
            return
        self.up = True
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._watch)
        self._listener.came_up(self)

    def _message(self, topic: Topic, payload: str | bytes) -> None:
        if not self.up or self._ended:
            self.counters["early_message"] += 1
            return
        data = payload.encode() if isinstance(payload, str) else payload
        arriving = self._impaired.arriving(data) if topic is Topic.KEYS else (data,)
        now = self._clock()
        for part in arriving:
            if not self._ended and self._gate.admits(topic, len(part), now):
                self._listener.received(self, topic, part)
        for error in self._gate.refusals(now):
            self.send(error)

    def _was_heard(self) -> None:
        self.heard_at = self._clock()
        self._heard += 1

    def _admits_datagram(self) -> bool:
        self._was_heard()
        if self._datagrams.admits(self.heard_at):
            return True
        self.counters["datagram_flood"] += 1
        return False

    def _admits_work(self, units: float) -> bool:
        if self._work.admits(self._clock(), units):
            return True
        self.counters["work_flood"] += 1
        return False

    def _bad_datagram(self, error: Exception) -> None:
        self.counters["bad_datagram"] += 1
        if self.counters["bad_datagram"] == 1:
            log.warning("%s sent what cannot be read: %r", self.who, error, exc_info=error)

    def _watch(self) -> None:
        """Once a second: a player that is silent for too long is lost.

        Silence is counted in watches, not in clock time, so a process that was stopped itself
        does not take all its players for dead.
        """
        if self._heard != self._heard_at_watch:
            self._heard_at_watch, self._silent_seconds = self._heard, 0.0
        else:
            self._silent_seconds += WATCH_SECONDS
        if self._silent_seconds >= self._settings.lost_seconds:
            self._end(LeaveReason.LOST)
        else:
            self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._watch)

    def _send_packet(self, frame: I420Frame, packet: VideoPacket) -> None:
        pts = packet.pts
        if self._ended or pts is None:
            return
        if not self._track.put(packet):  # what follows cannot be decoded without it
            self.counters["packet_dropped"] += 1
            self._video.want_keyframe()
            return
        receipt = FrameReceipt(pts=pts % 2**32, frame_id=frame.frame_id, receipt=frame.receipt)
        self.send(Frames(frames=(receipt,)))

    def _encoder_failed(self, error: BaseException) -> None:
        log.error("encoding for %s failed", self.who, exc_info=error)
        self._end(LeaveReason.LOST)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, reason: LeaveReason) -> None:
        if self._ended:
            return
        self._ended = True
        self._cancel_timer()
        self._listener.gone(self, reason)


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"it took longer than {ANSWER_SECONDS:.0f} s"
    return (str(error) or type(error).__name__)[:200]
