"""Who has been silent for too long. Pure.

Silence is counted in watches, not in clock time, so a worker that was stopped itself does not take
all its players for dead.
"""

from __future__ import annotations


class Silence:
    """Watches people who answer whenever they are asked. `lost_after` watches without a word."""

    def __init__(self, lost_after: int) -> None:
        self._lost_after = max(1, lost_after)
        self._silent: dict[str, int] = {}

    @property
    def watched(self) -> tuple[str, ...]:
        """Everybody who is watched."""
        return tuple(self._silent)

    def watch(self, who: str) -> None:
        """Begin with `who`, who has just been heard."""
        self._silent[who] = 0

    def heard(self, who: str) -> None:
        """A word of `who`."""
        if who in self._silent:
            self._silent[who] = 0

    def forget(self, who: str) -> None:
        """Watch `who` no more."""
        self._silent.pop(who, None)

    def next(self) -> list[str]:
        """One watch is over: who is lost now. They are forgotten."""
        for who in self._silent:
            self._silent[who] += 1
        lost = [who for who, silent in self._silent.items() if silent > self._lost_after]
        for who in lost:
            del self._silent[who]
        return lost
