"""Who runs where, next: one desk per actor, plain round robin, rights of resource groups.

A session stands at the end of a desk's row once its next sequence there could run: inputs in,
outputs reservable. The desk takes the first of the row when its actor is idle and its group has a
right to spare; in a group the most downstream desk is asked first. Nothing here looks at more than
one session at a time.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import count

from pipeline.streaming.messages import Command, Open, Run, StageOpening, Work
from pipeline.streaming.metrics import IdleClock, IdleReason, Window
from pipeline.streaming.plan import GroupPlan, PipelinePlan, StagePlan
from pipeline.streaming.records import Cell, Session, Wait
from pipeline.streaming.slots import Lane
from pipeline.streaming.trace import ACTORS, EDGES, SESSIONS, TraceRecorder


class Group:
    """The right to run that some desks share."""

    __slots__ = ("limit", "mask", "running")

    def __init__(self, plan: GroupPlan) -> None:
        self.limit = plan.limit
        self.running = 0
        self.mask = sum(1 << index for index in plan.stages)


class Desk:
    """Everything about one actor except the actor."""

    __slots__ = (
        "alive",
        "bit",
        "blocked",
        "busy",
        "busy_at",
        "busy_seconds",
        "chores",
        "claim",
        "completed",
        "failed",
        "fault",
        "group",
        "idle",
        "name",
        "plain_outputs",
        "plan",
        "ready",
        "run_seconds",
        "started",
        "streaming",
        "users",
    )

    def __init__(self, plan: StagePlan, group: Group | None, now: float) -> None:
        self.plan = plan
        self.name = plan.name
        self.bit = 1 << plan.index
        self.group = group
        self.plain_outputs = frozenset(
            output.edge.artifact for output in plan.outputs if not output.edge.streaming
        )
        self.streaming = {
            output.edge.artifact: output for output in plan.outputs if output.edge.streaming
        }
        self.ready: OrderedDict[Cell, None] = OrderedDict()
        self.chores: deque[tuple[Cell, Work]] = deque()  # before runs; withdrawn ones are skipped
        self.claim: Cell | None = None  # the session that the actor and its right are kept for
        self.busy: Work | None = None
        self.busy_at: Cell | None = None
        self.blocked = 0  # cells that wait for room in an output
        self.users: dict[Cell, None] = {}  # cells whose state lives on the actor
        self.started = False
        self.alive = True
        self.fault: BaseException | None = None
        self.idle = IdleClock(plan.name, now)
        self.run_seconds = Window()
        self.busy_seconds = 0.0
        self.completed = self.failed = 0

    @property
    def free(self) -> bool:
        """Whether something given to the actor now would begin at once."""
        return (
            self.alive
            and self.busy is None
            and self.claim is None
            and (self.group is None or self.group.running < self.group.limit)
        )


class Scheduler:
    """All desks, and what has to be done next. `now` is that of the event being handled."""

    def __init__(self, plan: PipelinePlan, now: float, trace: TraceRecorder | None) -> None:
        groups = [Group(group) for group in plan.groups]
        self.desks = tuple(
            Desk(stage, None if stage.group is None else groups[stage.group], now)
            for stage in plan.stages
        )
        self.now = now
        self.commands: list[Command] = []
        self.sessions = 0
        self.next_stamp = count().__next__
        self.trace = trace
        self._dirty = 0  # desks to look at, one bit each

    # -------------------------------------------------------------- what changes a cell
    def review(self, cell: Cell) -> None:
        """Find out what `cell` waits for, after any of its lanes has changed."""
        was = cell.wait
        if was is Wait.READY or cell.running or not cell.session.flowing:
            return
        sequence = cell.next
        wait = Wait.READY
        for lane in cell.inputs:
            if lane.filled <= sequence:
                wait = Wait.INPUT
                break
        else:
            if cell.input_ready <= sequence:
                cell.input_ready = sequence + 1
            for lane in cell.outputs:
                if sequence >= lane.reserved and sequence - lane.freed >= lane.capacity:
                    wait = Wait.OUTPUT
                    break
        if wait is was:
            return
        cell.wait = wait
        desk = cell.desk
        if was is Wait.OUTPUT:
            desk.blocked -= 1
        if wait is Wait.READY:
            desk.ready[cell] = None
            cell.ready_at = self.now
        elif wait is Wait.OUTPUT:
            desk.blocked += 1
        self._dirty |= desk.bit

    def switch_off(self, cell: Cell) -> None:
        """Take `cell` out of every row; what runs goes on."""
        desk = cell.desk
        if cell.wait is Wait.READY:
            del desk.ready[cell]
        elif cell.wait is Wait.OUTPUT:
            desk.blocked -= 1
        cell.wait = Wait.OFF
        if desk.claim is cell:
            desk.claim = None
            self._give_right_back(desk)
        self._dirty |= desk.bit

    def claim(self, cell: Cell) -> None:
        """Keep the actor and its right to run for the next sequence of `cell`. Must be free."""
        cell.desk.claim = cell
        if cell.desk.group is not None:
            cell.desk.group.running += 1
        self._dirty |= cell.desk.bit

    def queue(self, cell: Cell, work: Work) -> None:
        """Let the actor do a chore (an Open or Release) as soon as it is idle."""
        cell.chore = work
        cell.desk.chores.append((cell, work))
        self._dirty |= cell.desk.bit

    def withdraw(self, cell: Cell) -> bool:
        """Call back the chore of `cell`; False if it has begun."""
        if cell.chore is None or cell.desk.busy is cell.chore:
            return False
        cell.chore = None
        self._dirty |= cell.desk.bit
        return True

    def joined(self, count: int) -> None:
        """So many sessions more (or less)."""
        self.sessions += count
        for desk in self.desks:
            self._dirty |= desk.bit

    # -------------------------------------------------------------- what changes a desk
    def finished(self, desk: Desk, started: float, ended: float) -> None:
        """The actor has answered: it is idle, and its right can go to another."""
        desk.busy = desk.busy_at = None
        desk.busy_seconds += ended - started
        self._give_right_back(desk)
        self._dirty |= desk.bit

    def buried(self, desk: Desk, fault: BaseException | None) -> None:
        """The actor is gone."""
        desk.alive = False
        desk.fault = fault
        if desk.busy is not None:
            desk.busy = desk.busy_at = None
            self._give_right_back(desk)
        if desk.claim is not None:
            desk.claim = None
            self._give_right_back(desk)
        desk.chores.clear()
        self._dirty |= desk.bit

    def _give_right_back(self, desk: Desk) -> None:
        if (group := desk.group) is not None:
            group.running -= 1
            self._dirty |= group.mask

    # -------------------------------------------------------------- dispatch
    def settle(self) -> list[Command]:
        """Start whatever can start, most downstream first; returns all commands since the last."""
        desks = self.desks
        while dirty := self._dirty:
            index = dirty.bit_length() - 1
            self._dirty = dirty ^ (1 << index)
            self._look_at(desks[index])
        commands, self.commands = self.commands, []
        return commands

    def _look_at(self, desk: Desk) -> None:
        if desk.busy is not None:
            return
        chores = desk.chores
        while chores and chores[0][0].chore is not chores[0][1]:
            chores.popleft()
        reason: IdleReason
        if not desk.alive:
            reason = IdleReason.DEAD
        elif (kept_for := desk.claim) is not None:
            if kept_for.wait is Wait.READY:
                desk.claim = None
                del desk.ready[kept_for]
                self._run(desk, kept_for)
                return
            reason = IdleReason.CLAIMED
        elif not (chores or desk.ready):
            if desk.blocked:
                reason = IdleReason.OUTPUT_FULL
            else:
                reason = IdleReason.NO_INPUT if self.sessions else IdleReason.NO_SESSION
        elif (group := desk.group) is not None and group.running >= group.limit:
            reason = IdleReason.RESOURCE_GROUP
        else:
            if group is not None:
                group.running += 1
            if chores:
                self._do_chore(desk, *chores.popleft())
            else:
                self._run(desk, desk.ready.popitem(last=False)[0])
            return
        if desk.idle.reason is not reason:
            self._turn(desk, reason)

    def _do_chore(self, desk: Desk, cell: Cell, work: Work) -> None:
        desk.busy, desk.busy_at = work, cell
        self._turn(desk, None)
        if isinstance(work, Open):
            self.commands.append(StageOpening(work.session, work.stage))
        self.commands.append(work)

    def _run(self, desk: Desk, cell: Cell) -> None:
        session, sequence = cell.session, cell.next
        cell.next = sequence + 1
        cell.running = True
        cell.wait = Wait.OFF
        for lane in cell.outputs:
            if sequence >= lane.reserved:
                lane.reserved = sequence + 1
                self.trace_lane(session, lane)
        inputs: dict[str, object] = {}
        for lane in cell.inputs:
            inputs[lane.artifact] = lane.hold()
            if lane.frees_on_admit:
                self.trace_lane(session, lane)
                if lane.plan.producer is not None:
                    self.review(session.cells[lane.plan.producer])
        work = Run(desk.name, session.id, session.epoch, session.stamp, sequence, inputs)
        desk.busy, desk.busy_at = work, cell
        self._turn(desk, None)
        self.commands.append(work)
        if self.trace is not None:
            self.trace.span(
                SESSIONS,
                session.id,
                f"wait for {desk.name}",
                cell.ready_at,
                self.now,
                {"epoch": session.epoch, "sequence": sequence},
            )

    def trace_lane(self, session: Session, lane: Lane) -> None:
        """The number of used slots of `lane` has changed."""
        if self.trace is not None:
            track = f"{session.id} {lane.artifact}"
            if (consumer := lane.plan.consumer) is not None:
                track += f" → {self.desks[consumer].name}"
            self.trace.level(EDGES, track, self.now, lane.used)

    def _turn(self, desk: Desk, reason: IdleReason | None) -> None:
        interval = desk.idle.turn(reason, self.now)
        if interval is not None and self.trace is not None:
            self.trace.span(
                ACTORS, desk.name, f"idle: {interval.reason}", interval.started, interval.ended
            )
