"""A player without a browser, on the real LiveKit: joins, sees frames, sends what it likes."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from livekit import rtc

from server.protocol.keys import Keys
from server.transports.base import Topic
from server.transports.livekit.transport import ALIVE


@dataclass(frozen=True)
class Shown:
    """One decoded frame, with what its metadata say."""

    receipt: int
    frame_id: int
    width: int
    height: int
    i420: bytes


class LiveKitPlayer:
    """Joins with what `connect` answers. `answers`: whether it says that it is alive."""

    Unreachable = (rtc.ConnectError, rtc.participant.PublishDataError)

    def __init__(self, *, answers: bool = True) -> None:
        self.nonce = secrets.randbelow(2**32 - 1) + 1
        self.answers = answers
        self.seq = 0
        self.frames: list[Shown] = []
        self.messages: list[dict[str, Any]] = []
        self.gone: str | None = None
        self.room = rtc.Room()
        self._streams: list[rtc.VideoStream] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._repeater: asyncio.Task[None] | None = None
        self.room.on("data_received", lambda packet: self._heard(packet))
        self.room.on("track_subscribed", lambda track: self._subscribed(track))
        self.room.on("disconnected", lambda reason: self._disconnected(reason))

    async def join(self, details: Any) -> None:
        """Come into the room."""
        options = rtc.RoomOptions(auto_subscribe=True, connect_timeout=10.0)
        await self.room.connect(str(details["url"]), str(details["token"]), options)

    @property
    def who(self) -> str:
        """Its identity."""
        return self.room.local_participant.identity

    async def send(self, topic: str, payload: bytes, *, reliable: bool = True) -> None:
        """Send bytes."""
        await self.room.local_participant.publish_data(payload, reliable=reliable, topic=topic)

    async def command(self, **body: Any) -> None:
        """Send a command."""
        await self.send(Topic.COMMAND, json.dumps({"id": secrets.token_hex(4), **body}).encode())

    async def speak(self) -> None:
        """Make itself heard, as a page does with its hello."""
        while True:
            await self.send(ALIVE, b"here", reliable=False)
            await asyncio.sleep(0.1)

    async def hello(self, seconds: float = 30.0) -> None:
        """Introduce itself until that is acknowledged."""
        known = len(self.of("ack"))
        async with asyncio.timeout(seconds):
            while len(self.of("ack")) == known:
                await self.command(type="hello", nonce=self.nonce, version=1)
                try:
                    await self.until(lambda: len(self.of("ack")) > known, 0.25)
                except TimeoutError:
                    continue

    async def keys(self, *held: str, presses: dict[str, int] | None = None, epoch: int = 0) -> int:
        """Send a new control state, again and again as a page does; returns its receipt."""
        self.seq += 1
        message = Keys.model_validate(
            {
                "epoch": epoch,
                "nonce": self.nonce,
                "seq": self.seq,
                "held": held,
                "presses": presses or {},
            }
        )
        payload = message.model_dump_json().encode()
        if self._repeater is not None:
            self._repeater.cancel()
        await self.send(Topic.KEYS, payload, reliable=False)
        self._repeater = self._run(self._repeat(payload, 0.1 if held else 0.5))
        return self.nonce << 32 | self.seq

    async def _repeat(self, payload: bytes, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            with suppress(*self.Unreachable):  # for now
                await self.send(Topic.KEYS, payload, reliable=False)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Status messages of one type."""
        return [message for message in self.messages if message["type"] == kind]

    async def until(self, seen: Callable[[], bool], seconds: float = 15.0) -> None:
        """Wait for something to be seen or heard."""
        async with asyncio.timeout(seconds):
            while not seen():
                self._news.clear()
                await self._news.wait()

    async def aclose(self) -> None:
        """Say goodbye."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for stream in self._streams:
            await stream.aclose()
        await self.room.disconnect()

    def _heard(self, packet: rtc.DataPacket) -> None:
        if packet.topic == ALIVE:
            if self.answers:
                self._run(self._answer(packet.data))
        elif packet.topic == Topic.STATUS:
            self.messages.append(json.loads(packet.data))
        self._news.set()

    async def _answer(self, payload: bytes) -> None:
        try:
            await self.send(ALIVE, payload, reliable=False)
        except rtc.participant.PublishDataError:
            return  # it is being put out at this very moment

    def _subscribed(self, track: rtc.RemoteTrack) -> None:
        stream = rtc.VideoStream(track, format=rtc.VideoBufferType.I420)
        self._streams.append(stream)
        self._run(self._watch(stream))

    async def _watch(self, stream: rtc.VideoStream) -> None:
        async for event in stream:
            meta = event.metadata
            self.frames.append(
                Shown(
                    meta.user_timestamp if meta else 0,
                    meta.frame_id if meta else 0,
                    event.frame.width,
                    event.frame.height,
                    bytes(event.frame.data),
                )
            )
            self._news.set()

    def _disconnected(self, reason: rtc.DisconnectReason.ValueType) -> None:
        self.gone = rtc.DisconnectReason.Name(reason)
        self._news.set()

    def _run(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
