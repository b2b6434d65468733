"""What the front door does at LiveKit: clean up after workers, and hear its hints.

Workers make and delete the rooms of their sessions. What a dead one has left behind is found here:
every room whose name says that it is of this service, and whose session is over. LiveKit's webhooks
are only hints to look sooner; nothing else is believed of them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from server.front.errors import BadSignature
from server.protocol.rooms import session_of

if TYPE_CHECKING:
    from server.settings import Settings

log = structlog.get_logger(__name__)

CALL_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 1.0  # from a hint to the look: workers delete their rooms themselves
LAST_SECONDS: Final = 2.0  # for the look at the end
CLOCK_SECONDS: Final = 60.0  # that two clocks may differ


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


def check_webhook(authorization: str, body: bytes, key: str, secret: str) -> None:
    """Raise `BadSignature` unless LiveKit has signed exactly this body, not long ago."""
    import jwt  # comes with the extra `livekit`

    try:
        claims = jwt.decode(
            authorization.removeprefix("Bearer ").strip(),
            secret,
            algorithms=["HS256"],
            issuer=key,
            leeway=CLOCK_SECONDS,
            options={"require": ["exp", "iss", "sha256"]},
        )
    except jwt.InvalidTokenError:
        raise BadSignature("this was not signed with this service's LiveKit key") from None
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    if not hmac.compare_digest(str(claims["sha256"]), digest):
        raise BadSignature("the signature is of another body")


class Rooms(Protocol):
    """LiveKit's rooms from outside."""

    async def names(self) -> Sequence[str]:
        """Of every room."""
        ...

    async def delete(self, room: str) -> None:
        """Put everybody out; harmless where there is no such room."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class RoomKeeper:
    """Looks for strays: at the start, every `every_seconds`, after hints, and at the end."""

    def __init__(
        self,
        rooms: Rooms,
        prefix: str,
        live: Callable[[], Iterable[str]],
        *,
        every_seconds: float,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self.removed = 0
        self.reachable: bool | None = None
        self.looked_at: float | None = None  # monotonic seconds
        self._rooms, self._prefix, self._live = rooms, prefix, live
        self._every, self._settle = every_seconds, settle_seconds
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
