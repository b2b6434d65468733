"""A trial of LiveKit: a room is made, a worker publishes into it, a player sees it and answers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Final

import numpy as np
from livekit import rtc

from server.protocol.rooms import WORKER
from server.transports.base import I420Frame, Identity, MediaServerUnreachable
from server.transports.livekit.address import LiveKitAddress
from server.transports.livekit.room import JoinedRoom
from server.transports.livekit.service import RoomService
from server.transports.livekit.tokens import Role, mint

STEP_SECONDS: Final = 8.0
SIZE: Final = (64, 48)
RECEIPT: Final = 1 << 32 | 7
PLAYER: Final = "player-doctor"


class Unwell(Exception):
    """What is wrong, in one sentence, with the cure."""

    def __init__(self, what: str, words: str) -> None:
        """`what` names the thing that was examined."""
        super().__init__(words)
        self.what = what


class Examination:
    """One trial. A `RoomListener` of its worker."""

    def __init__(self, address: LiveKitAddress) -> None:
        self._address = address
        self._room = f"veldt-doctor-{secrets.token_hex(4)}"  # of no service: none removes it
        self._messages = asyncio.Event()

    async def steps(self) -> AsyncIterator[tuple[str, str]]:
        """What was examined and how it went, step by step; raises `Unwell` at the first fault."""
        async with RoomService(self._address) as service:
            try:
                await service.create(self._room)
            except MediaServerUnreachable as error:
                raise Unwell(
                    "livekit keys", f"{error}: compare LIVEKIT_API_KEY and _SECRET"
                ) from None
            yield "livekit keys", "rooms can be made"
            worker = JoinedRoom(self, 500_000)
            player = rtc.Room()
            try:
                async for step in self._meet(worker, player):
                    yield step
            finally:
                await player.disconnect()
                await worker.aclose()
                await service.delete(self._room)

    async def _meet(self, worker: JoinedRoom, player: rtc.Room) -> AsyncIterator[tuple[str, str]]:
        loop = asyncio.get_running_loop()
        track: asyncio.Future[rtc.Track] = loop.create_future()
        player.on("track_subscribed", lambda one: None if track.done() else track.set_result(one))
        token = mint(self._address, Role.WORKER, self._room, WORKER)
        try:
            await worker.join(self._address.url, token)
        except MediaServerUnreachable as error:
            raise Unwell("livekit media", _no_path(str(error))) from None
        yield "livekit media", "the worker is in a room"
        token = mint(self._address, Role.PLAYER, self._room, PLAYER)
        try:
            async with asyncio.timeout(STEP_SECONDS):
                await player.connect(self._address.url, token)
                began = loop.time()
                path = await self._watch(worker, player, track)
        except (TimeoutError, rtc.ConnectError) as error:
            raise Unwell("livekit player", _no_path(str(error) or "no picture came")) from None
        took = (loop.time() - began) * 1000
        yield "livekit player", f"pictures, receipts and messages pass ({path}, {took:.0f} ms)"

    async def _watch(
        self, worker: JoinedRoom, player: rtc.Room, track: asyncio.Future[rtc.Track]
    ) -> str:
        """Show and speak until a picture with its receipt and a message have come; the ICE path."""
        width, height = SIZE
        picture = I420Frame(
            np.full((height * 3 // 2, width), 128, np.uint8), width, height, 1, RECEIPT
        )

        async def show() -> None:
            while True:
                worker.show(picture)
                await player.local_participant.publish_data(b"doctor", topic="veldt.command")
                await asyncio.sleep(0.1)

        showing = asyncio.create_task(show())
        try:
            stream = rtc.VideoStream(await track)
            try:
                async for event in stream:
                    if event.metadata is not None and event.metadata.user_timestamp == RECEIPT:
                        break
            finally:
                await stream.aclose()
            await self._messages.wait()
            return await _path(player)
        finally:
            showing.cancel()
            await asyncio.wait([showing])

    # ------------------------------------------------------------------ RoomListener
    def arrived(self, who: Identity) -> None:
        """The player is there."""

    def departed(self, who: Identity, by_itself: bool) -> None:
        """The player is gone."""

    def heard(self, who: Identity, topic: str, payload: bytes) -> None:
        """A message has passed."""
        self._messages.set()

    def interrupted(self) -> None:
        """The trial's own limit ends it."""

    def mended(self) -> None:
        """It goes on."""

    def thrown_out(self, reason: str) -> None:
        """The trial's own limit ends it."""


def _no_path(words: str) -> str:
    return (
        f"{words}. Signalling works, media does not: open LiveKit's UDP port, and let its node_ip "
        "be an address that both this machine and the players reach"
    )


async def _path(player: rtc.Room) -> str:
    """Over which protocol and to which address the chosen ICE pair leads."""
    stats = await player.get_rtc_stats()
    reports = [*stats.subscriber_stats, *stats.publisher_stats]
    remotes = {
        report.remote_candidate.rtc.id: report.remote_candidate.candidate
        for report in reports
        if report.WhichOneof("stats") == "remote_candidate"
    }
    for report in reports:
        if report.WhichOneof("stats") == "candidate_pair":
            pair = report.candidate_pair.candidate_pair
            remote = remotes.get(pair.remote_candidate_id)
            if pair.nominated and remote is not None:
                return f"{remote.protocol} {remote.address}:{remote.port}"
    return "path unknown"
