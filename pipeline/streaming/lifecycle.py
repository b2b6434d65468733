"""How a session's model state comes and goes: open, reset, fail, close.

Each is a row of steps, one at a time; a step on an actor is a chore that the actor answers. States
are released in reverse topological order, each exactly once; one whose release raised stays with
its actor and is tried again when the (then quarantined) session is closed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipeline.streaming.errors import ActorDied, StageError, StageFailed
from pipeline.streaming.messages import Abort, Changed, CloseReport, Open, Release, Work
from pipeline.streaming.records import Cell, Phase, Session, Step
from pipeline.streaming.scheduler import Desk, Scheduler


class Lifecycle:
    """Moves sessions from phase to phase. Knows nothing of sequences."""

    def __init__(self, scheduler: Scheduler, gone: Callable[[Session], None]) -> None:
        self._scheduler = scheduler
        self._gone = gone  # called when a session has reached CLOSED or QUARANTINED
        self.cleanup_failures = 0
        self.slot_leaks = 0

    # -------------------------------------------------------------- asked for
    def open(self, session: Session, openings: Mapping[str, object], order: Sequence[int]) -> None:
        """OPENING → OPEN, stage by stage; or, if one fails, back to nothing."""
        session.openings = dict(openings)
        session.steps.extend((Step.OPEN, index) for index in order)
        self._scheduler.joined(1)
        self.advance(session)

    def reset(self, session: Session, openings: Mapping[str, object], order: Sequence[int]) -> None:
        """OPEN → RESETTING → OPEN: a new epoch at once, in new state once what runs has ended."""
        self._fence(session)
        session.phase = Phase.RESETTING
        session.openings = dict(openings)
        session.steps.extend(self._releases(session))
        session.steps.append((Step.REBUILD, 0))
        session.steps.extend((Step.OPEN, index) for index in order)
        self._changed(session)
        self.advance(session)

    def close(self, session: Session, *, drain: bool) -> None:
        """Any phase → CLOSING → CLOSED or QUARANTINED. Asked again, it goes on as it was."""
        if session.phase in (Phase.CLOSING, Phase.CLOSED):
            return
        if session.phase is Phase.QUARANTINED:
            self._scheduler.joined(1)
            session.report = None
        if drain and session.phase in (Phase.OPEN, Phase.DRAINING):
            session.phase = Phase.DRAINING
            self._changed(session)
            self.check_drained(session)
            return
        self._begin_closing(session)

    def check_drained(self, session: Session) -> None:
        """DRAINING → CLOSING once all that was submitted is out and taken."""
        if (
            session.phase is Phase.DRAINING
            and session.completed >= session.submitted
            and not session.outbox
        ):
            self._begin_closing(session)

    def fail(self, session: Session, cause: StageError) -> None:
        """The session cannot go on. What it holds stays until it is closed."""
        phase = session.phase
        if phase in (Phase.CLOSING, Phase.CLOSED, Phase.QUARANTINED, Phase.FAILED):
            return
        session.failure = cause
        if phase in (Phase.OPENING, Phase.DRAINING):
            self._begin_closing(session)
            return
        session.phase = Phase.FAILED
        self._withdraw(session)
        self._fence(session)
        self._changed(session)

    # -------------------------------------------------------------- answers of actors
    def opened(self, cell: Cell) -> None:
        """The actor has built the state of `cell`."""
        cell.holds_state = True
        cell.desk.users[cell] = None
        self._chore_done(cell)
        self.advance(cell.session)

    def released(self, cell: Cell) -> None:
        """The actor has given the state of `cell` back."""
        self._forget_state(cell)
        cell.session.release_failures.pop(cell.desk.name, None)  # of an earlier attempt
        self._chore_done(cell)
        self.advance(cell.session)

    def chore_failed(self, cell: Cell, work: Work, fault: BaseException) -> None:
        """An Open or Release of `cell` raised."""
        self._chore_done(cell)
        session, name = cell.session, cell.desk.name
        if isinstance(work, Release):
            session.release_failures[name] = fault
            self.cleanup_failures += 1
            if session.phase is Phase.RESETTING:
                self.fail(session, StageFailed(name, fault))
        else:
            self.fail(session, StageFailed(name, fault))
        self.advance(session)

    def actor_gone(self, desk: Desk, orphans: Sequence[Cell]) -> None:
        """An actor is gone, and with it all state on it; `orphans` had chores there."""
        touched = {cell.session: None for cell in [*desk.users, *orphans]}
        for cell in orphans:
            self._chore_done(cell)
        for cell in list(desk.users):
            self._lose_state(cell)
        for session in touched:
            self.fail(session, ActorDied(desk.name, desk.fault))
            self.advance(session)

    # -------------------------------------------------------------- steps
    def advance(self, session: Session) -> None:
        """Take steps until one is a chore; call again when that is done."""
        while session.chore_at is None:
            if not session.steps:
                self._arrived(session)
                return
            step, index = session.steps[0]
            cell = session.cells[index]
            if step is Step.REBUILD:
                self._count_leaks(session)
                session.restart()
            elif step is Step.RELEASE:
                if cell.holds_state:  # what it still runs comes first: the actor is busy with it
                    self._begin_chore(
                        cell, Release(cell.desk.name, session.id, session.epoch, session.stamp)
                    )
            elif cell.desk.alive:
                start = session.openings.pop(cell.desk.name, None)
                self._begin_chore(
                    cell, Open(cell.desk.name, session.id, session.epoch, session.stamp, start)
                )
            else:
                self.fail(session, ActorDied(cell.desk.name, cell.desk.fault))
                continue
            session.steps.popleft()

    def _arrived(self, session: Session) -> None:
        if session.phase in (Phase.OPENING, Phase.RESETTING):
            session.phase = Phase.OPEN
            session.flowing = True
            for cell in session.cells:
                self._scheduler.review(cell)
            self._changed(session)
        elif session.phase is Phase.CLOSING:
            self._count_leaks(session)
            failures = dict(session.release_failures)
            session.report = CloseReport(clean=not failures, failures=failures)
            session.phase = Phase.QUARANTINED if failures else Phase.CLOSED
            self._scheduler.joined(-1)
            self._gone(session)
            self._changed(session)

    def _begin_closing(self, session: Session) -> None:
        session.phase = Phase.CLOSING
        self._withdraw(session)
        self._fence(session)
        session.steps.extend(self._releases(session))
        self._changed(session)
        self.advance(session)

    def _releases(self, session: Session) -> list[tuple[Step, int]]:
        return [(Step.RELEASE, index) for index in reversed(range(len(session.cells)))]

    def _begin_chore(self, cell: Cell, work: Work) -> None:
        cell.session.chore_at = cell
        self._scheduler.queue(cell, work)

    def _chore_done(self, cell: Cell) -> None:
        cell.chore = None
        cell.session.chore_at = None

    def _withdraw(self, session: Session) -> None:
        """Forget the steps that are left, and the one under way if it has not begun."""
        session.steps.clear()
        session.openings.clear()
        cell = session.chore_at
        if cell is not None and self._scheduler.withdraw(cell):
            session.chore_at = None

    def _fence(self, session: Session) -> None:
        """Make all that is under way void, drop it, and say so to every stage that may know it."""
        session.epoch += 1
        session.stamp = self._scheduler.next_stamp()
        session.flowing = False
        for cell in session.cells:
            self._scheduler.switch_off(cell)
            if (cell.holds_state or cell.running) and cell.desk.alive:
                self._scheduler.commands.append(
                    Abort(cell.desk.name, session.id, session.epoch, session.stamp)
                )
        for lane in session.lanes:
            lane.fence()
        session.outbox.clear()

    # -------------------------------------------------------------- bookkeeping
    def _forget_state(self, cell: Cell) -> None:
        cell.holds_state = False
        cell.desk.users.pop(cell, None)

    def _lose_state(self, cell: Cell) -> None:
        self._forget_state(cell)
        cell.session.release_failures[cell.desk.name] = ActorDied(cell.desk.name, cell.desk.fault)
        self.cleanup_failures += 1

    def _count_leaks(self, session: Session) -> None:
        self.slot_leaks += session.slots_used

    def _changed(self, session: Session) -> None:
        self._scheduler.commands.append(Changed(session.id))
