"""Waiting on one event loop for something that other threads bring about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Wakeups:
    """Coroutines that wait for a condition, by key. All calls on the loop's thread.

    A wake-up only says "look again", so one too many does no harm.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    def wake(self, key: str) -> None:
        """Let everyone who waits for `key` look again."""
        for waiter in self._waiting.pop(key, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def until(self, key: str, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds; it is looked at now and at every wake-up of `key`."""
        while not condition():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(key, set()).add(waiter)
            try:
                await waiter
            finally:
                if (others := self._waiting.get(key)) is not None:
                    others.discard(waiter)
                    if not others:
                        del self._waiting[key]
