"""The pipeline as a pure state machine: calls and events in, commands out. No clock, no threads.

Every method that changes something takes `now` and is followed by `settle()`, which starts what
can start and returns the commands to carry out: work for actors, notes for the caller's side.
Nothing an event causes is more than O(stages + edges) of the pipeline; sessions are never scanned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pipeline.streaming.errors import (
    CallerError,
    SequenceDuplicated,
    SequenceSkipped,
    SessionBusy,
    SessionClosed,
    SessionExists,
    SessionFailed,
    UnknownName,
    WrongType,
)
from pipeline.streaming.flow import Flow
from pipeline.streaming.lifecycle import Lifecycle
from pipeline.streaming.messages import (
    ActorChanged,
    ActorEvent,
    ActorStarted,
    ActorStopped,
    Command,
    Completed,
    Dropped,
    Emitted,
    Failed,
    Open,
    Opened,
    Released,
    Run,
    StreamOutput,
    Work,
)
from pipeline.streaming.metrics import SchedulerDiagnostics, StageDiagnostics
from pipeline.streaming.plan import PipelinePlan
from pipeline.streaming.records import Phase, Session
from pipeline.streaming.scheduler import Desk, Scheduler
from pipeline.streaming.trace import ACTORS, SESSIONS, TraceRecorder

LIFE_OF_ACTOR: Final = (ActorStarted, ActorStopped)


class Core:
    """All sessions of one pipeline."""

    def __init__(
        self, plan: PipelinePlan, now: float = 0.0, trace: TraceRecorder | None = None
    ) -> None:
        self.plan = plan
        self._trace = trace
        self._sessions: dict[str, Session] = {}
        self._quarantined: dict[str, Session] = {}
        self._scheduler = Scheduler(plan, now, trace)
        self._desks = {desk.name: desk for desk in self._scheduler.desks}
        self._life = Lifecycle(self._scheduler, self._gone)
        self._flow = Flow(plan, self._scheduler, self._life, self._sessions.get, trace)

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
        session = self._sessions[name] = Session(
            name, self.plan, self._scheduler.desks, self._scheduler.next_stamp()
        )
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
        self._flow.accept(session, sequence, values)
        if control_age_seconds is not None:
            session.meter.control_age.add(control_age_seconds)
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
        self._flow.reserve(session, sequence)
        if claim is not None:
            self._scheduler.claim(session.cells[self._desk(claim).plan.index])
        return True

    # -------------------------------------------------------------- egress
    def take(self, session: Session, now: float) -> StreamOutput | None:
        """The next thing that left the pipeline; its slot is free once its sequence's last is."""
        if not session.outbox:
            return None
        self._scheduler.now = now
        return self._flow.take(session)

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
            stale=self._flow.stale,
            orphaned=self._flow.orphaned,
            duplicate=self._flow.duplicate,
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
        desk = self._desks[event.stage if isinstance(event, LIFE_OF_ACTOR) else event.work.stage]
        if not desk.alive:
            self._after_death(event)
        elif isinstance(event, Completed):
            self._flow.completed(desk, event)
        elif isinstance(event, Emitted):
            self._flow.emitted(desk, event)
        elif isinstance(event, Opened | Released):
            self._chore_done(desk, event)
        elif isinstance(event, Failed):
            self._failed(desk, event)
        elif isinstance(event, Dropped):
            self._flow.dropped(desk, event)
        elif isinstance(event, ActorStarted):
            desk.started = True
            self._scheduler.commands.append(ActorChanged(desk.name))
        else:
            self._actor_stopped(desk, event)

    def _chore_done(self, desk: Desk, event: Opened | Released) -> None:
        work, cell = event.work, desk.busy_at
        if desk.busy is not work or cell is None:
            self._flow.uninvited(work)
            return
        self._scheduler.finished(desk, event.started, event.ended)
        self._trace_chore(work, event.started, event.ended)
        if isinstance(event, Opened):
            self._life.opened(cell)
        else:
            self._life.released(cell)

    def _failed(self, desk: Desk, event: Failed) -> None:
        work, cell = event.work, desk.busy_at
        if desk.busy is not work or cell is None:
            self._flow.uninvited(work)
        elif isinstance(work, Run):
            self._flow.failed(desk, work, event)
        else:
            self._scheduler.finished(desk, event.started, event.ended)
            self._trace_chore(work, event.started, event.ended)
            self._life.chore_failed(cell, work, event.fault)

    def _actor_stopped(self, desk: Desk, event: ActorStopped) -> None:
        orphans = [cell for cell, work in desk.chores if cell.chore is work]
        cell, work = desk.busy_at, desk.busy
        self._scheduler.buried(desk, event.fault)
        if cell is not None and isinstance(work, Run):
            self._flow.lost(cell, work)
        elif cell is not None:
            orphans.append(cell)
        self._life.actor_gone(desk, orphans)
        self._scheduler.commands.append(ActorChanged(desk.name))

    def _after_death(self, event: ActorEvent) -> None:
        """An actor that was given up is still talking."""
        if not isinstance(event, LIFE_OF_ACTOR):
            self._flow.orphaned += 1

    def _trace_chore(self, work: Work, started: float, ended: float) -> None:
        if self._trace is not None:
            what = "open" if isinstance(work, Open) else "release"
            self._trace.span(ACTORS, work.stage, f"{what} {work.session}", started, ended)
            self._trace.span(SESSIONS, work.session, f"{what} {work.stage}", started, ended)

    # -------------------------------------------------------------- names
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
