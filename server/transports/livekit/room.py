"""The worker's place in a session's room: what it hears there, and what it says and shows."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final, Protocol

from livekit import rtc

from server.transports.base import I420Frame, Identity, MediaServerUnreachable
from server.transports.livekit.outbox import Outbox, Outgoing
from server.transports.livekit.video import VideoOut

JOIN_SECONDS: Final = 10.0
LEAVE_SECONDS: Final = 2.0
FLUSH_SECONDS: Final = 0.5

log = logging.getLogger(__name__)
_leaving: set[asyncio.Task[None]] = set()  # of rooms that are left as soon as they may be


class RoomListener(Protocol):
    """What happens in the room. Called on the event loop; identities are stamped by LiveKit."""

    def arrived(self, who: Identity) -> None:
        """A participant has a media path; may be said again."""

    def departed(self, who: Identity, by_itself: bool) -> None:
        """A participant is gone; `by_itself`: it said goodbye."""

    def heard(self, who: Identity, topic: str, payload: bytes) -> None:
        """A message; `who` is "" where its sender is not known yet."""

    def interrupted(self) -> None:
        """The worker's own connection is broken; LiveKit's client tries to mend it."""

    def mended(self) -> None:
        """It is there again. Everybody who is there is told by `arrived`."""

    def thrown_out(self, reason: str) -> None:
        """The worker is out of the room for good; said once, and never after `aclose`."""


class JoinedRoom:
    """The worker in one room, from `join` to `aclose`."""

    def __init__(self, listener: RoomListener, bitrate: int) -> None:
        self._listener = listener
        self._bitrate = bitrate
        self._room = rtc.Room()
        self._outbox: Outbox | None = None
        self._video: VideoOut | None = None
        self._over = False
        self._settled = asyncio.Event()  # LiveKit's client does not try to come back just now
        self._settled.set()
        self._listen()

    async def join(self, url: str, token: str) -> None:
        """Come in. Raises `MediaServerUnreachable`; then only `aclose` may be called."""
        options = rtc.RoomOptions(auto_subscribe=False, dynacast=False, connect_timeout=5.0)
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await self._room.connect(url, token, options)
        except TimeoutError:
            raise MediaServerUnreachable(
                f"LiveKit did not let the worker in within {JOIN_SECONDS:.0f} s"
            ) from None
        except rtc.ConnectError as error:
            raise MediaServerUnreachable(f"LiveKit refuses the worker: {error}"[:300]) from error
        participant = self._room.local_participant
        self._outbox = Outbox(self._publish)
        self._video = VideoOut(participant, self._bitrate)
        self._tell_who_is_there()

    @property
    def counters(self) -> Counter[str]:
        """What was dropped, by name."""
        parts = (part.counters for part in (self._outbox, self._video) if part is not None)
        return sum(parts, Counter[str]())

    def show(self, frame: I420Frame) -> int | None:
        """Publish a picture; its RTP time without an offset, or None where it is not shown."""
        return None if self._over or self._video is None else self._video.offer(frame)

    def say(self, message: Outgoing) -> bool:
        """Send a message."""
        return not self._over and self._outbox is not None and self._outbox.put(message)

    async def simulate(self, scenario: rtc.SimulateScenarioKind.ValueType) -> None:
        """Break the connection as LiveKit's own tests do."""
        await self._room.simulate_scenario(scenario)

    async def aclose(self) -> None:
        """Say what is still to be said, and leave; bounded. The listener hears nothing more.

        A client that is trying to come back is let try, and leaves when it has or has not: where
        a room is left in the middle of that, livekit 1.2.1 ends the whole process (it takes the
        track of a publication that has none any more).
        """
        self._over = True
        if self._settled.is_set():
            await self._leave()
            return
        later = asyncio.create_task(self._leave_later())
        _leaving.add(later)
        later.add_done_callback(_leaving.discard)

    async def _leave_later(self) -> None:
        await self._settled.wait()
        await self._leave()

    async def _leave(self) -> None:
        if self._outbox is not None:
            if self._room.isconnected():
                await self._outbox.flush(FLUSH_SECONDS)
            await self._outbox.aclose()
        if self._video is not None:
            await self._video.aclose()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._room.disconnect()
        except Exception as error:  # of the SDK, or too slow: the server finds out by itself
            log.warning("the room was not left in good order: %r", error)

    async def _publish(self, message: Outgoing) -> None:
        await self._room.local_participant.publish_data(
            message.payload,
            reliable=message.reliable,
            topic=message.topic,
            destination_identities=list(message.to),
        )

    def _listen(self) -> None:
        room = self._room
        room.on("participant_active", lambda one: self._arrived(one))
        room.on("participant_disconnected", lambda one: self._departed(one))
        room.on("data_received", lambda packet: self._heard(packet))
        room.on("reconnecting", lambda: self._reconnecting())
        room.on("reconnected", lambda: self._reconnected())
        room.on("disconnected", lambda reason: self._disconnected(reason))

    def _arrived(self, one: rtc.RemoteParticipant) -> None:
        if not self._over:
            self._listener.arrived(Identity(one.identity))

    def _departed(self, one: rtc.RemoteParticipant) -> None:
        if not self._over:
            by_itself = one.disconnect_reason == rtc.DisconnectReason.CLIENT_INITIATED
            self._listener.departed(Identity(one.identity), by_itself)

    def _heard(self, packet: rtc.DataPacket) -> None:
        if self._over:
            return
        # A packet may overtake the news of who sent it, and then has no participant.
        who = "" if packet.participant is None else packet.participant.identity
        self._listener.heard(Identity(who), packet.topic or "", packet.data)

    def _reconnecting(self) -> None:
        self._settled.clear()
        if not self._over:
            self._listener.interrupted()

    def _reconnected(self) -> None:
        self._settled.set()
        if not self._over:
            self._listener.mended()
            self._tell_who_is_there()

    def _disconnected(self, reason: rtc.DisconnectReason.ValueType) -> None:
        self._settled.set()
        if not self._over:
            self._over = True
            self._listener.thrown_out(rtc.DisconnectReason.Name(reason).lower())

    def _tell_who_is_there(self) -> None:
        for one in list(self._room.remote_participants.values()):
            if one.state == rtc.ParticipantState.PARTICIPANT_STATE_ACTIVE:
                self._arrived(one)
