"""The awaitable face of one `admission.lease.ExecutionLease`, on one event loop.

It adds waiting and nothing else: the order is the core's, and whether a session can use its turn
now is the business of the `Errand` it left here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from admission.lease import ExecutionLease


@dataclass(frozen=True)
class Errand:
    """What a session wants the lease for.

    `ready` says whether it could use a grant this very moment. `granted` uses it, in one
    synchronous step; what it raises is the worker's fault, not a player's.
    """

    ready: Callable[[], bool]
    granted: Callable[[], None]


class AsyncLease:
    """Who runs next. Every call comes from the event loop's thread."""

    def __init__(self) -> None:
        self._core = ExecutionLease()
        self._errands: dict[str, Errand] = {}
        self._handing_on = False
        self.grants = 0

    @property
    def holder(self) -> str | None:
        """Whose turn it is."""
        return self._core.holder

    def position(self, session: str) -> int | None:
        """How many turns come before this session's; None if it wants none."""
        return self._core.position(session)

    def wants(self, session: str) -> bool:
        """Whether it is waiting for a turn."""
        return session in self._errands

    def want(self, session: str, errand: Errand) -> None:
        """Queue for one turn. A session that waits already keeps its place."""
        self._errands[session] = errand
        self._core.want(session)
        self.hand_on()

    def unwant(self, session: str) -> None:
        """Give up the place."""
        if self._errands.pop(session, None) is not None:
            self._core.unwant(session)

    def release(self, session: str) -> None:
        """The turn is over."""
        self._core.release(session)
        self.hand_on()

    def leave(self, session: str) -> None:
        """The session ends: it waits no more, and a turn it holds lasts until `gone`."""
        self._errands.pop(session, None)
        self._core.leave(session)
        self.hand_on()

    def gone(self, session: str) -> None:
        """Nothing of a session that left runs any more."""
        self._core.gone(session)
        self.hand_on()

    def hand_on(self) -> None:
        """Grant what can be granted. Called whenever something has changed that may allow it."""
        if self._handing_on:
            return
        self._handing_on = True
        try:
            while (session := self._core.grant(self._grantable)) is not None:
                self.grants += 1
                self._errands.pop(session).granted()
        finally:
            self._handing_on = False

    async def wait_turn(self, session: str, ready: Callable[[], bool]) -> None:
        """Stand in line once, for work on the exclusive actor that is not a chunk.

        The actor does such work between two chunks, so the turn is given back as soon as it comes:
        being next is all that it is for. Cancelled, the place is given up.
        """
        passed = asyncio.Event()

        def granted() -> None:
            self._core.release(session)
            passed.set()

        self.want(session, Errand(ready, granted))
        try:
            await passed.wait()
        finally:
            if not passed.is_set():
                self.unwant(session)

    def _grantable(self, session: str) -> bool:
        return self._errands[session].ready()
