"""A `TransportSink` that writes down what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from server.transports.base import Identity, LeaveReason, Topic


class FakeSink:
    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self._news = asyncio.Event()

    def joined(self, who: Identity) -> None:
        self._note("joined", who)

    def received(self, who: Identity, topic: Topic, payload: bytes) -> None:
        self._note("received", who, topic, payload)

    def left(self, who: Identity, reason: LeaveReason) -> None:
        self._note("left", who, reason)

    def kinds(self) -> list[tuple[object, ...]]:
        """Joins and leaves, without what was received."""
        return [event for event in self.events if event[0] != "received"]

    def payloads(self, topic: Topic | None = None) -> list[bytes]:
        return [
            event[3]
            for event in self.events
            if event[0] == "received" and topic in (None, event[2]) and isinstance(event[3], bytes)
        ]

    async def until(self, seen: Callable[[FakeSink], bool], seconds: float = 15.0) -> None:
        """Wait for `seen(self)`; a TimeoutError shows what was heard instead."""
        try:
            async with asyncio.timeout(seconds):
                while not seen(self):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"heard only {self.events[-20:]}") from None

    def _note(self, *event: object) -> None:
        self.events.append(event)
        self._news.set()
