"""A token bucket: a burst of one second's worth, then so much a second. Pure."""

from __future__ import annotations


class Bucket:
    """What one sender may cost. Times are seconds of one clock that never goes back."""

    def __init__(self, per_second: float, now: float) -> None:
        """Begin full."""
        self._rate = per_second
        self._tokens = per_second
        self._filled_at = now

    def admits(self, now: float, cost: float = 1.0) -> bool:
        """Take `cost` if there is that much; else take nothing."""
        self._tokens = min(self._rate, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < cost:
            return False
        self._tokens -= cost
        return True
