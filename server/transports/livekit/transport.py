"""A session's way to its players through a LiveKit room.

The room is made at the first connect and deleted when the session is closed. A player is known by
an identity that LiveKit stamps on all it sends; each connect gets an identity of its own, so that
the newer connection replaces the older one only once it is up. Whoever else is in the room is
counted and ignored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from server.protocol.status import FrameReceipt, Frames, StatusMessage
from server.transports.base import (
    ConnectAnswer,
    ConnectOffer,
    I420Frame,
    Identity,
    LeaveReason,
    Topic,
    TransportSink,
)
from server.transports.gate import Gate
from server.transports.impairment import Impaired
from server.transports.livekit.audience import Audience
from server.transports.livekit.errands import Errands
from server.transports.livekit.outbox import Outgoing
from server.transports.livekit.silence import Silence
from server.transports.livekit.stay import RoomStay
from server.transports.livekit.tokens import TTL_SECONDS, Role, mint
from server.transports.settings import TransportSettings
from server.transports.succession import Succession, replaced

ALIVE: Final = "veldt.alive"  # what is sent on it comes back: no timer of a hidden page is needed
WATCH_SECONDS: Final = 1.0
STILL_SECONDS: Final = 0.9  # a picture that old is sent again, for whoever has just come
ASK_SECONDS: Final = 0.2

log = logging.getLogger(__name__)


class LiveKitTransport:
    """The `MediaTransport` of one session over LiveKit. Lives on one event loop."""

    def __init__(
        self,
        session: str,
        sink: TransportSink,
        settings: TransportSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.livekit is None:
            raise ValueError("LiveKit's address is not set")
        self.session = session
        self._counters: Counter[str] = Counter()
        self._address = settings.livekit
        self._sink = sink
        self._settings = settings
        self._clock = clock
        self._succession = Succession()
        self._audience = Audience()
        self._chosen: Identity | None = None  # whom the player last wanted to have the controls
        self._silence = Silence(round(settings.lost_seconds / WATCH_SECONDS))
        self._gates: dict[Identity, Gate] = {}
        self._told_receipts: set[Identity] = set()  # players who cannot read frame metadata
        self._impaired = Impaired(settings.impair)
        self._limits: dict[Identity, asyncio.TimerHandle] = {}
        self._errands = Errands(session)
        self._stay = RoomStay(session, settings.livekit, settings.bitrate, self, self._errands)
        self._watching: asyncio.Task[None] | None = None
        self._frame: I420Frame | None = None
        self._frame_at = 0.0
        self._asked_at = -ASK_SECONDS
        self._closing: asyncio.Task[None] | None = None

    @property
    def counters(self) -> Counter[str]:
        """What was dropped or ignored so far, by name."""
        return self._counters + self._stay.counters

    # ------------------------------------------------------------------ MediaTransport
    async def connect(self, offer: ConnectOffer) -> ConnectAnswer:
        """Make a place in the room for a player; see `MediaTransport.connect`.

        Raises `MediaServerUnreachable` and `TransportClosed` too. Where it raises, nothing of the
        connection is left and the sink hears nothing of it.
        """
        await self._be_there()
        await self._look_for_live()
        who, displaced = self._succession.admit(offer.take_over, self._clock())
        for old in displaced:
            self._end(old, LeaveReason.REPLACED)
        if not offer.frame_metadata:
            self._told_receipts.add(who)
        self._limits[who] = asyncio.get_running_loop().call_later(
            self._settings.connect_seconds, self._gone, who, LeaveReason.FAILED
        )
        token = mint(self._address, Role.PLAYER, self._stay.name, who)
        return ConnectAnswer("livekit", {"url": self._address.public_url, "token": token})

    def send_frame(self, frame: I420Frame) -> bool:
        """Publish one picture now. False where the worker is not in the room."""
        self._frame, self._frame_at = frame, self._clock()
        if self._show(frame):
            return True
        self._counters["frame_to_nobody"] += 1
        return False

    def send_message(self, message: StatusMessage, to: Identity | None = None) -> bool:
        """Send to one player, or to everybody in the room."""
        if to is None or to in (self._succession.live, self._audience.holder):
            return self._say(message, to)
        self._counters["message_dropped"] += 1
        return False

    async def invite(self) -> ConnectAnswer:
        """Make a place for a spectator, who cannot send anything: LiveKit sees to that."""
        await self._be_there()
        now = self._clock()
        who = self._audience.invite(now, now + TTL_SECONDS)
        token = mint(self._address, Role.SPECTATOR, self._stay.name, who)
        return ConnectAnswer("livekit", {"url": self._address.public_url, "token": token})

    def hand_over(self, by: Identity, to: Identity) -> bool:
        """Give the controls to a spectator, or take them back. Only the player may."""
        if self._stay.room is None or by != self._succession.live:
            return False
        if to == by or to in self._audience.present:
            self._chosen = to
        if to == by:
            if self._audience.holder is not None:
                self._take_back()
                self._sink.joined(by)
            return True
        if to not in self._audience.present:
            return False
        if to != self._audience.holder:
            self._errands.run(self._give(to))
        return True

    def doubt(self) -> None:
        """Ask LiveKit who is in the room."""
        self._stay.doubt()

    async def aclose(self) -> None:
        """Leave the room and delete it; idempotent; the sink is silent from now on."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._stay.name}")
        await asyncio.shield(self._closing)

    # ------------------------------------------------------------------ StayListener
    @property
    def present(self) -> frozenset[Identity]:
        """Who is believed to be in the room."""
        live = self._succession.live
        return self._audience.present | (frozenset() if live is None else {live})

    def arrived(self, who: Identity) -> None:
        """A participant has a media path."""
        if who == self._succession.live or self._audience.arrived(who):
            return
        now = self._clock()
        if who not in self._succession.known and not self._succession.back(who, now):
            self._counters["stranger"] += 1
            log.info("session %s: %s is in the room and not expected", self.session, who)
            return
        if (limit := self._limits.pop(who, None)) is not None:
            limit.cancel()
        for old in self._succession.came_up(who, now):
            self._end(old, LeaveReason.REPLACED)
        self._take_back()
        self._hear(who)
        self._sink.joined(who)

    def departed(self, who: Identity, by_itself: bool) -> None:
        """A participant is gone; one that was thrown out of its connection may come back."""
        if self._audience.departed(who, self._clock() + TTL_SECONDS):
            self._controls_return(who)
        self._lost(who, LeaveReason.CLOSED if by_itself else LeaveReason.LOST)

    def heard(self, who: Identity, topic: str, payload: bytes) -> None:
        """A message: from a player that is up it goes on, from anybody else it is counted."""
        gate = self._gates.get(who)
        if gate is None:
            self._counters["unknown_sender"] += 1
            self._ask_who_that_was()
            return
        now = self._clock()
        self._silence.heard(who)
        self._succession.heard(who, now)
        if topic == ALIVE:
            return
        known = next((each for each in Topic if each == topic), None)
        for part in self._impaired.arriving(payload) if known is Topic.KEYS else (payload,):
            if gate.admits(known, len(part), now) and known is not None:
                self._sink.received(who, known, part)
        for error in gate.refusals(now):
            self._say(error, who)

    def cut_off(self, *, for_good: bool) -> None:
        """The worker's own connection is broken, or its room is gone: nobody plays."""
        self._take_back()
        live = self._succession.live
        if live is not None:
            self._lost(live, LeaveReason.LOST)
        if for_good:
            self._audience.room_lost(self._clock() + TTL_SECONDS)

    # ------------------------------------------------------------------ life
    async def _be_there(self) -> None:
        await self._stay.be_there()
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name=f"watch {self._stay.name}")

    async def _watch(self) -> None:
        """Once a second: ask who is alive, and show the picture to whoever has just come."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self._stay.room is None:
                continue
            for who in map(Identity, self._silence.next()):
                log.info("session %s: %s is silent", self.session, who)
                if who == self._audience.holder:
                    self._audience.holder = None
                    self._errands.run(self._stay.let_speak(who, may=False))
                    self._controls_return(who)
                else:
                    self._gone(who, LeaveReason.LOST)
            if watched := self._silence.watched:
                self._stay.say(Outgoing("alive?", ALIVE, watched, reliable=False))
            if self._frame is not None and self._clock() - self._frame_at > STILL_SECONDS:
                self._show(self._frame)

    def _show(self, frame: I420Frame) -> bool:
        """Publish a picture, and say what it shows where the player cannot read that from it."""
        pts = self._stay.show(frame)
        live = self._succession.live
        if pts is not None and live in self._told_receipts:
            receipt = FrameReceipt(pts=pts, frame_id=frame.frame_id, receipt=frame.receipt)
            self._say(Frames(frames=(receipt,)), live)
        return pts is not None

    async def _close(self) -> None:
        for who in self._succession.known:
            self._succession.gone(who)
        for limit in self._limits.values():
            limit.cancel()
        self._limits.clear()
        self._gates.clear()
        self._stay.close()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await self._errands.aclose()
        self._frame = None
        await self._stay.aclose()

    # ------------------------------------------------------------------ spectators
    async def _give(self, to: Identity) -> None:
        await self._stay.let_speak(to, may=True)
        if to != self._chosen:  # taken back, or given to somebody else, meanwhile
            await self._stay.let_speak(to, may=to == self._audience.holder)
            return
        if to == self._audience.holder:  # asked for twice
            return
        if to in self._audience.present and self._succession.live is not None:
            self._take_back()
            self._audience.holder = to
            self._hear(to)
            self._sink.joined(to)

    def _take_back(self) -> None:
        """Whoever was given the controls has them no more; the player is told by the caller."""
        holder, self._audience.holder = self._audience.holder, None
        self._chosen = None
        if holder is not None:
            self._forget(holder)
            self._errands.run(self._stay.let_speak(holder, may=False))
            self._sink.left(holder, LeaveReason.REPLACED)

    def _controls_return(self, holder: Identity) -> None:
        """The spectator who played is gone: the player plays again, if it is there."""
        self._forget(holder)
        live = self._succession.live
        self._sink.left(holder, LeaveReason.LOST if live is None else LeaveReason.REPLACED)
        if live is not None:
            self._sink.joined(live)

    # ------------------------------------------------------------------ players
    def _hear(self, who: Identity) -> None:
        self._gates[who] = Gate(self._clock())
        self._silence.watch(who)

    def _say(self, message: StatusMessage, to: Identity | None) -> bool:
        receivers = () if to is None else (str(to),)
        said = self._stay.say(Outgoing(message.model_dump_json(), Topic.STATUS, receivers))
        if not said:
            self._counters["message_dropped"] += 1
        return said

    async def _look_for_live(self) -> None:
        """A page that was reloaded is gone before LiveKit tells so."""
        live = self._succession.live
        if live is not None and not await self._stay.has(live):
            self._lost(live, LeaveReason.CLOSED)

    def _ask_who_that_was(self) -> None:
        """Somebody speaks before it was introduced: perhaps one of those who are expected."""
        now = self._clock()
        if self._limits and now - self._asked_at >= ASK_SECONDS:
            self._asked_at = now
            for who in self._limits:
                self._errands.run(self._stay.announce(who))

    def _lost(self, who: Identity, reason: LeaveReason) -> None:
        """A player that was up is gone; LiveKit's client may bring it back under its name."""
        if who == self._succession.live and self._succession.away(who):
            self._forget(who)
            self._sink.left(who, reason)

    def _gone(self, who: Identity, reason: LeaveReason) -> None:
        """It is over with this identity: too silent, or never up."""
        if self._succession.gone(who):
            self._end(who, reason)

    def _end(self, who: Identity, reason: LeaveReason) -> None:
        if reason is LeaveReason.REPLACED and who in self._gates:
            self._say(replaced(), who)
        self._forget(who)
        self._told_receipts.discard(who)
        self._errands.run(self._stay.remove(who))
        self._sink.left(who, reason)

    def _forget(self, who: Identity) -> None:
        self._silence.forget(who)
        self._gates.pop(who, None)
        if (limit := self._limits.pop(who, None)) is not None:
            limit.cancel()
