"""Messages on their way into a room, in order; whoever sends one never waits."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

MAX_WAITING: Final = 256

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outgoing:
    """One message: `to` nobody in particular means everybody in the room."""

    payload: str
    topic: str
    to: tuple[str, ...] = ()
    reliable: bool = True


Publish = Callable[[Outgoing], Awaitable[None]]


class Outbox:
    """A bounded queue and the task that empties it. A message that fails is counted and dropped."""

    def __init__(self, publish: Publish) -> None:
        self.counters: Counter[str] = Counter()
        self._publish = publish
        self._waiting: asyncio.Queue[Outgoing] = asyncio.Queue(MAX_WAITING)
        self._task = asyncio.create_task(self._run(), name="livekit outbox")

    def put(self, message: Outgoing) -> bool:
        """Send it next; False where too many wait already."""
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            self.counters["message_dropped"] += 1
            return False
        return True

    async def flush(self, seconds: float) -> None:
        """Wait until everything is sent, but not for long."""
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.join()
        except TimeoutError:
            self.counters["goodbye_unread"] += 1

    async def aclose(self) -> None:
        """Drop what waits."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            message = await self._waiting.get()
            try:
                await self._publish(message)
            except Exception as error:  # of the SDK; the room may be gone at this very moment
                self.counters["message_failed"] += 1
                log.debug("a message was not sent: %r", error)
            finally:
                self._waiting.task_done()
