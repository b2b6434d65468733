"""The worker's stay in its session's room, however often LiveKit ends it.

The room is made at first need, made anew when it is gone, and deleted at the end. Whoever is in it
is another file's business (transport.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final, Protocol

from server.protocol.rooms import WORKER, room_name
from server.transports.base import I420Frame, Identity, MediaServerUnreachable, TransportClosed
from server.transports.livekit.address import LiveKitAddress
from server.transports.livekit.errands import Errands
from server.transports.livekit.outbox import Outgoing
from server.transports.livekit.room import JoinedRoom
from server.transports.livekit.service import RoomService
from server.transports.livekit.tokens import Role, mint

AGAIN_SECONDS: Final = (0.2, 0.5, 1.0, 2.0)  # between two tries to come back into the room
MEND_SECONDS: Final = 4.0  # that a player waits for LiveKit's client to mend its connection
DELETE_SECONDS: Final = 2.0
GOODBYE_SECONDS: Final = 0.2  # for a last message to somebody who is put out

log = logging.getLogger(__name__)


class StayListener(Protocol):
    """What happens in the room. Called on the event loop."""

    @property
    def present(self) -> frozenset[Identity]:
        """Who is believed to be in the room, besides the worker."""
        ...

    def arrived(self, who: Identity) -> None:
        """A participant has a media path; may be said again."""

    def departed(self, who: Identity, by_itself: bool) -> None:
        """A participant is gone; `by_itself`: it said goodbye."""

    def heard(self, who: Identity, topic: str, payload: bytes) -> None:
        """A message; `who` is "" where its sender is not known yet."""

    def cut_off(self, *, for_good: bool) -> None:
        """Nobody is reached any more; `for_good`: they have to come into a new room."""


class RoomStay:
    """One session's room, with the worker in it. A `RoomListener`. Lives on one event loop."""

    def __init__(
        self,
        session: str,
        address: LiveKitAddress,
        bitrate: int,
        listener: StayListener,
        errands: Errands,
    ) -> None:
        """Nothing is made before `be_there`."""
        self.name = room_name(address.room_prefix, session)
        self._session = session
        self._address = address
        self._bitrate = bitrate
        self._listener = listener
        self._errands = errands
        self._room: JoinedRoom | None = None
        self._service: RoomService | None = None
        self._opening: asyncio.Task[None] | None = None
        self._mending: asyncio.Event | None = None  # set when it is over, well or not
        self._closed = False
        self._counters: Counter[str] = Counter()

    @property
    def room(self) -> JoinedRoom | None:
        """The room, while the worker is in it."""
        return self._room

    @property
    def counters(self) -> Counter[str]:
        """What was dropped on the way into the rooms that were left, by name."""
        return self._counters

    async def be_there(self) -> None:
        """Have the room, and be in it. Raises `MediaServerUnreachable` and `TransportClosed`."""
        self._check_open()
        if self._mending is not None:
            try:
                async with asyncio.timeout(MEND_SECONDS):
                    await self._mending.wait()
            except TimeoutError:
                raise MediaServerUnreachable("the way to LiveKit is being mended") from None
        if self._room is None:
            if self._opening is None or self._opening.done():
                self._opening = asyncio.create_task(self._open(), name=f"open {self.name}")
            await asyncio.shield(self._opening)
        self._check_open()

    def show(self, frame: I420Frame) -> int | None:
        """Publish a picture; its RTP time without an offset, or None where it is not shown."""
        return None if self._room is None else self._room.show(frame)

    def say(self, message: Outgoing) -> bool:
        """Send a message; False where it cannot be sent."""
        return self._room is not None and self._room.say(message)

    def doubt(self) -> None:
        """The room may be gone without a word, or somebody who is believed to be in it."""
        if self._room is not None and self._mending is None:
            self._errands.run(self._look(self._room))

    def close(self) -> None:
        """Make no room any more, and do nothing about one that is lost."""
        self._closed = True
        self._stop_mending()

    async def aclose(self) -> None:
        """Leave the room and delete it."""
        self.close()
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if not self._opening.cancelled():
                self._opening.exception()  # whoever asked for it was told
        room, self._room = self._room, None
        if room is not None:
            await room.aclose()
            self._counters.update(room.counters)
        if self._service is not None:
            try:
                async with asyncio.timeout(DELETE_SECONDS):
                    await self._service.delete(self.name)
            except (MediaServerUnreachable, TimeoutError) as error:
                log.warning("room %s is left to the front door: %s", self.name, error)
            await self._service.aclose()

    # ------------------------------------------------------------------ what LiveKit is asked
    async def has(self, who: Identity) -> bool:
        """Whether somebody is in the room: LiveKit's own word, ahead of what it tells others."""
        return self._service is not None and await self._service.has(self.name, who)

    async def announce(self, who: Identity) -> None:
        """Have it said at once that somebody is there, if that is so."""
        if self._service is not None:
            try:
                await self._service.announce(self.name, who)
            except MediaServerUnreachable as error:
                log.info("session %s: %s", self._session, error)

    async def let_speak(self, who: Identity, *, may: bool) -> None:
        """Let somebody who watches send messages, or not any more."""
        if self._service is not None:
            try:
                await self._service.let_speak(self.name, who, may)
            except MediaServerUnreachable as error:
                log.warning("session %s: %s keeps its rights: %s", self._session, who, error)

    async def remove(self, who: Identity) -> None:
        """Put somebody out of the room, after what it is told has left."""
        await asyncio.sleep(GOODBYE_SECONDS)
        if self._service is not None:
            try:
                await self._service.remove(self.name, who)
            except MediaServerUnreachable as error:
                log.info("session %s: %s stays in the room: %s", self._session, who, error)

    # ------------------------------------------------------------------ RoomListener
    def arrived(self, who: Identity) -> None:
        """A participant has a media path."""
        self._listener.arrived(who)

    def departed(self, who: Identity, by_itself: bool) -> None:
        """A participant is gone."""
        self._listener.departed(who, by_itself)

    def heard(self, who: Identity, topic: str, payload: bytes) -> None:
        """A message."""
        self._listener.heard(who, topic, payload)

    def interrupted(self) -> None:
        """The worker's connection is broken: for its players that is as if they were away."""
        log.info("session %s: the connection to LiveKit is broken", self._session)
        self._listener.cut_off(for_good=False)
        if self._mending is None:
            self._mending = asyncio.Event()
            self._errands.run(self._keep(self._mending))

    def mended(self) -> None:
        """The worker's connection is there again."""
        log.info("session %s: the connection to LiveKit is mended", self._session)
        self._stop_mending()

    def thrown_out(self, reason: str) -> None:
        """The worker is out of the room: a fresh room takes its place, if there can be one."""
        log.warning("session %s: out of its LiveKit room: %s", self._session, reason)
        self._stop_mending()
        room, self._room = self._room, None
        if room is not None:
            self._counters.update(room.counters)
            self._errands.run(room.aclose())
        self._listener.cut_off(for_good=True)
        self._errands.run(self._come_back())

    # ------------------------------------------------------------------ coming and going
    async def _open(self) -> None:
        if self._service is None:
            self._service = RoomService(self._address)
        await self._service.create(self.name)
        room = JoinedRoom(self, self._bitrate)
        token = mint(self._address, Role.WORKER, self.name, WORKER)
        try:
            await room.join(self._address.url, token)
        except BaseException:
            await asyncio.shield(room.aclose())
            raise
        self._room = room

    async def _come_back(self) -> None:
        """Be in the room again; the session's own limits say for how long that is tried."""
        tries = 0
        while not self._closed and self._room is None:
            try:
                await self.be_there()
            except MediaServerUnreachable as error:
                log.info("session %s: %s", self._session, error)
                await asyncio.sleep(AGAIN_SECONDS[min(tries, len(AGAIN_SECONDS) - 1)])
                tries += 1

    async def _keep(self, mending: asyncio.Event) -> None:
        """Have the room while LiveKit's client tries to come back: a restart has forgotten it.

        Nobody else joins as the worker meanwhile: the two would put each other out.
        """
        assert self._service is not None
        tries = 0
        while not mending.is_set():
            try:
                await self._service.create(self.name)
            except MediaServerUnreachable as error:
                log.info("session %s: %s", self._session, error)
            await asyncio.sleep(AGAIN_SECONDS[min(tries, len(AGAIN_SECONDS) - 1)])
            tries += 1

    async def _look(self, room: JoinedRoom) -> None:
        """Compare what is believed with what LiveKit says."""
        assert self._service is not None
        believed = self._listener.present
        try:
            inside = await self._service.inside(self.name)
        except MediaServerUnreachable as error:
            log.info("session %s: %s", self._session, error)
            return
        if self._room is not room or self._mending is not None:
            return  # it is being taken care of
        if WORKER not in inside:
            self.thrown_out("LiveKit does not know of it")
            return
        for who in believed - inside:
            log.warning("session %s: %s has gone without a word", self._session, who)
            self._listener.departed(who, by_itself=False)

    def _check_open(self) -> None:
        if self._closed:
            raise TransportClosed("this session is closed")

    def _stop_mending(self) -> None:
        if self._mending is not None:
            self._mending.set()
            self._mending = None
