"""One task that waits for the nearest deadline of all sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger(__name__)

RETRY_SECONDS: Final = 1.0


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
                await self._run_due()

    async def _run_due(self) -> None:
        try:
            self._due(self._clock())
        except Exception:  # a bug of ours with one session: the others keep their deadlines
            log.exception("deadline_failed")
            await asyncio.sleep(RETRY_SECONDS)
