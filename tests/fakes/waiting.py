"""Waiting for something that is to become true, within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

MARGIN_SECONDS: Final = 8.0  # on contractual limits, for a machine that is busy with other things


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 15.0) -> None:
    """Return once `condition` holds; TimeoutError if it does not within `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(0.005)
