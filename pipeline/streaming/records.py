"""What the core remembers of a session: its lanes, its place at every stage, its life."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

from pipeline.streaming.errors import StageError
from pipeline.streaming.messages import CloseReport, StreamOutput, Work
from pipeline.streaming.metrics import SessionMeter, StageMetrics, StreamingSessionMetrics
from pipeline.streaming.plan import PipelinePlan
from pipeline.streaming.slots import Lane

if TYPE_CHECKING:
    from pipeline.streaming.scheduler import Desk


class Phase(StrEnum):
    """Where a session's model state is."""

    OPENING = "opening"
    OPEN = "open"
    RESETTING = "resetting"
    DRAINING = "draining"  # no intake; what was submitted goes through to its taker
    FAILED = "failed"  # can only be closed
    CLOSING = "closing"
    CLOSED = "closed"
    QUARANTINED = "quarantined"  # closed, but some state was not given back


class Wait(Enum):
    """What a session waits for at one stage."""

    OFF = 0  # nothing flows
    INPUT = 1
    OUTPUT = 2  # inputs are there; an output lane is full
    READY = 3  # its turn


class Step(Enum):
    """One thing to do on the way to a new phase."""

    RELEASE = 0
    REBUILD = 1  # slots count from 0 again
    OPEN = 2


class Cell:
    """One session at one stage."""

    __slots__ = (
        "chore",
        "completed",
        "desk",
        "holds_state",
        "input_ready",
        "inputs",
        "next",
        "outputs",
        "ready_at",
        "running",
        "session",
        "wait",
    )

    def __init__(
        self, session: Session, desk: Desk, inputs: tuple[Lane, ...], outputs: tuple[Lane, ...]
    ) -> None:
        self.session = session
        self.desk = desk
        self.inputs = inputs
        self.outputs = outputs
        self.wait = Wait.OFF
        self.running = False
        self.holds_state = False
        self.chore: Work | None = None  # an Open or Release that has not been answered
        self.next = 0  # sequence to run next; those before it have been admitted
        self.input_ready = 0  # sequences whose inputs were all there
        self.completed = 0
        self.ready_at = 0.0

    def restart(self) -> None:
        """Count from sequence 0 again."""
        self.next = self.input_ready = self.completed = 0


class Session:
    """One session's place in the pipeline."""

    __slots__ = (
        "cells",
        "chore_at",
        "completed",
        "entries",
        "epoch",
        "failure",
        "flowing",
        "id",
        "lanes",
        "meter",
        "openings",
        "outbox",
        "phase",
        "release_failures",
        "report",
        "stamp",
        "steps",
        "submitted",
        "terminals",
    )

    def __init__(self, name: str, plan: PipelinePlan, desks: tuple[Desk, ...], stamp: int) -> None:
        self.id = name
        self.epoch = 0
        self.stamp = stamp  # of this epoch, among those of all sessions
        self.phase = Phase.OPENING
        self.flowing = False  # whether work is dispatched
        self.lanes = tuple(Lane(lane) for lane in plan.lanes)
        self.cells = tuple(
            Cell(
                self,
                desks[stage.index],
                tuple(self.lanes[index] for index in stage.inputs),
                tuple(self.lanes[index] for output in stage.outputs for index in output.lanes),
            )
            for stage in plan.stages
        )
        self.entries = tuple(self.lanes[indices[0]] for indices in plan.entries.values())
        self.terminals = tuple(self.lanes[index] for index in plan.terminals.values())
        self.submitted = self.completed = 0  # sequences of this epoch, see StreamingSessionMetrics
        self.outbox: deque[tuple[Lane, StreamOutput]] = deque()
        self.meter = SessionMeter()
        # life
        self.steps: deque[tuple[Step, int]] = deque()
        self.chore_at: Cell | None = None  # where an Open or Release is under way
        self.openings: dict[str, object] = {}
        self.failure: StageError | None = None
        self.release_failures: dict[str, BaseException] = {}
        self.report: CloseReport | None = None

    @property
    def slots_used(self) -> int:
        """Places that are not free."""
        return sum(lane.used for lane in self.lanes)

    def restart(self) -> None:
        """Everything counts from 0 again."""
        for lane in self.lanes:
            lane.restart()
        for cell in self.cells:
            cell.restart()
        self.submitted = self.completed = 0
        self.meter.restart()

    def metrics(self) -> StreamingSessionMetrics:
        """A snapshot."""
        slots: dict[str, int] = {}
        for lane in self.lanes:
            slots[lane.artifact] = slots.get(lane.artifact, 0) + lane.used
        return StreamingSessionMetrics(
            session=self.id,
            epoch=self.epoch,
            submitted=self.submitted,
            completed=self.completed,
            first_frame_latency=self.meter.first_frame,
            control_to_first_output=self.meter.to_first_output.summary(),
            control_to_output=self.meter.to_output.summary(),
            chunk_period=self.meter.chunk_period.summary(),
            control_age_at_bind=self.meter.control_age.summary(),
            stages=self._stages(),
            slots=slots,
            stale=self.meter.stale,
        )

    def _stages(self) -> Mapping[str, StageMetrics]:
        return {
            cell.desk.name: StageMetrics(cell.input_ready, cell.next, cell.completed)
            for cell in self.cells
        }
