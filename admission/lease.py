"""Boundary 2: whose chunk runs next on a worker, and when a session should ask for one.

Pure: `ExecutionLease` knows no clock at all, `JustInTime` gets times as numbers (monotonic
seconds). A grant is one whole chunk and is never taken back; a session re-enters at the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from admission.window import Window

SLACK_FLOOR_SECONDS: Final = 0.010
SLACK_CEILING_CHUNKS: Final = 0.25
WINDOW: Final = 32  # chunks; at 4 chunks a second, what the last eight seconds were like
ENOUGH: Final = 8  # measurements before the slack trusts them


class LeaseError(Exception):
    """The caller broke a rule of the lease."""

    code = "lease_error"


class NotHolder(LeaseError):
    """A session gave back what it does not hold."""

    code = "not_holder"


class StillLeaving(LeaseError):
    """A session wants a chunk while its last one is not known to be over."""

    code = "still_leaving"


@dataclass
class LeaseCounters:
    """What has happened so far."""

    grants: int = 0
    skips: int = 0  # a session that was first in line could not use the grant, and kept its place
    left_holding: int = 0  # a holder left, died or hung, and the lease waited for its actor


class ExecutionLease:
    """FIFO over the sessions that want a chunk; one holder.

    With k sessions that want, nobody sees more than k - 1 other chunks granted before its own, as
    long as it is grantable.
    """

    def __init__(self) -> None:
        self.counters = LeaseCounters()
        self._waiting: dict[str, None] = {}  # in order
        self._holder: str | None = None
        self._leaving = False

    @property
    def holder(self) -> str | None:
        """Who runs, or is leaving."""
        return self._holder

    @property
    def leaving(self) -> bool:
        """Whether the holder has left and the lease waits for its actor."""
        return self._leaving

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who wants a chunk, first in line first."""
        return tuple(self._waiting)

    def position(self, session: str) -> int | None:
        """0 = holds it, n = n-th in line, None = wants none."""
        if session == self._holder:
            return 0
        for place, waiting in enumerate(self._waiting, 1):
            if waiting == session:
                return place
        return None

    def want(self, session: str) -> None:
        """Queue for one chunk; a session that waits already keeps its place.

        A holder may want its next chunk before it has given this one back.
        """
        if self._leaving and session == self._holder:
            raise StillLeaving(f"session {session} is leaving")
        self._waiting.setdefault(session)

    def unwant(self, session: str) -> None:
        """Give up the place in line; nothing happens without one. A held lease stays held."""
        self._waiting.pop(session, None)

    def grant(self, grantable: Callable[[str], bool]) -> str | None:
        """The next holder: the first in line for whom `grantable` is true, or None.

        `grantable` must not change the lease. The others keep their places.
        """
        if self._holder is not None:
            return None
        for session in self._waiting:
            if grantable(session):
                break
            self.counters.skips += 1
        else:
            return None
        del self._waiting[session]
        self._holder = session
        self.counters.grants += 1
        return session

    def release(self, session: str) -> None:
        """The holder's chunk is over as far as the lease protects it.

        For a holder that has left this is its actor's acknowledgement, as `gone` is.
        """
        if session != self._holder:
            raise NotHolder(f"session {session} does not hold the lease")
        self._holder = None
        self._leaving = False

    def leave(self, session: str) -> None:
        """The session ends, or its actor has failed: it wants nothing more.

        If it holds the lease, its chunk may still be running: nobody is granted anything before
        `gone` or `release`.
        """
        self._waiting.pop(session, None)
        if session == self._holder and not self._leaving:
            self._leaving = True
            self.counters.left_holding += 1

    def gone(self, session: str) -> None:
        """The actor has acknowledged, or was declared dead: nothing of the session runs any more.

        Harmless for a session that holds nothing.
        """
        self._waiting.pop(session, None)
        if session == self._holder:
            self._holder = None
            self._leaving = False


class JustInTime:
    """When a running session should want its next chunk.

    As late as possible, so that the control it is bound to is young and at most one chunk is
    unplayed, and so early that the first picture is there when the last one has been shown:
    `playout_end - predicted(grant → first frame) - slack`. What is measured must not contain time
    that the session chose to wait.
    """

    def __init__(self, chunk_seconds: float, predicted_seconds: float = 0.0) -> None:
        """Nothing is measured yet.

        Args:
            chunk_seconds: How long one chunk plays at the world's frame rate.
            predicted_seconds: Grant → first frame, believed until it has been measured.
        """
        if not chunk_seconds > 0:
            raise ValueError("a chunk plays for some time")
        self._chunk = chunk_seconds
        self._initial = predicted_seconds
        self._from_grant = Window(WINDOW)
        self._from_due = Window(WINDOW)
        self._due: float | None = None  # of the next chunk, where that lay ahead

    @property
    def predicted(self) -> float:
        """Seconds from a grant to the chunk's first decoded frame."""
        measured = self._from_grant.median()
        return self._initial if measured is None else measured

    @property
    def slack(self) -> float:
        """Seconds by which (due → first frame) is late at times: its p95 - p50, within bounds.

        Whatever differs from chunk to chunk is in it: computing, a loop that wakes up late, and
        queueing for the lease, so that it grows with the number of players. Queueing that is
        always there is not: such a chunk is late, its clock restarts, and the moments at which
        sessions want their chunks move apart until nobody queues.
        """
        ceiling = self._chunk * SLACK_CEILING_CHUNKS
        p95, p50 = self._from_due.percentile(0.95), self._from_due.median()
        if p95 is None or p50 is None or len(self._from_due) < ENOUGH:
            return ceiling
        return min(max(p95 - p50, SLACK_FLOOR_SECONDS), ceiling)

    def measured(self, due: float, granted: float, first_frame: float) -> None:
        """One chunk's times: when it was due to be wanted, granted, and its first frame decoded."""
        self._from_grant.add(first_frame - granted)
        self._from_due.add(first_frame - due)

    def want_at(self, playout_end: float, period_seconds: float, now: float) -> float:
        """When to want the next chunk; `now` or earlier means at once.

        Args:
            playout_end: When everything that was granted so far will have been shown.
            period_seconds: Predicted time between two of this session's chunks
                (`WorkerLoad.period`). A worker that needs longer for a chunk than it plays cannot
                be in time: then at once, or when the chunk before has begun to play at the latest.
            now: The current time.
        """
        if period_seconds >= self._chunk:
            last_begins = playout_end - period_seconds
            at = last_begins - self.predicted + SLACK_FLOOR_SECONDS
        else:
            at = playout_end - self.predicted - self.slack
        if at > now:
            self._due = at
        return at

    def wanted(self, now: float) -> float:
        """The next chunk is wanted at `now`; returns when that was due.

        Earlier than `now` where whoever was to wake up at `want_at` did so late: the slack has to
        cover that too. A chunk that was behind before it could be wanted was due now.
        """
        due = now if self._due is None else min(self._due, now)
        self._due = None
        return due

    def unwanted(self) -> None:
        """No chunk is wanted for now, so that none is due."""
        self._due = None
