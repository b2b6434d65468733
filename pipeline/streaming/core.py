"""The pipeline as a pure state machine: calls and events in, commands out. No clock, no threads.

Every method that changes something takes `now` and is followed by `settle()`, which starts what
can start and returns the commands to carry out: work for actors, notes for the caller's side.
Nothing an event causes is more than O(stages + edges) of the pipeline; sessions are never scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pipeline.streaming.errors import (
    BadOutput,
    CallerError,
    SequenceDuplicated,
    SequenceSkipped,
    SessionBusy,
    SessionClosed,
    SessionExists,
    SessionFailed,
    StageError,
    StageFailed,
    UnknownName,
    WrongType,
)
from pipeline.streaming.lifecycle import Lifecycle
from pipeline.streaming.messages import (
    ActorChanged,
    ActorEvent,
    ActorStarted,
    ActorStopped,
    Changed,
    Command,
    Completed,
    Dropped,
    Emitted,
    Failed,
    Opened,
    Outcome,
    Released,
    Run,
    StageCompleted,
    StreamOutput,
    Work,
)
from pipeline.streaming.metrics import SchedulerDiagnostics, StageDiagnostics
from pipeline.streaming.plan import PipelinePlan
from pipeline.streaming.records import Cell, Phase, Session
from pipeline.streaming.scheduler import Desk, Scheduler
from pipeline.streaming.slots import Lane
from pipeline.streaming.trace import ACTORS, EDGES, SESSIONS, TraceRecorder

CONTAINERS = (dict, list, set)


class Core:
    """All sessions of one pipeline."""

    def __init__(
        self, plan: PipelinePlan, now: float = 0.0, trace: TraceRecorder | None = None
    ) -> None:
        self.plan = plan
        self.trace = trace
        self._scheduler = Scheduler(plan, now, trace)
        self._life = Lifecycle(self._scheduler, self._gone)
        self._desks = {desk.name: desk for desk in self._scheduler.desks}
        self._sessions: dict[str, Session] = {}
        self._quarantined: dict[str, Session] = {}
        self._stale = self._orphaned = self._duplicate = 0
        self._anchor = plan.spec.latency_anchor_artifact
        self._handlers: dict[type, Callable[[Any], None]] = {
            Completed: self._completed,
            Emitted: self._emitted,
            Failed: self._failed,
            Dropped: self._dropped,
            Opened: self._opened,
            Released: self._released,
            ActorStarted: self._actor_started,
            ActorStopped: self._actor_stopped,
        }

    def settle(self) -> list[Command]:
        """Start what can start; everything to carry out since the last call."""
        return self._scheduler.settle()

    # -------------------------------------------------------------- life of a session
    def open(
        self, name: str, openings: Mapping[str, object], order: Sequence[str], now: float
    ) -> Session:
        """Begin to build a session, stage by stage in `order`."""
        if name in self._sessions or name in self._quarantined:
            raise SessionExists(name)
        self._check_stages(openings)
        self._scheduler.now = now
        session = self._sessions[name] = Session(name, self.plan, self._scheduler.desks)
        self._life.open(session, openings, self._numbers(order))
        return session

    def reset(
        self, name: str, openings: Mapping[str, object], order: Sequence[str], now: float
    ) -> Session:
        """Begin a new epoch: what is under way is void, the state is rebuilt in place."""
        session = self._live(name)
        if session.phase in (Phase.OPENING, Phase.RESETTING):
            raise SessionBusy(name)
        self._check_stages(openings)
        self._scheduler.now = now
        self._life.reset(session, openings, self._numbers(order))
        return session

    def close(self, name: str, now: float, *, drain: bool = False) -> Session | None:
        """Begin to close a session; None if there is nothing of it left."""
        session = self._sessions.get(name)
        if session is None and (session := self._quarantined.get(name)) is None:
            return None
        self._scheduler.now = now
        self._life.close(session, drain=drain)
        if session.phase is Phase.CLOSING:
            self._quarantined.pop(name, None)
            self._sessions[name] = session
        return session

    def session(self, name: str) -> Session:
        """The record of a session that is not closed."""
        session = self._sessions.get(name) or self._quarantined.get(name)
        if session is None:
            raise UnknownName("session", name)
        return session

    @property
    def sessions(self) -> tuple[str, ...]:
        """Sessions that are not closed; quarantined ones are not among them."""
        return tuple(self._sessions)

    # -------------------------------------------------------------- ingress
    def can_submit(self, name: str, sequence: int, artifacts: Collection[str]) -> bool:
        """Whether `submit` of these would be accepted now. Changes nothing."""
        session = self._sessions.get(name)
        if session is None or not session.flowing or not artifacts:
            return False
        lanes = session.lanes
        for artifact in artifacts:
            entry = self.plan.entries.get(artifact)
            if entry is None or lanes[entry[0]].filled != sequence:
                return False
            for index in entry:
                if not lanes[index].accepts(sequence):
                    return False
        return session.phase is Phase.OPEN

    def submit(
        self,
        name: str,
        sequence: int,
        values: Mapping[str, object],
        now: float,
        control_age_seconds: float | None = None,
    ) -> bool:
        """Accept all artifacts of `sequence`, or none of them (False: a lane is full)."""
        session = self._live(name)
        lanes = session.lanes
        if not values:
            raise CallerError("nothing to submit")
        room = session.flowing
        for artifact, value in values.items():
            if (entry := self.plan.entries.get(artifact)) is None:
                raise UnknownName("artifact from outside", artifact, tuple(self.plan.entries))
            lane = lanes[entry[0]]
            if session.flowing and sequence != lane.filled:
                wrong = SequenceDuplicated if sequence < lane.filled else SequenceSkipped
                raise wrong(lane.filled, sequence)
            kind = lane.plan.edge.type
            if kind is not object and not isinstance(value, kind):
                raise WrongType(artifact, kind, value)
            for index in entry:
                room = room and lanes[index].accepts(sequence)
        if not room:
            return False
        self._scheduler.now = now
        for artifact, value in values.items():
            for index in self.plan.entries[artifact]:
                lanes[index].reserve(sequence)
            self._fill(session, self.plan.entries[artifact], value)
            if artifact == self._anchor:
                session.meter.anchored(sequence, now)
                if control_age_seconds is not None:
                    session.meter.control_age.add(control_age_seconds)
        submitted = session.entries[0].filled
        for lane in session.entries:
            submitted = min(submitted, lane.filled)
        if submitted > session.submitted:
            session.submitted = submitted
            if self._anchor is None:
                session.meter.anchored(sequence, now)
        return True

    def can_reserve(self, name: str, sequence: int, claim: str | None = None) -> bool:
        """Whether `reserve` would succeed now. Changes nothing."""
        session = self._sessions.get(name)
        if session is None or not session.flowing or session.phase is not Phase.OPEN:
            return False
        for lane in session.lanes:
            if not lane.accepts(sequence):
                return False
        return claim is None or self._desk(claim).free

    def reserve(self, name: str, sequence: int, now: float, claim: str | None = None) -> bool:
        """Reserve every slot that `sequence` will need, from ingress to outputs; all or none.

        With `claim`, also keep that stage's actor, and its group's right to run, for the session's
        next sequence there; only if both are free now.
        """
        session = self._live(name)
        if sequence < session.completed:
            raise SequenceDuplicated(session.completed, sequence)
        if not self.can_reserve(name, sequence, claim):
            return False
        self._scheduler.now = now
        for lane in session.lanes:
            lane.reserve(sequence)
            if self.trace is not None:
                self._trace_lane(session, lane)
        if claim is not None:
            self._scheduler.claim(session.cells[self._desk(claim).plan.index])
        return True

    # -------------------------------------------------------------- egress
    def take(self, session: Session, now: float) -> StreamOutput | None:
        """The next thing that left the pipeline; its slot is free once its sequence's last is."""
        if not session.outbox:
            return None
        lane, output = session.outbox.popleft()
        if output.last:
            self._scheduler.now = now
            lane.taken()
            if lane.plan.producer is not None:
                self._scheduler.review(session.cells[lane.plan.producer])
            if self.trace is not None:
                self._trace_lane(session, lane)
            self._life.check_drained(session)
        return output

    # -------------------------------------------------------------- questions
    def inputs_ready(self, name: str, sequence: int, stage: str, besides: Collection[str]) -> bool:
        """Whether `sequence` has all its inputs at `stage`, those `besides` aside, and waits."""
        session = self._sessions.get(name)
        desk = self._desk(stage)
        if session is None or not session.flowing:
            return False
        cell = session.cells[desk.plan.index]
        return cell.next <= sequence and all(
            lane.filled > sequence for lane in cell.inputs if lane.artifact not in besides
        )

    def stage_free(self, stage: str) -> bool:
        """Whether something given to the stage now would begin at once."""
        return self._desk(stage).free

    def in_flight(self, name: str) -> int:
        """Sequences whose artifacts from outside are all in, and that are not complete."""
        session = self.session(name)
        return max(0, session.submitted - session.completed)

    def diagnostics(self, now: float) -> SchedulerDiagnostics:
        """A snapshot of the whole. The one place that looks at every session."""
        everyone = [*self._sessions.values(), *self._quarantined.values()]
        return SchedulerDiagnostics(
            sessions=len(self._sessions),
            quarantined=tuple(self._quarantined),
            slots_used=sum(session.slots_used for session in everyone),
            stale=self._stale,
            orphaned=self._orphaned,
            duplicate=self._duplicate,
            cleanup_failures=self._life.cleanup_failures,
            slot_leaks=self._life.slot_leaks,
            stages={
                desk.name: StageDiagnostics(
                    alive=desk.alive,
                    completed=desk.completed,
                    failed=desk.failed,
                    ready=len(desk.ready),
                    run_seconds=desk.run_seconds.summary(),
                    busy_seconds=desk.busy_seconds,
                    idle_seconds=desk.idle.totals(now),
                    idle_intervals=tuple(desk.idle.intervals),
                )
                for desk in self._scheduler.desks
            },
        )

    def actor_state(self, stage: str) -> tuple[bool, bool, BaseException | None]:
        """Whether the stage's actor has started, whether it is alive, what ended it."""
        desk = self._desk(stage)
        return desk.started, desk.alive, desk.fault

    # -------------------------------------------------------------- events of actors
    def handle(self, event: ActorEvent, now: float) -> None:
        """Take in what an actor says."""
        self._scheduler.now = now
        self._handlers[type(event)](event)

    def _completed(self, event: Completed) -> None:
        work = event.work
        desk = self._desks[work.stage]
        cell = desk.busy_at
        if desk.busy is not work or cell is None:
            self._uninvited(work)
            return
        session = cell.session
        fresh = work.epoch == session.epoch
        outcome = Outcome.DONE if fresh else Outcome.STALE
        self._ran(desk, cell, work, event.started, event.ended, outcome)
        if not fresh:
            return
        if (wrong := _fault_of_outputs(desk, event.outputs)) is not None:
            self._life.fail(session, wrong)
            return
        cell.completed += 1
        sequence = work.sequence
        for output in desk.plan.outputs:
            artifact = output.edge.artifact
            if not output.edge.streaming:
                value = event.outputs[artifact]
                if session.lanes[output.lanes[0]].plan.consumer is None:
                    lane = session.lanes[output.lanes[0]]
                    self._put_out(session, lane, work, 0, value, last=True)
                else:
                    self._fill(session, output.lanes, value)
                continue
            lane = session.lanes[output.lanes[0]]
            pieces, lane.pieces = lane.pieces, []
            if lane.plan.consumer is None:
                self._put_out(session, lane, work, len(pieces), None, last=True)
            else:
                self._fill(session, output.lanes, tuple(pieces))
        self._scheduler.review(cell)
        completed = session.terminals[0].filled
        for lane in session.terminals:
            completed = min(completed, lane.filled)
        if completed > session.completed:
            session.completed = completed
            self._sequence_complete(session, sequence)

    def _emitted(self, event: Emitted) -> None:
        work = event.work
        desk = self._desks[work.stage]
        cell = desk.busy_at
        if desk.busy is not work or cell is None:
            self._uninvited(work)
            return
        session = cell.session
        if work.epoch != session.epoch:
            self._stale += 1
            session.meter.stale += 1
            return
        if (output := desk.streaming.get(event.artifact)) is None:
            self._life.fail(
                session, BadOutput(f"stage {desk.name!r} emitted {event.artifact!r}: not streaming")
            )
            return
        edge, lane = output.edge, session.lanes[output.lanes[0]]
        number = len(lane.pieces)
        if number >= edge.max_pieces:
            self._life.fail(
                session,
                BadOutput(f"{event.artifact!r} has at most {edge.max_pieces} pieces a sequence"),
            )
            return
        if edge.type is not object and not isinstance(event.piece, edge.type):
            self._life.fail(
                session, BadOutput(str(WrongType(edge.artifact, edge.type, event.piece)))
            )
            return
        if lane.plan.consumer is not None:
            lane.pieces.append(event.piece)
            return
        lane.pieces.append(None)  # counted here; the piece itself leaves
        self._put_out(session, lane, work, number, event.piece, last=False)

    def _failed(self, event: Failed) -> None:
        work = event.work
        desk = self._desks[work.stage]
        cell = desk.busy_at
        if desk.busy is not work or cell is None:
            self._uninvited(work)
            return
        if isinstance(work, Run):
            session = cell.session
            fresh = work.epoch == session.epoch
            self._ran(desk, cell, work, event.started, event.ended, Outcome.FAILED)
            if fresh:
                self._life.fail(session, StageFailed(desk.name, event.fault))
        else:
            self._scheduler.finished(desk, event.started, event.ended)
            self._life.chore_failed(cell, work, event.fault)

    def _dropped(self, event: Dropped) -> None:
        work = event.work
        desk = self._desks[work.stage]
        if desk.busy is not work or desk.busy_at is None or not isinstance(work, Run):
            self._uninvited(work)
            return
        now = self._scheduler.now
        self._ran(desk, desk.busy_at, work, now, now, Outcome.STALE)

    def _opened(self, event: Opened) -> None:
        if (cell := self._chore_over(event)) is not None:
            self._life.opened(cell)

    def _released(self, event: Released) -> None:
        if (cell := self._chore_over(event)) is not None:
            self._life.released(cell)

    def _actor_started(self, event: ActorStarted) -> None:
        self._desks[event.stage].started = True
        self._scheduler.commands.append(ActorChanged(event.stage))

    def _actor_stopped(self, event: ActorStopped) -> None:
        desk = self._desks[event.stage]
        if not desk.alive:
            return
        orphans = [cell for cell, work in desk.chores if cell.chore is work]
        cell, work = desk.busy_at, desk.busy
        self._scheduler.buried(desk, event.fault)
        if cell is not None and isinstance(work, Run):
            self._back_from_run(cell)
            self._tell(cell, work, self._scheduler.now, self._scheduler.now, Outcome.FAILED)
        elif cell is not None:
            orphans.append(cell)
        self._life.actor_gone(desk, orphans)
        self._scheduler.commands.append(ActorChanged(event.stage))

    # -------------------------------------------------------------- parts of the above
    def _ran(
        self, desk: Desk, cell: Cell, work: Run, started: float, ended: float, outcome: Outcome
    ) -> None:
        """An invocation is over, however: the actor is idle, the held slots are free."""
        self._scheduler.finished(desk, started, ended)
        self._back_from_run(cell)
        self._tell(cell, work, started, ended, outcome)
        session = cell.session
        if outcome is Outcome.DONE:
            desk.completed += 1
            desk.run_seconds.add(ended - started)
        elif outcome is Outcome.FAILED:
            desk.failed += 1
        if work.epoch != session.epoch:
            self._stale += 1
            session.meter.stale += 1
            self._life.advance(session)

    def _back_from_run(self, cell: Cell) -> None:
        session = cell.session
        cell.running = False
        for lane in cell.inputs:
            if not lane.frees_on_admit:
                lane.freed += 1
                if lane.plan.producer is not None:
                    self._scheduler.review(session.cells[lane.plan.producer])
                if self.trace is not None:
                    self._trace_lane(session, lane)

    def _tell(self, cell: Cell, work: Run, started: float, ended: float, outcome: Outcome) -> None:
        name = cell.desk.name
        self._scheduler.commands.append(
            StageCompleted(work.session, work.epoch, work.sequence, name, started, ended, outcome)
        )
        if self.trace is not None:
            args = {"epoch": work.epoch, "sequence": work.sequence, "outcome": outcome.value}
            chunk = f"{work.session} {work.epoch}/{work.sequence}"
            title = f"{work.session} {work.sequence}"
            self.trace.span(ACTORS, name, title, started, ended, args, chunk)
            self.trace.span(SESSIONS, work.session, name, started, ended, args)

    def _chore_over(self, event: Opened | Released) -> Cell | None:
        work = event.work
        desk = self._desks[work.stage]
        cell = desk.busy_at
        if desk.busy is not work or cell is None:
            self._uninvited(work)
            return None
        self._scheduler.finished(desk, event.started, event.ended)
        if self.trace is not None:
            what = "open" if isinstance(event, Opened) else "release"
            title = f"{what} {work.session}"
            self.trace.span(ACTORS, desk.name, title, event.started, event.ended)
            self.trace.span(
                SESSIONS, work.session, f"{what} {desk.name}", event.started, event.ended
            )
        return cell

    def _fill(self, session: Session, lanes: tuple[int, ...], value: object) -> None:
        """Put an artifact before its consumers; each has a container of its own."""
        for index in lanes:
            lane = session.lanes[index]
            if index != lanes[0] and type(value) in CONTAINERS:
                lane.fill(value.copy())  # type: ignore[attr-defined]
            else:
                lane.fill(value)
            if lane.plan.consumer is not None:
                self._scheduler.review(session.cells[lane.plan.consumer])
            if self.trace is not None:
                self._trace_lane(session, lane)

    def _put_out(
        self, session: Session, lane: Lane, work: Run, piece: int, value: object, *, last: bool
    ) -> None:
        """Let something leave the pipeline."""
        output = StreamOutput(
            session.id, session.epoch, work.sequence, lane.artifact, piece, value, last
        )
        if not session.outbox:
            self._scheduler.commands.append(Changed(session.id))
        session.outbox.append((lane, output))
        if last:
            lane.fill_outside()
        session.meter.put_out(work.sequence, self._scheduler.now)

    def _sequence_complete(self, session: Session, sequence: int) -> None:
        accepted = session.meter.completed(sequence, self._scheduler.now)
        if self.trace is not None and accepted is not None:
            self.trace.span(
                SESSIONS,
                session.id,
                f"chunk {sequence}",
                accepted,
                self._scheduler.now,
                {"epoch": session.epoch},
            )

    def _uninvited(self, work: Work) -> None:
        """An answer that nobody waits for."""
        session = self._sessions.get(work.session)
        if session is None or not self._desks[work.stage].alive:
            self._orphaned += 1
        elif work.epoch != session.epoch:
            self._stale += 1
            session.meter.stale += 1
        else:
            self._duplicate += 1

    def _trace_lane(self, session: Session, lane: Lane) -> None:
        if self.trace is not None:
            track = f"{session.id} {lane.artifact}"
            if (consumer := lane.plan.consumer) is not None:
                track += f" → {self.plan.stages[consumer].name}"
            self.trace.level(EDGES, track, self._scheduler.now, lane.used)

    def _gone(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        if session.phase is Phase.QUARANTINED:
            self._quarantined[session.id] = session

    def _live(self, name: str) -> Session:
        """The record of a session that is neither failed nor on its way out."""
        session = self._sessions.get(name)
        if session is None:
            if name in self._quarantined:
                raise SessionClosed(name)
            raise UnknownName("session", name)
        if session.failure is not None:
            raise SessionFailed(name, session.failure)
        if session.phase in (Phase.DRAINING, Phase.CLOSING):
            raise SessionClosed(name)
        return session

    def _desk(self, stage: str) -> Desk:
        desk = self._desks.get(stage)
        if desk is None:
            raise UnknownName("stage", stage, tuple(self._desks))
        return desk

    def _check_stages(self, openings: Mapping[str, object]) -> None:
        for stage in openings:
            self._desk(stage)

    def _numbers(self, order: Sequence[str]) -> list[int]:
        return [self._desk(name).plan.index for name in order]


def _fault_of_outputs(desk: Desk, outputs: Mapping[str, object]) -> StageError | None:
    if outputs.keys() != desk.plain_outputs:
        return BadOutput(
            f"stage {desk.name!r} returned {list(outputs)}, not {sorted(desk.plain_outputs)}"
        )
    for output in desk.plan.outputs:
        edge = output.edge
        if edge.type is not object and not edge.streaming:
            value = outputs[edge.artifact]
            if not isinstance(value, edge.type):
                return BadOutput(
                    f"stage {desk.name!r}: {WrongType(edge.artifact, edge.type, value)}"
                )
    return None
