"""How much one sender may cost: messages that are read, and errors that are answered.

Pure; one instance a sender, `now` in monotonic seconds. Memory does not grow with what is sent.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MESSAGES_PER_SECOND: Final = 250  # a game pad at 60 Hz with its repeats stays below
ERRORS_PER_SECOND: Final = 5
MAX_ERROR_CODES: Final = 32


class MessageBudget:
    """A token bucket: a burst of one second's worth, then the rate; the rest is dropped."""

    def __init__(self, now: float, per_second: float = MESSAGES_PER_SECOND) -> None:
        """Begin with a full bucket."""
        self.dropped = 0
        self._rate = per_second
        self._tokens = per_second
        self._at = now

    def admit(self, now: float) -> bool:
        """Whether the message that came at `now` is read."""
        gained = max(0.0, now - self._at) * self._rate
        self._at = max(self._at, now)
        self._tokens = min(self._rate, self._tokens + gained)
        if self._tokens < 1:
            self.dropped += 1
            return False
        self._tokens -= 1
        return True


class ErrorBudget:
    """At most five errors in any second; more of the same code are coalesced into the next one."""

    def __init__(self, per_second: int = ERRORS_PER_SECOND) -> None:
        """Nothing has been sent yet."""
        self._sent: deque[float] = deque(maxlen=per_second)
        self._waiting: dict[str, int] = {}

    def offer(self, code: str, now: float) -> int:
        """An error happened: 0 = say nothing now, n = send one that stands for n alike."""
        if not self._affordable(now):
            if code in self._waiting or len(self._waiting) < MAX_ERROR_CODES:
                self._waiting[code] = self._waiting.get(code, 0) + 1
            return 0
        self._sent.append(now)
        return self._waiting.pop(code, 0) + 1

    def overdue(self, now: float) -> list[tuple[str, int]]:
        """Errors kept back that may be sent now: (code, how many alike), oldest first."""
        ready: list[tuple[str, int]] = []
        while self._waiting and self._affordable(now):
            code = next(iter(self._waiting))
            ready.append((code, self._waiting.pop(code)))
            self._sent.append(now)
        return ready

    def next_overdue(self) -> float | None:
        """When `overdue` will have something; None while nothing is kept back."""
        return self._sent[0] + 1.0 if self._waiting else None

    def _affordable(self, now: float) -> bool:
        return len(self._sent) < (self._sent.maxlen or 0) or now >= self._sent[0] + 1.0
