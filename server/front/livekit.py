"""What the front door does at LiveKit: clean up after workers, and find players who are gone.

Workers make and delete the rooms of their sessions. What a dead one has left behind is found here:
every room whose name says that it is of this service, and whose session is over. And the other way
round: a session that is played, as far as its worker knows, while its room is gone or nobody is in
it. Its worker is told to look. LiveKit's webhooks are only hints to look sooner.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from server.protocol.rooms import WORKER, room_name, session_of

if TYPE_CHECKING:
    from server.settings import Settings

log = structlog.get_logger(__name__)

CALL_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 1.0  # from a hint to the look: workers delete their rooms themselves
LAST_SECONDS: Final = 2.0  # for the look at the end
LACKS_IN_A_ROW: Final = 2  # looks, so that somebody who is just joining is no fault


def livekit_sources(url: str | None) -> tuple[str, ...]:
    """What the page's policy has to allow so that a browser reaches LiveKit at `url`.

    >>> livekit_sources("wss://livekit.example.org")
    ('wss://livekit.example.org', 'https://livekit.example.org')
    """
    return () if url is None else (url, url.replace("ws", "http", 1))


def strays(rooms: Iterable[str], prefix: str, live: Iterable[str]) -> list[str]:
    """The rooms of this service whose session is not live.

    >>> strays(["v.a", "v.b", "w.c", "lobby"], "v", ["a"])
    ['v.b']
    """
    known = set(live)
    return [
        room
        for room in rooms
        if (session := session_of(prefix, room)) is not None and session not in known
    ]


class Rooms(Protocol):
    """LiveKit's rooms from outside."""

    async def names(self) -> Sequence[str]:
        """Of every room."""
        ...

    async def inside(self, room: str) -> frozenset[str]:
        """Who is in it; nobody where there is no such room."""
        ...

    async def delete(self, room: str) -> None:
        """Put everybody out; harmless where there is no such room."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class RoomKeeper:
    """Looks for strays: at the start, every `every_seconds`, after hints, and at the end.

    Every `every_seconds` it looks for lost players too.
    """

    def __init__(
        self,
        rooms: Rooms,
        prefix: str,
        live: Callable[[], Iterable[str]],
        *,
        every_seconds: float,
        settle_seconds: float = SETTLE_SECONDS,
        played: Callable[[], Iterable[str]] = tuple,
        on_lost: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`live` and `played` name sessions; `on_lost` hears of one whose players seem to be gone.

        Args:
            rooms: LiveKit's.
            prefix: Of this service's rooms.
            live: Whose rooms are no strays.
            every_seconds: Between two looks without a hint.
            settle_seconds: From a hint to the look.
            played: Those who believe that a player is connected now.
            on_lost: Has the worker of a session find out.
        """
        self.removed = 0
        self.lost = 0
        self.reachable: bool | None = None
        self.looked_at: float | None = None  # monotonic seconds
        self._rooms, self._prefix, self._live = rooms, prefix, live
        self._every, self._settle = every_seconds, settle_seconds
        self._played, self._on_lost = played, on_lost
        self._lacks: dict[str, int] = {}  # session → looks in a row that found nobody
        self._compare_at = time.monotonic()
        self._hint = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look now and again."""
        self._task = asyncio.create_task(self._run(), name="room keeper")

    def hint(self) -> None:
        """Something has happened: look soon."""
        self._hint.set()

    async def look(self) -> None:
        """Remove what is left of sessions that are over."""
        try:
            names = await self._rooms.names()
            for room in strays(names, self._prefix, self._live()):
                await self._rooms.delete(room)
                self.removed += 1
                log.info("stray_room_removed", room=room)
            if self._on_lost is not None and time.monotonic() >= self._compare_at:
                self._compare_at = time.monotonic() + self._every
                await self._find_lost(self._on_lost)
        except RoomsUnreachable as error:
            if self.reachable is not False:
                log.warning("livekit_unreachable", error=str(error))
            self.reachable = False
            return
        if self.reachable is False:
            log.info("livekit_reachable")
        self.reachable, self.looked_at = True, time.monotonic()

    async def aclose(self) -> None:
        """Look once more, but not for long. Idempotent."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self.look()
        await self._rooms.aclose()

    async def _find_lost(self, on_lost: Callable[[str], Awaitable[None]]) -> None:
        """Compare what workers believe with who is in the rooms."""
        lacks = dict[str, int]()
        for session in list(self._played()):
            inside = await self._rooms.inside(room_name(self._prefix, session))
            if WORKER not in inside or inside == {WORKER}:
                lacks[session] = self._lacks.get(session, 0) + 1
        self._lacks = lacks
        for session in {*lacks} & {*self._played()}:
            if lacks[session] >= LACKS_IN_A_ROW:
                del lacks[session]
                self.lost += 1
                log.warning("room_without_players", session_id=session)
                await on_lost(session)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:  # a bug of ours: the next look may go better
                log.exception("room_keeper_failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._hint.wait()
                    await asyncio.sleep(self._settle)
            self._hint.clear()


class RoomsUnreachable(Exception):
    """LiveKit does not answer, or refuses; one sentence."""


class LiveKitRooms:
    """`Rooms` by LiveKit's API."""

    def __init__(self, settings: Settings) -> None:
        import aiohttp  # both are slow to import, and only needed with LiveKit
        from livekit import api

        assert settings.livekit_url is not None
        assert settings.livekit_api_secret is not None
        self._request = api
        self._faults = (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError)
        self._api = api.LiveKitAPI(
            settings.livekit_url.replace("ws", "http", 1),
            settings.livekit_api_key,
            settings.livekit_api_secret.get_secret_value(),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS),
            failover=False,
        )

    async def names(self) -> Sequence[str]:
        """Of every room."""
        try:
            listed = await self._api.room.list_rooms(self._request.ListRoomsRequest())
        except self._faults as error:
            raise RoomsUnreachable(str(error) or type(error).__name__) from error
        return [room.name for room in listed.rooms]

    async def inside(self, room: str) -> frozenset[str]:
        """Who is in it; nobody where there is no such room."""
        try:
            request = self._request.ListParticipantsRequest(room=room)
            listed = await self._api.room.list_participants(request)
        except self._faults as error:
            if getattr(error, "code", None) == "not_found":
                return frozenset()
            raise RoomsUnreachable(str(error) or type(error).__name__) from error
        return frozenset(one.identity for one in listed.participants)

    async def delete(self, room: str) -> None:
        """Put everybody out."""
        try:
            await self._api.room.delete_room(self._request.DeleteRoomRequest(room=room))
        except self._faults as error:
            if getattr(error, "code", None) != "not_found":
                raise RoomsUnreachable(str(error) or type(error).__name__) from error

    async def aclose(self) -> None:
        """Close the connection."""
        await self._api.aclose()
