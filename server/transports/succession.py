"""Which connection of a session is the live one, and what a newer one does to it. Pure.

Several connections may be on their way at once (a reload, a second tab); at most one is live.
The newer one replaces the older one only once it is up.
"""

from __future__ import annotations

from dataclasses import dataclass

from server.protocol.status import Error
from server.transports.base import Identity, PlayingElsewhere

QUIET_SECONDS = 3.0  # a live connection that was silent for so long no longer holds the session
MAX_PENDING = 3  # connections on their way; a fourth one takes the place of the oldest


def replaced() -> Error:
    """What a connection hears last when a newer one has taken its place."""
    return Error(code="playing_elsewhere", message="This session is now played in another tab.")


@dataclass
class _Connection:
    who: Identity
    number: int
    up: bool
    heard: float


class Succession:
    """The connections of one session, oldest first. Times are monotonic seconds."""

    def __init__(self, *, quiet_seconds: float = QUIET_SECONDS, max_pending: int = MAX_PENDING):
        self._quiet_seconds = quiet_seconds
        self._max_pending = max_pending
        self._numbers = 0
        self._connections: dict[Identity, _Connection] = {}
        self._away: dict[Identity, _Connection] = {}  # gone, but may come back under their name

    @property
    def live(self) -> Identity | None:
        """Who plays."""
        return next((c.who for c in self._connections.values() if c.up), None)

    @property
    def known(self) -> tuple[Identity, ...]:
        """Everybody who is live or on the way, oldest first."""
        return tuple(self._connections)

    def check(self, take_over: bool, now: float) -> None:
        """Raise `PlayingElsewhere` where a newcomer must ask first; changes nothing."""
        for connection in self._connections.values():
            if connection.up and not take_over and now - connection.heard < self._quiet_seconds:
                raise PlayingElsewhere("this session is being played in another tab or window")

    def admit(self, take_over: bool, now: float) -> tuple[Identity, tuple[Identity, ...]]:
        """A newcomer is on its way: its identity, and whose place it takes already now.

        Raises `PlayingElsewhere` as `check` does.
        """
        self.check(take_over, now)
        self._numbers += 1
        who = Identity(f"player-{self._numbers}")
        pending = [c.who for c in self._connections.values() if not c.up]
        displaced = tuple(pending[: max(0, len(pending) + 1 - self._max_pending)])
        for old in displaced:
            del self._connections[old]
        self._connections[who] = _Connection(who, self._numbers, up=False, heard=now)
        return who, displaced

    def came_up(self, who: Identity, now: float) -> tuple[Identity, ...]:
        """`who` is live from now on; returns the older connections, which are gone by this."""
        connection = self._connections[who]
        older = tuple(c.who for c in self._connections.values() if c.number < connection.number)
        for old in older:
            del self._connections[old]
        for old in [c.who for c in self._away.values() if c.number < connection.number]:
            del self._away[old]
        connection.up, connection.heard = True, now
        return older

    def away(self, who: Identity) -> bool:
        """`who` has lost its way here and may come `back`; False where that was known already."""
        connection = self._connections.pop(who, None)
        if connection is None:
            return False
        self._away[who] = connection
        while len(self._away) > self._max_pending:
            del self._away[next(iter(self._away))]
        return True

    def back(self, who: Identity, now: float) -> bool:
        """`who` was away and is on its way again; False where it is too late, and for others."""
        connection = self._away.pop(who, None)
        if connection is None:
            return False
        connection.up, connection.heard = False, now
        self._connections[who] = connection
        return True

    def heard(self, who: Identity, now: float) -> None:
        """A message or a packet of `who` has arrived."""
        if connection := self._connections.get(who):
            connection.heard = now

    def gone(self, who: Identity) -> bool:
        """Forget `who`; False where that was known already."""
        return self._connections.pop(who, None) is not None
