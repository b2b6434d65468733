"""All that happens to sessions: what workers report, deadlines that pass, ends and released seats.

The front door owns the life of a session (`SessionLife`), its seat (`ResidentAdmission`) and its
deadlines. Workers report facts and do what they are told. One event loop, no locks: every change
here is one synchronous step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from admission.residency import ResidentAdmission
from admission.session import Cause, EndReason, IllegalTransition, Limits, State
from server.front.closing import Closer
from server.front.deadlines import Deadlines
from server.front.metrics import FrontMetrics
from server.front.pool import StartWorker, WorkerPool
from server.front.quotas import AddressQuota
from server.front.record import Ledger, SessionRecord
from server.protocol.http import Readiness
from server.protocol.worker import (
    Ready,
    SessionFact,
    WorkerGone,
    WorkerReply,
    WorkerRequest,
    WorldContent,
)
from server.settings import Settings

log = structlog.get_logger(__name__)

# What a worker's fact means for a session's life; `starting`, `active` and `ended` mean more.
CAUSE_OF: Final[Mapping[str, Cause]] = {
    "connected": Cause.CONNECTED,
    "running": Cause.STARTED,
    "lost": Cause.LOST,
    "paused": Cause.PAUSED,
    "resumed": Cause.RESUMED,
}


class SessionLives:
    """Every session with its seat and its worker. `PoolListener` and `CloseListener`."""

    def __init__(
        self, settings: Settings, workers: Sequence[StartWorker], clock: Callable[[], float]
    ) -> None:
        self.clock = clock
        self.limits = Limits(
            claim=settings.claim_seconds,
            connect=settings.connect_seconds,
            max_session=settings.max_session_seconds,
            idle=settings.idle_timeout_seconds,
            paused=settings.paused_timeout_seconds,
            disconnect_grace=settings.disconnect_grace_seconds,
        )
        self.metrics = FrontMetrics()
        self.admission = ResidentAdmission()
        self.ledger = Ledger(settings.ended_session_seconds, settings.max_ended_sessions)
        self.quota = AddressQuota(settings.sessions_per_address, settings.creates_per_minute)
        self.worlds: dict[str, WorldContent] = {}  # of every worker that was ever ready
        self.pool = WorkerPool(workers, self)
        self.stopping = False
        self.seat_news = asyncio.Event()  # set when a seat has come back
        self._closer = Closer(self.call, self.admission, self, settings.worker_close_seconds)
        self._unclean: set[str] = set()  # workers that hold what they cannot release
        self._deadlines = Deadlines(self._nearest_deadline, self._overdue, clock)
        self._deadline_task: asyncio.Task[None] | None = None
        self._readiness_listener: Callable[[Readiness], None] | None = None
        self.on_over: Callable[[SessionRecord], None] = lambda record: None

    def begin(self) -> None:
        """Watch the deadlines and start the workers."""
        self._deadline_task = asyncio.create_task(self._deadlines.run())
        self.pool.begin()

    async def aclose(self) -> None:
        """End the workers, and with them whatever is left. Idempotent."""
        await self.pool.aclose()
        for record in self.ledger.live():
            self._lose(record, EndReason.SHUTDOWN)
        await self._closer.aclose()
        if self._deadline_task is not None:
            self._deadline_task.cancel()
            await asyncio.gather(self._deadline_task, return_exceptions=True)

    def begin_session(self, record: SessionRecord) -> None:
        """A session has a seat; its deadlines run from now on."""
        self.ledger.add(record)
        self._deadlines.poke()
        self.metrics.created()
        log.info("session_created", session_id=record.id, world=record.world, worker=record.worker)

    async def call(self, worker: str, request: WorkerRequest) -> WorkerReply:
        """Ask a worker; `WorkerGone` if there is no such worker any more."""
        port = self.pool.port(worker)
        if port is None:
            raise WorkerGone(f"worker {worker} is gone")
        return await port.call(request)

    # ------------------------------------------------------------------ readiness
    def readiness(self) -> Readiness:
        """Whether a session can be played, else what is being done."""
        if self.stopping:
            return Readiness(ready=False, stage="stopping")
        return self.pool.readiness()

    def on_readiness(self, listener: Callable[[Readiness], None]) -> None:
        """Tell `listener` now and whenever `readiness` may have changed."""
        self._readiness_listener = listener
        listener(self.readiness())

    def readiness_changed(self) -> None:
        """`PoolListener`."""
        if self._readiness_listener is not None:
            self._readiness_listener(self.readiness())

    # ------------------------------------------------------------------ what workers say
    def worker_ready(self, worker: str, ready: Ready) -> None:
        """`PoolListener`: it takes sessions."""
        log.info("worker_ready", worker=worker, world=ready.world.name, seats=ready.seats)
        self.worlds[ready.world.name] = ready.world
        self.admission.add_worker(worker, ready.seats)
        self.seat_news.set()

    def worker_gone(self, worker: str) -> None:
        """`PoolListener`: its sessions are lost, its seats too."""
        self.admission.remove_worker(worker)
        self._unclean.discard(worker)
        reason = EndReason.SHUTDOWN if self.stopping else EndReason.WORKER_DIED
        for record in self.ledger.live():
            if record.worker == worker:
                self._lose(record, reason)

    def session_fact(self, worker: str, fact: SessionFact) -> None:
        """`PoolListener`: something has happened to a session."""
        record = self.ledger.find(fact.session)
        if record is None or record.life.ended or record.worker != worker:
            return  # a late word about a session that is over
        now = self.clock()
        match fact.fact:
            case "active":
                record.life.active(now)
            case "starting":
                record.stage = fact.stage
                record.tell(now)
            case "ended":
                log.info("session_cannot_go_on", session_id=record.id, detail=fact.detail)
                self.end(record, fact.reason or EndReason.WORLD_FAILED)
            case name:
                try:
                    self.take(record, CAUSE_OF[name])
                except IllegalTransition as error:
                    log.error("fact_out_of_place", session_id=record.id, fault=str(error))

    # ------------------------------------------------------------------ moving a session
    def end(self, record: SessionRecord, reason: EndReason) -> None:
        """Begin to end a session; the first reason stands. Harmless when it has ended."""
        if record.ending:
            return
        if record.life.state in (State.ADMITTED, State.QUEUED):
            self._closer.noticed(self.admission.cancel(record.id))  # nothing was built
        self.take(record, Cause.ENDING, reason)
        if not record.life.ended:
            self._closer.close(record)

    def take(self, record: SessionRecord, cause: Cause, reason: EndReason | None = None) -> None:
        """Move a session, and tell everybody whom it concerns."""
        now = self.clock()
        transition = record.life.take(cause, now, reason)
        self._deadlines.poke()
        if not transition.changed:
            return
        if transition.target is not State.STARTING:
            record.stage = None
        log.info(
            "session_moved",
            session_id=record.id,
            source=transition.source.value,
            target=transition.target.value,
            reason=transition.reason and transition.reason.value,
        )
        if record.life.ended:
            self.ledger.end(record, now)
            self.quota.give_back(record.address)
            self.metrics.ended(record.life.reason)
            record.over.set()
            self.on_over(record)
        record.tell(now)

    def released(self, record: SessionRecord) -> None:
        """`CloseListener`: the worker has acknowledged, or never will: the session is over."""
        if not record.life.ended:
            self.take(record, Cause.RELEASED)

    def drain(self, worker: str) -> None:
        """Admit nobody to a worker any more; once it is empty, a fresh one takes its place."""
        log.info("worker_draining", worker=worker)
        self.pool.drain(worker)
        self._closer.noticed(self.admission.drain_worker(worker))

    def seat_changed(self, worker: str) -> None:
        """`CloseListener`: a seat has come back, or is quarantined."""
        self.seat_news.set()
        if worker in self._unclean and not self.admission.occupancy(worker).resident:
            self.worker_emptied(worker)

    def worker_emptied(self, worker: str) -> None:
        """`CloseListener`: a draining worker has no session any more; a fresh one takes over."""
        self._closer.run(self.pool.recycle(worker))

    def worker_unclean(self, worker: str) -> None:
        """`CloseListener`: it cannot release what it holds. Nobody new; replaced when empty."""
        log.error("worker_unclean", worker=worker)
        self._unclean.add(worker)
        self.drain(worker)
        self.seat_changed(worker)

    def _lose(self, record: SessionRecord, reason: EndReason) -> None:
        """There is no worker left to acknowledge anything."""
        if not record.ending:
            self.take(record, Cause.ENDING, reason)
        self.released(record)

    def _nearest_deadline(self) -> float | None:
        deadlines = (record.life.next_deadline() for record in self.ledger.live())
        return min((at for at in deadlines if at is not None), default=None)

    def _overdue(self, now: float) -> None:
        for record in self.ledger.live():
            overdue = record.life.due(now)
            if overdue is None:
                continue
            if overdue.cause is Cause.ENDING and overdue.reason is not None:
                self.end(record, overdue.reason)
            else:  # the seat was not claimed in time
                self._closer.noticed(self.admission.cancel(record.id))
                self.take(record, overdue.cause, overdue.reason)
