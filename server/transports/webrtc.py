"""Direct WebRTC: each player is a peer connection of this process, no media server between.

peer.py is one connection, vp8.py its encoder, offer.py reads what the player brings, addresses.py
keeps media on the addresses that HTTP is bound to.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from server.media.receipts import PtsClock
from server.protocol.status import StatusMessage
from server.transports.base import (
    ConnectAnswer,
    ConnectOffer,
    I420Frame,
    Identity,
    LeaveReason,
    Topic,
    TransportClosed,
    TransportSink,
)
from server.transports.direct import NoAudience
from server.transports.offer import read_offer
from server.transports.peer import Peer
from server.transports.settings import TransportSettings
from server.transports.succession import Succession, replaced


class WebRtcTransport(NoAudience):
    """The `MediaTransport` of one session over direct WebRTC. Lives on one event loop."""

    def __init__(
        self,
        session: str,
        sink: TransportSink,
        settings: TransportSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self._sink = sink
        self._settings = settings
        self._clock = clock
        self._succession = Succession()
        self._peers: dict[Identity, Peer] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._counters: Counter[str] = Counter()
        self._answering: set[Identity] = set()
        self._pts = PtsClock(clock())

    @property
    def counters(self) -> Counter[str]:
        """What was dropped or refused so far, by name."""
        return sum((peer.counters for peer in self._peers.values()), self._counters)

    async def connect(self, offer: ConnectOffer) -> ConnectAnswer:
        """Answer an SDP offer; see `MediaTransport.connect`.

        Raises `NoMediaAddress` and `TransportClosed` too. Where it raises, nothing of the
        connection is left and the sink hears nothing of it.
        """
        if self._closed:
            raise TransportClosed("this session is closed")
        sdp = read_offer(offer.sdp)
        now = self._clock()
        if live := self._live_peer():
            self._succession.heard(live.who, live.heard_at)
        who, displaced = self._succession.admit(offer.take_over, now)
        for old in displaced:
            self._end(old, LeaveReason.REPLACED)
        peer = self._peers[who] = Peer(who, self._settings, self, self._clock)
        self._answering.add(who)
        try:
            answer = await peer.answer(sdp)
            self._answering.discard(who)
        except BaseException:
            self._answering.discard(who)
            self._succession.gone(who)
            self._peers.pop(who, None)
            await asyncio.shield(self._close(peer))
            raise
        servers = [server.model_dump(mode="json") for server in self._settings.ice_servers]
        return ConnectAnswer("webrtc", {"sdp": answer, "ice_servers": servers})

    def send_frame(self, frame: I420Frame) -> bool:
        """Publish one picture now; the latest one wins. False where nobody is connected."""
        peer = self._live_peer()
        if peer is None:
            self._counters["frame_to_nobody"] += 1
            return False
        peer.send_frame(frame, self._pts.ticks(self._clock()))
        return True

    def send_message(self, message: StatusMessage, to: Identity | None = None) -> bool:
        """Send to the live player, or to nobody where `to` is another one."""
        peer = self._live_peer()
        if peer is None or to not in (None, peer.who) or not peer.send(message):
            self._counters["message_dropped"] += 1
            return False
        return True

    async def aclose(self) -> None:
        """Close every connection; idempotent; the sink is silent from now on."""
        self._closed = True
        for who in self._succession.known:
            self._succession.gone(who)
        for peer in list(self._peers.values()):
            self._close(peer)
        self._peers.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    def came_up(self, peer: Peer) -> None:
        """A peer tells that it is up."""
        for old in self._succession.came_up(peer.who, self._clock()):
            self._end(old, LeaveReason.REPLACED)
        self._sink.joined(peer.who)

    def received(self, peer: Peer, topic: Topic, payload: bytes) -> None:
        """A peer hands on a message."""
        self._sink.received(peer.who, topic, payload)

    def gone(self, peer: Peer, reason: LeaveReason) -> None:
        """A peer tells that it is gone."""
        if self._succession.gone(peer.who):
            self._end(peer.who, reason)

    def _live_peer(self) -> Peer | None:
        live = self._succession.live
        return None if live is None else self._peers.get(live)

    def _end(self, who: Identity, reason: LeaveReason) -> None:
        peer = self._peers.pop(who)
        if reason is LeaveReason.REPLACED and peer.up:
            peer.send(replaced())
        self._close(peer)
        if who not in self._answering:  # else `connect` raises, which tells it
            self._sink.left(who, reason)

    def _close(self, peer: Peer) -> asyncio.Task[None]:
        self._counters.update(peer.counters)
        task = peer.aclose()
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task
