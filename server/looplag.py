"""How late an event loop is: what everything on it suffers at once. Knows no process of ours."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

PERIOD_SECONDS: Final = 0.05
KEPT: Final = 1200  # one minute


class LoopLag:
    """Wakes up regularly and notes by how much too late; keeps the newest wake-ups."""

    def __init__(self, period_seconds: float = PERIOD_SECONDS, kept: int = KEPT) -> None:
        self._period_seconds = period_seconds
        self._late: deque[float] = deque(maxlen=kept)

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._period_seconds
            await asyncio.sleep(self._period_seconds)
            self._late.append(max(0.0, loop.time() - due))

    def quantile(self, share: float) -> float:
        """The lag in seconds that `share` of the kept wake-ups stay within; 0 before the first."""
        ordered = sorted(self._late)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
