"""One task that waits for the nearest deadline of all sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadlines:
    """Calls `due(now)` when the time that `nearest()` gave has come; `poke` when that changed."""

    def __init__(
        self,
        nearest: Callable[[], float | None],
        due: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._nearest, self._due, self._clock = nearest, due, clock
        self._changed = asyncio.Event()

    def poke(self) -> None:
        """A deadline may have come nearer."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            at = self._nearest()
            try:
                # One more millisecond, so that the clock has passed the deadline for sure.
                async with asyncio.timeout(
                    None if at is None else max(0.0, at - self._clock()) + 0.001
                ):
                    await self._changed.wait()
            except TimeoutError:
                self._due(self._clock())
