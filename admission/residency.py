"""Boundary 1: who may be resident on which worker.

Pure bookkeeping of seats. A seat is taken by `request` and comes back by `release`, which is to be
called only when the worker has acknowledged the close; a seat whose release failed is quarantined
and stays taken until it is released after all or its worker is removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

RETRY_AFTER_FULL_SECONDS: Final = 30.0
RETRY_AFTER_NO_WORKER_SECONDS: Final = 5.0

RefusalReason = Literal["full", "no_worker"]


@dataclass(frozen=True)
class Admitted:
    """The session has a seat on `worker`."""

    worker: str


@dataclass(frozen=True)
class Queued:
    """The session waits; 0 is next."""

    position: int


@dataclass(frozen=True)
class Refused:
    """There is no room, and no place to wait; ask again in `retry_after` seconds."""

    reason: RefusalReason
    retry_after: float


Answer = Admitted | Queued | Refused


# ------------------------------------------------------------------ events of a mutation
@dataclass(frozen=True)
class SeatFreed:
    """`session` holds nothing any more; its seat on `worker` is free."""

    session: str
    worker: str


@dataclass(frozen=True)
class SeatQuarantined:
    """Releasing `session` failed for the `failures`-th time; its seat stays taken."""

    session: str
    worker: str
    failures: int


@dataclass(frozen=True)
class SeatLost:
    """The worker is gone, and the seat of `session` with it."""

    session: str
    worker: str


@dataclass(frozen=True)
class WorkerEmptied:
    """A draining worker has no session left; it can be stopped."""

    worker: str


Event = SeatFreed | SeatQuarantined | SeatLost | WorkerEmptied


@dataclass(frozen=True)
class Occupancy:
    """Seats by what they are; `free + resident + quarantined == capacity`."""

    free: int
    resident: int
    quarantined: int

    @property
    def capacity(self) -> int:
        """All seats."""
        return self.free + self.resident + self.quarantined


class AdmissionError(Exception):
    """The caller broke a rule of the bookkeeping."""

    code = "admission_error"


class DuplicateSession(AdmissionError):
    """A session asked for a second seat."""

    code = "duplicate_session"


class DuplicateWorker(AdmissionError):
    """A worker was added twice."""

    code = "duplicate_worker"


class UnknownWorker(AdmissionError):
    """There is no such worker."""

    code = "unknown_worker"


@dataclass
class _Worker:
    seats: int
    draining: bool = False
    resident: set[str] = field(default_factory=set)
    quarantined: dict[str, int] = field(default_factory=dict)  # session -> failed releases

    @property
    def taken(self) -> int:
        return len(self.resident) + len(self.quarantined)

    @property
    def free(self) -> int:
        return self.seats - self.taken


class ResidentAdmission:
    """Seats of all workers, and who has them.

    `request` answers with a value, never an exception, where there is no room. Every other
    mutation returns the events it caused, in order. A session that is unknown is left alone, so
    that releasing twice is harmless.
    """

    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}
        self._seat_of: dict[str, str] = {}  # session -> worker

    def request(self, session: str) -> Answer:
        """Give `session` a seat on the least occupied worker, or say why not."""
        if session in self._seat_of:
            raise DuplicateSession(f"session {session} has a seat already")
        open_workers = [(name, w) for name, w in self._workers.items() if not w.draining]
        if not open_workers:
            return Refused("no_worker", RETRY_AFTER_NO_WORKER_SECONDS)
        with_room = [(w.taken / w.seats, name) for name, w in open_workers if w.free > 0]
        if not with_room:
            return Refused("full", RETRY_AFTER_FULL_SECONDS)
        _, name = min(with_room)
        self._workers[name].resident.add(session)
        self._seat_of[session] = name
        return Admitted(name)

    def release(self, session: str) -> list[Event]:
        """The worker has acknowledged: the seat is free, out of quarantine too."""
        name = self._seat_of.pop(session, None)
        if name is None:
            return []
        worker = self._workers[name]
        worker.resident.discard(session)
        worker.quarantined.pop(session, None)
        events: list[Event] = [SeatFreed(session, name)]
        if worker.draining and not worker.taken:
            events.append(WorkerEmptied(name))
        return events

    def quarantine(self, session: str) -> list[Event]:
        """Releasing failed: the seat stays taken. Called again for every further failure."""
        name = self._seat_of.get(session)
        if name is None:
            return []
        worker = self._workers[name]
        worker.resident.discard(session)
        failures = worker.quarantined.get(session, 0) + 1
        worker.quarantined[session] = failures
        return [SeatQuarantined(session, name, failures)]

    def cancel(self, session: str) -> list[Event]:
        """The session goes before any model state was built for it: nothing to acknowledge."""
        return self.release(session)

    def add_worker(self, worker: str, seats: int) -> list[Event]:
        """A worker is ready, with room for `seats` sessions."""
        if worker in self._workers:
            raise DuplicateWorker(f"worker {worker} is there already")
        if seats < 1:
            raise ValueError(f"a worker has at least one seat, not {seats}")
        self._workers[worker] = _Worker(seats)
        return []

    def remove_worker(self, worker: str) -> list[Event]:
        """The worker is gone, and with it whatever its sessions held."""
        gone = self._workers.pop(worker, None)
        if gone is None:
            raise UnknownWorker(f"there is no worker {worker}")
        sessions = sorted(gone.resident | gone.quarantined.keys())
        for session in sessions:
            del self._seat_of[session]
        return [SeatLost(session, worker) for session in sessions]

    def drain_worker(self, worker: str) -> list[Event]:
        """Admit nobody to it any more; its sessions play on. Idempotent."""
        if (known := self._workers.get(worker)) is None:
            raise UnknownWorker(f"there is no worker {worker}")
        if known.draining:
            return []
        known.draining = True
        return [] if known.taken else [WorkerEmptied(worker)]

    def worker_of(self, session: str) -> str | None:
        """Where the session has its seat, quarantined or not."""
        return self._seat_of.get(session)

    def occupancy(self, worker: str | None = None) -> Occupancy:
        """Seats of one worker, or of all; free seats of a draining worker count as free."""
        if worker is not None and worker not in self._workers:
            raise UnknownWorker(f"there is no worker {worker}")
        chosen = self._workers.values() if worker is None else [self._workers[worker]]
        return Occupancy(
            free=sum(w.free for w in chosen),
            resident=sum(len(w.resident) for w in chosen),
            quarantined=sum(len(w.quarantined) for w in chosen),
        )
