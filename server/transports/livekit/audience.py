"""Who watches a session, and who of them has been given the controls. Pure."""

from __future__ import annotations

import secrets
from typing import Final

from server.protocol.rooms import SPECTATOR_PREFIX
from server.transports.base import Identity, TooManySpectators

MAX_SPECTATORS: Final = 32  # of one session, those who were invited and have not come included


class Audience:
    """The spectators of one session."""

    def __init__(self, max_spectators: int = MAX_SPECTATORS) -> None:
        self._max = max_spectators
        self._invited: dict[Identity, float] = {}
        self._present: set[Identity] = set()
        self.holder: Identity | None = None  # who has the controls

    @property
    def present(self) -> frozenset[Identity]:
        """Who is in the room."""
        return frozenset(self._present)

    def invite(self, now: float, until: float) -> Identity:
        """A name for somebody who will come before `until`; raises `TooManySpectators`."""
        self._invited = {who: end for who, end in self._invited.items() if end > now}
        if len(self._invited) + len(self._present) >= self._max:
            raise TooManySpectators(f"{self._max} people watch this session already")
        who = Identity(SPECTATOR_PREFIX + secrets.token_hex(5))
        self._invited[who] = until
        return who

    def arrived(self, who: Identity) -> bool:
        """Somebody is in the room; whether that is one of these."""
        if who in self._present or self._invited.pop(who, None) is not None:
            self._present.add(who)
            return True
        return False

    def room_lost(self, until: float) -> None:
        """The room is gone: everybody has left it, and may come back before `until`."""
        self._invited.update(dict.fromkeys(self._present, until))
        self._present.clear()

    def departed(self, who: Identity, until: float) -> bool:
        """Somebody has left, and may come back under its name; whether it had the controls."""
        if who in self._present:
            self._present.discard(who)
            self._invited[who] = until
        held = who == self.holder
        if held:
            self.holder = None
        return held
