"""How much of something one address or one session may have. Pure."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from typing import Final

from server.front.errors import QuotaExceeded

_MINUTE: Final = 60.0
_MAX_ADDRESSES: Final = 10_000  # remembered; the longest silent one is forgotten first


class AddressQuota:
    """Counts per address; None as a limit means none."""

    def __init__(self, live: int | None, per_minute: int | None) -> None:
        self._max_live, self._per_minute = live, per_minute
        self._live: dict[str, int] = {}
        self._recent: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, address: str, now: float) -> None:
        """Count a new session of `address` at `now` (monotonic), or raise `QuotaExceeded`."""
        if self._max_live is not None and self._live.get(address, 0) >= self._max_live:
            raise QuotaExceeded(
                f"one address may have {self._max_live} sessions at a time here", retry_after=30.0
            )
        self._take_one_of_this_minute(address, now)
        self._live[address] = self._live.get(address, 0) + 1

    def give_back(self, address: str) -> None:
        """A session of `address` is over, or did not come to be."""
        left = self._live.get(address, 0) - 1
        if left > 0:
            self._live[address] = left
        else:
            self._live.pop(address, None)

    def _take_one_of_this_minute(self, address: str, now: float) -> None:
        if self._per_minute is None:
            return
        recent = self._recent.setdefault(address, deque())
        self._recent.move_to_end(address)
        while len(self._recent) > _MAX_ADDRESSES:
            self._recent.popitem(last=False)
        while recent and recent[0] <= now - _MINUTE:
            recent.popleft()
        if len(recent) >= self._per_minute:
            raise QuotaExceeded(
                f"one address may begin {self._per_minute} sessions a minute here",
                retry_after=recent[0] + _MINUTE - now,
            )
        recent.append(now)


class Pace:
    """So many at once, then so many a second."""

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst, self._per_second = burst, per_second
        self._left, self._at = burst, -math.inf

    def take(self, now: float) -> float:
        """0 if one more may be at `now` (monotonic); else in how many seconds one may."""
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = max(self._at, now)
        if self._left < 1:
            return (1 - self._left) / self._per_second
        self._left -= 1
        return 0.0
