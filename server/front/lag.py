"""How late the event loop is: the proof that nothing blocks it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

PERIOD_SECONDS: Final = 0.05
KEPT: Final = 1200  # one minute


class LoopLag:
    """Wakes up regularly and notes by how much too late."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=KEPT)

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_SECONDS
            await asyncio.sleep(PERIOD_SECONDS)
            self._late.append(max(0.0, loop.time() - due))

    def quantile(self, share: float) -> float:
        """The lag in seconds that `share` of the last minute's samples stayed within."""
        ordered = sorted(self._late)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
