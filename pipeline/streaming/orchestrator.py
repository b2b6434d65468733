"""The driver of the core: one lock, a clock, actors, and an asyncio face.

The lock is a leaf: it is held for one call of the core and never while anything else is called.
What the core commands is carried out afterwards, on the thread that brought the event, so a result
reaches the next stage without a detour through the event loop. Callers stay on the thread of the
event loop; only actors speak from threads of their own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from pipeline.streaming.actors import Clock, StageActor
from pipeline.streaming.core import Core
from pipeline.streaming.errors import ActorDied, SessionClosed, SessionFailed, UnknownName
from pipeline.streaming.messages import (
    ActorChanged,
    ActorEvent,
    ActorStopped,
    Changed,
    CloseReport,
    Command,
    Note,
    StageCompleted,
    StageOpening,
    StreamOutput,
    Work,
)
from pipeline.streaming.metrics import SchedulerDiagnostics, StreamingSessionMetrics
from pipeline.streaming.plan import plan_of
from pipeline.streaming.records import Phase, Session
from pipeline.streaming.spec import StreamingPipelineSpec
from pipeline.streaming.trace import TraceRecorder
from pipeline.streaming.waiting import Wakeups

CLOSE_SECONDS: Final = 5.0  # how long `aclose` waits for everything together

_log = logging.getLogger(__name__)

Listener = Callable[[StageCompleted], None]
OnStage = Callable[[str], None]
_OVER: Final = (Phase.CLOSING, Phase.CLOSED, Phase.QUARANTINED)


class StreamingPipelineOrchestrator:
    """Runs a pipeline for many sessions, with one actor a stage."""

    def __init__(
        self,
        spec: StreamingPipelineSpec,
        actors: Mapping[str, StageActor],
        *,
        clock: Clock = time.monotonic,
        open_order: Sequence[str] | None = None,
        trace: TraceRecorder | None = None,
    ) -> None:
        """Plan the pipeline (`SpecError`); `open_order` is topological unless given."""
        self.plan = plan_of(spec)
        self.trace = trace
        names = tuple(stage.name for stage in self.plan.stages)
        self._order = names if open_order is None else tuple(open_order)
        for given in (actors, self._order):
            if sorted(given) != sorted(names):
                raise UnknownName("complete set of stages", tuple(given), names)
        self._actors = dict(actors)
        self._begun: set[str] = set()
        self._clock = clock
        self._lock = threading.Lock()
        self._core = Core(self.plan, clock(), trace)
        self._listeners: dict[object, Listener] = {}
        self._on_stage: dict[str, OnStage] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._notes: deque[Note] = deque()  # for the loop's thread
        self._changed: set[str] = set()  # sessions, for the loop's thread
        self._flush_due = False
        self._session_wakeups = Wakeups()
        self._actor_wakeups = Wakeups()
        self._closed = False

    # -------------------------------------------------------------- actors
    async def start(self) -> None:
        """Start every actor; raises `ActorDied` if one cannot."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        try:
            for stage, actor in self._actors.items():
                actor.start(self._take_in, self._clock)
                self._begun.add(stage)
            for stage in self._actors:
                await self._actor_wakeups.until(stage, partial(self._settled, stage))
                started, alive, fault = self._core.actor_state(stage)
                if not (started and alive):
                    raise ActorDied(stage, fault)
        except BaseException:
            await self.aclose()
            raise

    def declare_dead(self, stage: str, fault: BaseException | None = None) -> None:
        """Give an actor up: the sessions that used it fail, what it still says is ignored."""
        self._take_in(ActorStopped(stage, fault or TimeoutError("declared dead")))

    async def aclose(self, seconds: float = CLOSE_SECONDS) -> None:
        """Cancel every session and end every actor within `seconds`. May be called again."""
        if self._closed or self._loop is None:
            self._closed = True
            return
        self._closed = True
        deadline = self._loop.time() + seconds
        with self._lock:
            records = [self._core.close(name, self._clock()) for name in self._core.sessions]
            commands = self._core.settle()
        self._carry_out(commands)
        try:
            async with asyncio.timeout_at(deadline - seconds / 2):
                for record in records:
                    if record is not None:
                        await self._closed_for(record)
        except TimeoutError:
            _log.error("some sessions could not be closed within %.1f s", seconds / 2)
        finally:
            await self._stop_actors(deadline)

    async def _stop_actors(self, deadline: float) -> None:
        for stage in self._begun:
            self._actors[stage].stop()
        try:
            async with asyncio.timeout_at(deadline):
                for stage in self._begun:
                    await self._actor_wakeups.until(stage, partial(self._ended, stage))
        except TimeoutError:
            _log.error("some actors do not end in time and are given up")
        for stage, actor in self._actors.items():
            if not self._ended(stage):
                self.declare_dead(stage)
            elif not actor.join(1.0):
                _log.error("the actor of %s has said its last word and does not end", stage)
        self._flush()
        self._loop = None

    def _ended(self, stage: str) -> bool:
        return not self._core.actor_state(stage)[1]

    def _settled(self, stage: str) -> bool:
        started, alive, _ = self._core.actor_state(stage)
        return started or not alive

    # -------------------------------------------------------------- sessions
    async def open_session(
        self, session: str, openings: Mapping[str, object], *, on_stage: OnStage | None = None
    ) -> int:
        """Build the session's state on every stage; returns its epoch, 0.

        `on_stage` hears each stage's name as its turn begins. If a stage fails, what was opened is
        released before `StageFailed` (or `ActorDied`) is raised. If the call is cancelled, it is
        released behind the caller's back; `close_session` waits for that.
        """
        if self._closed:
            raise SessionClosed(session)
        if self._loop is None:
            raise RuntimeError("start() comes first")
        with self._lock:
            record = self._core.open(session, openings, self._order, self._clock())
            commands = self._core.settle()
        try:
            return await self._rebuilt(record, commands, on_stage)
        except asyncio.CancelledError:
            self._close(record, drain=False)
            raise

    async def reset_session(
        self, session: str, openings: Mapping[str, object], *, on_stage: OnStage | None = None
    ) -> int:
        """Void what is under way, let what runs end, rebuild in place; returns the new epoch.

        The new epoch is in force at once. A stage that fails leaves the session failed. Cancelling
        the call does not cancel the reset.
        """
        with self._lock:
            record = self._core.reset(session, openings, self._order, self._clock())
            commands = self._core.settle()
        return await self._rebuilt(record, commands, on_stage)

    async def _rebuilt(
        self, record: Session, commands: list[Command], on_stage: OnStage | None
    ) -> int:
        """Carry out the first commands, then wait until the session is open, or cannot be."""
        building = record.phase
        if on_stage is not None:
            self._on_stage[record.id] = on_stage
        try:
            self._carry_out(commands)
            await self._session_wakeups.until(record.id, lambda: record.phase is not building)
            if record.failure is not None:
                if building is Phase.OPENING:
                    await self._closed_for(record)
                raise record.failure
            if record.phase in _OVER:
                raise SessionClosed(record.id)
            return record.epoch
        finally:
            if on_stage is not None and self._on_stage.get(record.id) is on_stage:
                del self._on_stage[record.id]

    async def close_session(self, session: str, *, drain: bool = False) -> CloseReport:
        """Release all that the session holds; returns when that is done, or has failed.

        With `drain`, what was submitted goes through first, and has to be taken. A session that is
        gone already closes cleanly; a quarantined one has its failed releases tried again. The
        close goes on if the call is cancelled.
        """
        with self._lock:
            record = self._core.close(session, self._clock(), drain=drain)
            commands = self._core.settle()
        self._carry_out(commands)
        if record is None:
            return CloseReport(clean=True)
        return await self._closed_for(record)

    def _close(self, record: Session, *, drain: bool) -> None:
        with self._lock:
            if record.report is None:
                self._core.close(record.id, self._clock(), drain=drain)
            commands = self._core.settle()
        self._carry_out(commands)

    async def _closed_for(self, record: Session) -> CloseReport:
        await self._session_wakeups.until(record.id, lambda: record.report is not None)
        assert record.report is not None
        return record.report

    # -------------------------------------------------------------- ingress
    def can_submit(self, session: str, sequence: int, artifacts: Collection[str]) -> bool:
        """Whether `try_submit` of these artifacts would be accepted now. Never changes anything."""
        with self._lock:
            return self._core.can_submit(session, sequence, artifacts)

    def try_submit(
        self,
        session: str,
        sequence: int,
        values: Mapping[str, object],
        *,
        control_age_seconds: float | None = None,
    ) -> bool:
        """Hand in artifacts of one sequence: all are accepted, or none (False: no room now).

        Raises `SequenceDuplicated`, `SequenceSkipped`, `WrongType`, `UnknownName`, `SessionClosed`
        or `SessionFailed`, each before anything has changed. `control_age_seconds` is the age of
        the newest control state in the anchor artifact, for the metrics.
        """
        with self._lock:
            accepted = self._core.submit(
                session, sequence, values, self._clock(), control_age_seconds
            )
            commands = self._core.settle()
        self._carry_out(commands)
        return accepted

    def can_reserve(self, session: str, sequence: int, claim: str | None = None) -> bool:
        """Whether `reserve` would succeed now. Never changes anything."""
        with self._lock:
            return self._core.can_reserve(session, sequence, claim)

    def reserve(self, session: str, sequence: int, claim: str | None = None) -> bool:
        """Reserve every slot of the chunk, up to its outputs; all or none.

        `claim` also takes that stage's right to run, if it is free now, and keeps it for the
        session's next sequence there: submit what it still lacks, and it starts at once.
        """
        with self._lock:
            reserved = self._core.reserve(session, sequence, self._clock(), claim)
            commands = self._core.settle()
        self._carry_out(commands)
        return reserved

    def inputs_ready(
        self, session: str, sequence: int, stage: str, *, besides: Collection[str] = ()
    ) -> bool:
        """Whether the sequence waits at `stage` with all its inputs, those `besides` aside."""
        with self._lock:
            return self._core.inputs_ready(session, sequence, stage, besides)

    def stage_free(self, stage: str) -> bool:
        """Whether the stage's actor is idle and its group's right to run is free now."""
        with self._lock:
            return self._core.stage_free(stage)

    def in_flight(self, session: str) -> int:
        """Sequences whose artifacts from outside are all accepted, and that are not complete."""
        with self._lock:
            return self._core.in_flight(session)

    # -------------------------------------------------------------- egress
    def outputs(self, session: str) -> AsyncIterator[StreamOutput]:
        """All that leaves the pipeline for this session, across resets. One reader at a time.

        Ends when the session is closed; raises `SessionFailed` when a stage has failed. What an
        epoch leaves untaken is dropped when it ends.
        """
        with self._lock:
            record = self._core.session(session)
        return self._outputs(record)

    async def _outputs(self, record: Session) -> AsyncIterator[StreamOutput]:
        def something_new() -> bool:
            return bool(record.outbox) or record.failure is not None or record.phase in _OVER

        while True:
            await self._session_wakeups.until(record.id, something_new)
            output = self._take(record)
            if output is not None:
                yield output
            elif record.failure is not None:
                raise SessionFailed(record.id, record.failure)
            elif record.phase in _OVER:
                return

    def take_nowait(self, session: str) -> StreamOutput | None:
        """The next item of `outputs`, or None if there is none now."""
        with self._lock:
            record = self._core.session(session)
        return self._take(record)

    def _take(self, record: Session) -> StreamOutput | None:
        with self._lock:
            output = self._core.take(record, self._clock())
            commands = self._core.settle()
        self._carry_out(commands)
        return output

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` on the loop's thread for each invocation that is over, however it ended.

        Returns the way out.
        """
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    # -------------------------------------------------------------- measurements
    def metrics(self, session: str) -> StreamingSessionMetrics:
        """A snapshot of one session."""
        with self._lock:
            return self._core.session(session).metrics()

    def diagnostics(self) -> SchedulerDiagnostics:
        """A snapshot of the scheduler."""
        with self._lock:
            return self._core.diagnostics(self._clock())

    def note_pause(self, session: str) -> None:
        """The session chooses to wait: the time until its next chunk is no chunk period."""
        with self._lock:
            self._core.session(session).meter.paused()

    # -------------------------------------------------------------- the driver
    def _take_in(self, event: ActorEvent) -> None:
        """Take an event from an actor, on its thread, and carry out what follows."""
        with self._lock:
            self._core.handle(event, self._clock())
            commands = self._core.settle()
        self._carry_out(commands)

    def _carry_out(self, commands: list[Command]) -> None:
        if not commands:
            return
        news = False
        for command in commands:
            if isinstance(command, Changed):
                self._changed.add(command.session)
                news = True
            elif not isinstance(command, Work) and (
                self._listeners or not isinstance(command, StageCompleted)
            ):
                self._notes.append(command)
                news = True
        if news:
            self._call_flush()
        for command in commands:
            if isinstance(command, Work):
                self._post(command)

    def _post(self, work: Work) -> None:
        try:
            self._actors[work.stage].post(work)
        except Exception as fault:
            _log.exception("the actor of %s cannot be reached", work.stage)
            self._take_in(ActorStopped(work.stage, fault))

    def _call_flush(self) -> None:
        loop = self._loop
        if self._flush_due or loop is None:
            return
        self._flush_due = True
        if threading.get_ident() == self._loop_thread:
            loop.call_soon(self._flush)
        else:
            loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        """Tell listeners and wake waiters; on the loop's thread."""
        self._flush_due = False  # first: what comes from now on asks for another flush
        while self._notes:
            note = self._notes.popleft()
            if isinstance(note, StageCompleted):
                for listener in list(self._listeners.values()):
                    self._tell(listener, note)
            elif isinstance(note, StageOpening):
                if (on_stage := self._on_stage.get(note.session)) is not None:
                    self._tell(on_stage, note.stage)
            elif isinstance(note, ActorChanged):
                self._actor_wakeups.wake(note.stage)
        while self._changed:
            self._session_wakeups.wake(self._changed.pop())

    def _tell(self, listener: Callable[..., None], news: object) -> None:
        try:
            listener(news)
        except Exception:
            _log.exception("a listener failed on %r", news)
