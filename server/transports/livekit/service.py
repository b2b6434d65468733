"""Rooms from outside: made, searched and deleted through LiveKit's API."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import aiohttp
from livekit import api

from server.transports.base import Identity, MediaServerUnreachable
from server.transports.livekit.address import LiveKitAddress

CALL_SECONDS = 5.0
NOT_FOUND = "not_found"
ANNOUNCED = "here"


class RoomService:
    """LiveKit's API for one session. Every call ends within `CALL_SECONDS`.

    Every method raises `MediaServerUnreachable` where LiveKit does not answer or refuses.
    """

    def __init__(self, address: LiveKitAddress) -> None:
        self._address = address
        self._api = api.LiveKitAPI(
            address.http_url,
            address.api_key,
            address.api_secret,
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS),
            failover=False,
        )

    async def create(self, room: str) -> None:
        """Make a room that shows frames at once; harmless where it exists."""
        request = api.CreateRoomRequest(
            name=room,
            empty_timeout=self._address.empty_seconds,
            departure_timeout=self._address.departure_seconds,
            min_playout_delay=0,
            max_playout_delay=1,
            sync_streams=False,
        )
        try:
            await self._api.room.create_room(request)
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error) from error

    async def delete(self, room: str) -> None:
        """Delete a room and put everybody out; harmless where there is none."""
        try:
            await self._api.room.delete_room(api.DeleteRoomRequest(room=room))
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            if not _missing(error):
                raise _unreachable(error) from error

    async def remove(self, room: str, identity: str) -> None:
        """Put somebody out; harmless where they have left."""
        who = api.RoomParticipantIdentity(room=room, identity=identity)
        try:
            await self._api.room.remove_participant(who)
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            if not _missing(error):
                raise _unreachable(error) from error

    async def has(self, room: str, identity: str) -> bool:
        """Whether somebody is in a room now: LiveKit's own word, ahead of what it tells others."""
        who = api.RoomParticipantIdentity(room=room, identity=identity)
        try:
            await self._api.room.get_participant(who)
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            if _missing(error):
                return False
            raise _unreachable(error) from error
        return True

    async def inside(self, room: str) -> frozenset[Identity]:
        """Who is in a room now; nobody where there is no such room."""
        try:
            listed = await self._api.room.list_participants(api.ListParticipantsRequest(room=room))
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            if _missing(error):
                return frozenset()
            raise _unreachable(error) from error
        return frozenset(Identity(one.identity) for one in listed.participants)

    async def announce(self, room: str, identity: str) -> None:
        """Have everybody told at once of somebody who has come; harmless where nobody has.

        LiveKit keeps news of those who publish nothing for up to 3 s, but not a change of them.
        """
        change = api.UpdateParticipantRequest(room=room, identity=identity, metadata=ANNOUNCED)
        try:
            await self._api.room.update_participant(change)
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            if not _missing(error):
                raise _unreachable(error) from error

    async def let_speak(self, room: str, identity: str, may: bool) -> None:
        """Let somebody who watches send messages, or not any more; harmless where it has left."""
        permission = api.ParticipantPermission(
            can_subscribe=True, can_publish=False, can_publish_data=may, can_update_metadata=False
        )
        change = api.UpdateParticipantRequest(room=room, identity=identity, permission=permission)
        try:
            await self._api.room.update_participant(change)
        except (api.TwirpError, aiohttp.ClientError, TimeoutError, OSError) as error:
            if not _missing(error):
                raise _unreachable(error) from error

    async def aclose(self) -> None:
        """Close its connection."""
        await self._api.aclose()
        await asyncio.sleep(0)  # aiohttp closes its sockets in the next turn of the loop

    async def __aenter__(self) -> Self:
        """Use it for a while."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connection."""
        await self.aclose()


def _missing(error: Exception) -> bool:
    return isinstance(error, api.TwirpError) and error.code == NOT_FOUND


def _unreachable(error: Exception) -> MediaServerUnreachable:
    if isinstance(error, api.TwirpError) and error.status in (401, 403):
        return MediaServerUnreachable("LiveKit refuses the API key and secret")
    if isinstance(error, api.TwirpError):
        return MediaServerUnreachable(f"LiveKit refuses: {error.code}: {error.message}"[:300])
    words = str(error) or type(error).__name__
    return MediaServerUnreachable(f"LiveKit does not answer: {words}"[:300])
