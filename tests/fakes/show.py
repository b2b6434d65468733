"""A transport with a sink that writes down, and a source of moving pictures."""

from __future__ import annotations

import asyncio

from server.transports.base import MediaTransport
from tests.fakes.frames import i420_frame
from tests.fakes.sink import FakeSink


class FakeShow:
    """Plays pictures into a transport; picture n has the receipt (7, n)."""

    sink: FakeSink
    transport: MediaTransport

    def __init__(self) -> None:
        self.sink = FakeSink()
        self.sent = 0
        self._playing: asyncio.Task[None] | None = None

    def play(self, fps: float = 16) -> None:
        """Send a picture after the other until `stop`."""
        self._playing = asyncio.create_task(self._pictures(1 / fps))

    def stop(self) -> None:
        """Send nothing more."""
        if self._playing is not None:
            self._playing.cancel()

    async def aclose(self) -> None:
        """Stop, and close the transport."""
        self.stop()
        await self.transport.aclose()

    async def _pictures(self, interval: float) -> None:
        while True:
            self.sent += 1
            self.transport.send_frame(i420_frame(self.sent, receipt=7 << 32 | self.sent))
            await asyncio.sleep(interval)
