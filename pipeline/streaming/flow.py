"""How artifacts move: accepted, run through the stages, put out, taken.

Everything here is about one session at a time and takes for granted that its caller has checked
what may be asked; the answers of actors are checked here, against what was asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pipeline.streaming.errors import BadOutput, StageError, StageFailed, WrongType
from pipeline.streaming.lifecycle import Lifecycle
from pipeline.streaming.messages import (
    Changed,
    Completed,
    Dropped,
    Emitted,
    Failed,
    Outcome,
    Run,
    StageCompleted,
    StreamOutput,
    Work,
)
from pipeline.streaming.plan import PipelinePlan
from pipeline.streaming.records import Cell, Session
from pipeline.streaming.scheduler import Desk, Scheduler
from pipeline.streaming.slots import Lane
from pipeline.streaming.trace import ACTORS, SESSIONS, TraceRecorder

CONTAINERS: Final = (dict, list, set)


class Flow:
    """Moves artifacts from lane to lane."""

    def __init__(
        self,
        plan: PipelinePlan,
        scheduler: Scheduler,
        life: Lifecycle,
        find: Callable[[str], Session | None],
        trace: TraceRecorder | None,
    ) -> None:
        self._plan = plan
        self._scheduler = scheduler
        self._life = life
        self._find = find
        self._trace = trace
        self._anchor = plan.spec.latency_anchor_artifact
        self.stale = self.orphaned = self.duplicate = 0

    # -------------------------------------------------------------- from and to the caller
    def accept(self, session: Session, sequence: int, values: Mapping[str, object]) -> None:
        """Take in artifacts from outside, for which there is room."""
        now = self._scheduler.now
        for artifact, value in values.items():
            entry = self._plan.entries[artifact]
            for index in entry:
                session.lanes[index].reserve(sequence)
            self._fill(session, entry, value)
            if artifact == self._anchor:
                session.meter.anchored(sequence, now)
        submitted = min([lane.filled for lane in session.entries])
        if submitted > session.submitted:
            session.submitted = submitted
            if self._anchor is None:
                session.meter.anchored(sequence, now)

    def reserve(self, session: Session, sequence: int) -> None:
        """Reserve in every lane; there is room."""
        for lane in session.lanes:
            lane.reserve(sequence)
            self._scheduler.trace_lane(session, lane)

    def take(self, session: Session) -> StreamOutput:
        """Hand the oldest output over."""
        lane, output = session.outbox.popleft()
        if output.last:
            lane.taken()
            if lane.plan.producer is not None:
                self._scheduler.review(session.cells[lane.plan.producer])
            self._scheduler.trace_lane(session, lane)
            self._life.check_drained(session)
        return output

    # -------------------------------------------------------------- answers to a Run
    def completed(self, desk: Desk, event: Completed) -> None:
        """An invocation has returned its outputs."""
        work, cell = event.work, desk.busy_at
        if desk.busy is not work or cell is None:
            self.uninvited(work)
            return
        session = cell.session
        if work.epoch != session.epoch:
            self._ran(desk, cell, work, event.started, event.ended, Outcome.STALE)
            return
        self._ran(desk, cell, work, event.started, event.ended, Outcome.DONE)
        if (wrong := _fault_of_outputs(desk, event.outputs)) is not None:
            self._life.fail(session, wrong)
            return
        cell.completed += 1
        for output in desk.plan.outputs:
            lane = session.lanes[output.lanes[0]]
            leaves = lane.plan.consumer is None
            if output.edge.streaming:
                pieces, lane.pieces = lane.pieces, []
                if leaves:
                    self._put_out(session, lane, work, len(pieces), None, last=True)
                else:
                    self._fill(session, output.lanes, tuple(pieces))
            elif leaves:
                self._put_out(session, lane, work, 0, event.outputs[lane.artifact], last=True)
            else:
                self._fill(session, output.lanes, event.outputs[lane.artifact])
        self._scheduler.review(cell)
        completed = min([lane.filled for lane in session.terminals])
        if completed > session.completed:
            session.completed = completed
            self._sequence_complete(session, work.sequence)

    def emitted(self, desk: Desk, event: Emitted) -> None:
        """A running invocation has a piece of a streaming artifact."""
        work, cell = event.work, desk.busy_at
        if desk.busy is not work or cell is None:
            self.uninvited(work)
            return
        session = cell.session
        if work.epoch != session.epoch:
            self._count_stale(session)
            return
        output = desk.streaming.get(event.artifact)
        if output is None:
            wrong = f"stage {desk.name!r} emitted {event.artifact!r}, which it does not stream"
            self._life.fail(session, BadOutput(wrong))
            return
        edge, lane = output.edge, session.lanes[output.lanes[0]]
        number = len(lane.pieces)
        if number >= edge.max_pieces:
            wrong = f"{event.artifact!r} has at most {edge.max_pieces} pieces a sequence"
            self._life.fail(session, BadOutput(wrong))
        elif edge.type is not object and not isinstance(event.piece, edge.type):
            wrong = str(WrongType(edge.artifact, edge.type, event.piece))
            self._life.fail(session, BadOutput(wrong))
        elif lane.plan.consumer is not None:
            lane.pieces.append(event.piece)
        else:
            lane.pieces.append(None)  # counted here; the piece itself leaves
            self._put_out(session, lane, work, number, event.piece, last=False)

    def failed(self, desk: Desk, work: Run, event: Failed) -> None:
        """A handler raised in an invocation that `desk` is busy with."""
        cell = desk.busy_at
        assert cell is not None
        fresh = work.epoch == cell.session.epoch
        self._ran(desk, cell, work, event.started, event.ended, Outcome.FAILED)
        if fresh:
            self._life.fail(cell.session, StageFailed(desk.name, event.fault))

    def dropped(self, desk: Desk, event: Dropped) -> None:
        """An invocation was void before it began."""
        work, cell = event.work, desk.busy_at
        if desk.busy is not work or cell is None or not isinstance(work, Run):
            self.uninvited(work)
            return
        now = self._scheduler.now
        self._ran(desk, cell, work, now, now, Outcome.STALE)

    def lost(self, cell: Cell, work: Run) -> None:
        """The actor died in an invocation."""
        now = self._scheduler.now
        self._back(cell)
        self._tell(cell, work, now, now, Outcome.FAILED)

    def uninvited(self, work: Work) -> None:
        """An answer that nobody waits for."""
        session = self._find(work.session)
        if session is None:
            self.orphaned += 1
        elif work.epoch != session.epoch:
            self._count_stale(session)
        else:
            self.duplicate += 1

    # -------------------------------------------------------------- parts of the above
    def _ran(
        self, desk: Desk, cell: Cell, work: Run, started: float, ended: float, outcome: Outcome
    ) -> None:
        """An invocation is over, however: the actor is idle, the held slots are free."""
        self._scheduler.finished(desk, started, ended)
        self._back(cell)
        self._tell(cell, work, started, ended, outcome)
        if outcome is Outcome.DONE:
            desk.completed += 1
            desk.run_seconds.add(ended - started)
        elif outcome is Outcome.FAILED:
            desk.failed += 1
        if work.epoch != cell.session.epoch:
            self._count_stale(cell.session)

    def _back(self, cell: Cell) -> None:
        session = cell.session
        cell.running = False
        for lane in cell.inputs:
            if not lane.frees_on_admit:
                lane.free()
                if lane.plan.producer is not None:
                    self._scheduler.review(session.cells[lane.plan.producer])
                self._scheduler.trace_lane(session, lane)

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
            self._scheduler.trace_lane(session, lane)

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
        now = self._scheduler.now
        accepted = session.meter.completed(sequence, now)
        if self._trace is not None and accepted is not None:
            args = {"epoch": session.epoch}
            self._trace.span(SESSIONS, session.id, f"chunk {sequence}", accepted, now, args)

    def _tell(self, cell: Cell, work: Run, started: float, ended: float, outcome: Outcome) -> None:
        name = cell.desk.name
        self._scheduler.commands.append(
            StageCompleted(work.session, work.epoch, work.sequence, name, started, ended, outcome)
        )
        if self._trace is not None:
            args = {"epoch": work.epoch, "sequence": work.sequence, "outcome": outcome.value}
            chunk = f"{work.session} {work.epoch}/{work.sequence}"
            title = f"{work.session} {work.sequence}"
            self._trace.span(ACTORS, name, title, started, ended, args, chunk)
            self._trace.span(SESSIONS, work.session, name, started, ended, args)

    def _count_stale(self, session: Session) -> None:
        self.stale += 1
        session.meter.stale += 1


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
                wrong = WrongType(edge.artifact, edge.type, value)
                return BadOutput(f"stage {desk.name!r}: {wrong}")
    return None
