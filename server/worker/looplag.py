"""How late the event loop is: what everything on it suffers at once."""

from __future__ import annotations

import asyncio
from collections import deque

PERIOD_SECONDS = 0.02
WINDOW = 500  # measurements, 10 s
SHARE = 0.99


class LoopLag:
    """Lateness of a periodic wake-up over the last ten seconds."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=WINDOW)

    def note(self, late_seconds: float) -> None:
        """One wake-up came so late."""
        self._late.append(max(0.0, late_seconds))

    def p99_seconds(self) -> float:
        """The lateness that 99 of 100 wake-ups stay below; 0 before the first one."""
        if not self._late:
            return 0.0
        ordered = sorted(self._late)
        return ordered[min(len(ordered) - 1, int(len(ordered) * SHARE))]

    async def measure(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_SECONDS
            await asyncio.sleep(PERIOD_SECONDS)
            self.note(loop.time() - due)
