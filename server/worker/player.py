"""One connection of a session: what it may cost, and how it is told no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from server.protocol.status import Error
from server.transports.base import Identity
from server.worker.budget import MAX_ERROR_CODES, ErrorBudget, MessageBudget

Say = Callable[[Error, Identity], object]


class Player:
    """A connection that is up, until it leaves. Errors to it are coalesced to five a second."""

    def __init__(self, who: Identity, say: Say, clock: Callable[[], float]) -> None:
        self.who = who
        self.greeted = False  # whether its `hello` was acknowledged: only then it may control
        self._say = say
        self._clock = clock
        self._messages = MessageBudget(clock())
        self._errors = ErrorBudget()
        self._words: dict[str, str] = {}
        self._later: asyncio.TimerHandle | None = None

    @property
    def dropped(self) -> int:
        """Messages that were more than it may send."""
        return self._messages.dropped

    def admits(self) -> bool:
        """Whether a message that comes now is read."""
        return self._messages.admit(self._clock())

    def refuse(self, code: str, message: str, command_id: str | None = None) -> None:
        """Tell it that something it sent has changed nothing, now or with others alike."""
        now = self._clock()
        if count := self._errors.offer(code, now):
            self._say(Error(code=code, message=message, id=command_id, count=count), self.who)
            return
        if code in self._words or len(self._words) < MAX_ERROR_CODES:
            self._words[code] = message
        self._arm(now)

    def close(self) -> None:
        """It is gone; nothing more is said."""
        if self._later is not None:
            self._later.cancel()

    def _arm(self, now: float) -> None:
        due = self._errors.next_overdue()
        if due is None or (self._later is not None and not self._later.cancelled()):
            return
        self._later = asyncio.get_running_loop().call_later(max(0.0, due - now), self._catch_up)

    def _catch_up(self) -> None:
        self._later = None
        now = self._clock()
        for code, count in self._errors.overdue(now):
            message = self._words.pop(code, code)
            self._say(Error(code=code, message=message, count=count), self.who)
        self._arm(now)
