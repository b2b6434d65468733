"""When one session wants a chunk, and what its grant does.

Conditions are prefetched (0 ≤ next_condition − next_control ≤ 2); the control is read at the grant,
never before. A grant is one synchronous step: snapshot, bind, submit, consume. Every wait is
somebody else's event: a stage has completed, a place is free, a key went down, a moment has come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from admission.lease import JustInTime
from pipeline.service import ControlSnapshot, Idle, SessionPolicy
from pipeline.streaming.messages import Outcome, StageCompleted
from server.worker.intake import ControlIntake
from server.worker.lease import Errand
from server.worker.loaded import LoadedWorker

PREFETCH = 2  # conditions ahead of controls (DESIGN §7)

log = logging.getLogger(__name__)


@dataclass
class ChunkRecord:
    """One chunk from its grant until its last frame is decoded."""

    index: int
    epoch: int
    receipt: int
    granted: float
    due: float  # when it should have been wanted
    frames: int = 0
    first_frame: float | None = None


@dataclass(frozen=True)
class Hooks:
    """What the loop asks of its session, and tells it."""

    may_run: Callable[[], bool]  # somebody plays, and has not paused
    prompt: Callable[[], str | None]
    playout_end: Callable[[], float]  # when all that was granted will have been shown
    period: Callable[[], float]  # predicted, between two chunks of this session
    granted: Callable[[int], None]
    failed: Callable[[BaseException], None]


class ChunkLoop:
    """One session's chunks, one incarnation after the other."""

    def __init__(
        self, session: str, worker: LoadedWorker, intake: ControlIntake, hooks: Hooks
    ) -> None:
        self._session = session
        self._worker = worker
        self._pipeline = worker.orchestrator
        self._intake = intake
        self._hooks = hooks
        self._timing = JustInTime(worker.info.chunk_seconds)
        self._policy: SessionPolicy | None = None  # None: between two incarnations
        self._controls: frozenset[str] = frozenset()
        self._prefetch = 0
        self._epoch = 0
        self._next_condition = 0
        self._next_control = 0
        self._prompt_shown: str | None = None
        self._due = 0.0  # when the chunk that is wanted should have been
        self._alarm: asyncio.TimerHandle | None = None
        self._holding: tuple[int, int] | None = None  # (epoch, index) that the lease is held for
        self.records: dict[int, ChunkRecord] = {}  # granted, not fully decoded; at most two
        self.granted = 0

    @property
    def playing(self) -> bool:
        """Whether it has chunks under way or will want one."""
        return bool(self.records) or self._wanted()

    def begin(self, policy: SessionPolicy, epoch: int) -> None:
        """The model state of a new incarnation is there: fetch ahead, and want its first chunk."""
        self.halt()
        self._policy, self._epoch = policy, epoch
        self._next_condition = self._next_control = 0
        self._prompt_shown = self._hooks.prompt()
        self._controls = self._worker.entries - frozenset(policy.conditions(0))
        self._prefetch = PREFETCH if self._controls else 0
        self._refill()
        self.nudge()

    def halt(self) -> None:
        """Want nothing more until `begin`; a chunk that runs is not this loop's any more."""
        self._policy = None
        self._disarm()
        self._timing.unwanted()
        self._worker.lease.unwant(self._session)
        self._worker.undecoded.forget(self._session)
        self.records.clear()

    def nudge(self) -> None:
        """Something has changed: want a chunk now, later, or not any more."""
        self._disarm()
        if self._policy is None:
            return  # between incarnations the session stands in line for its model state
        lease, now = self._worker.lease, self._worker.clock()
        if not self._wanted():
            self._timing.unwanted()
            lease.unwant(self._session)
            return
        if lease.wants(self._session):
            lease.hand_on()
            return
        due = self._timing.want_at(self._hooks.playout_end(), self._hooks.period(), now)
        if due > now:
            self._alarm = asyncio.get_running_loop().call_later(due - now, self.nudge)
            return
        self._due = self._timing.wanted(now)
        lease.want(self._session, Errand(self._ready, self._granted))

    def stage_completed(self, event: StageCompleted) -> None:
        """A stage has done its part of one of this session's chunks."""
        worker = self._worker
        chunk = (event.epoch, event.sequence)
        current = self._policy is not None and event.epoch == self._epoch
        if event.stage == worker.frames_stage:
            worker.undecoded.decoded(self._session, event.sequence)
        elif event.stage == worker.exclusive_stage and current:
            worker.undecoded.denoised(self._session, event.sequence)
        if event.stage == worker.exclusive_stage and self._holding == chunk:
            self._holding = None
            worker.lease.release(self._session)
        if not current or event.outcome is Outcome.FAILED:
            return
        self._refill()
        self.nudge()

    def frames_decoded(self, epoch: int, index: int, count: int) -> ChunkRecord | None:
        """Some frames of a chunk have left the model; its record, while it is under way."""
        record = self.records.get(index)
        if record is None or record.epoch != epoch:
            return None
        if record.first_frame is None:
            record.first_frame = self._worker.clock()
            self._timing.measured(record.due, record.granted, record.first_frame)
        record.frames += count
        return record

    def chunk_decoded(self, epoch: int, index: int) -> ChunkRecord | None:
        """All frames of a chunk have left the model."""
        record = self.records.get(index)
        if record is None or record.epoch != epoch:
            return None
        del self.records[index]
        self._refill()
        self.nudge()
        return record

    # ------------------------------------------------------------------ wanting
    def _wanted(self) -> bool:
        """Whether the next chunk is worth making, whenever that is."""
        if self._policy is None or not self._hooks.may_run():
            return False
        index, idle = self._next_control, self._policy.idle
        if index == 0 or idle is Idle.CONTINUE:
            return True
        if idle is Idle.SETTLE and not self._policy.settled(index - 1):
            return True
        if self._hooks.prompt() != self._prompt_shown:
            return True
        return self._intake.snapshot(self._worker.clock()).control.active

    def _ready(self) -> bool:
        """Whether a grant could be used this very moment, to its last output."""
        if not self._wanted() or len(self.records) > 1 or self._worker.undecoded.count > 1:
            return False  # control n at most one ahead of the lowest chunk that is not all out
        pipeline, index = self._pipeline, self._next_control
        if not pipeline.stage_free(self._worker.exclusive_stage):
            return False
        artifacts = self._controls
        if self._next_condition == index:  # backpressure emptied the window
            assert self._policy is not None
            artifacts = artifacts | frozenset(self._policy.conditions(index))
        elif not pipeline.inputs_ready(
            self._session, index, self._worker.exclusive_stage, besides=self._controls
        ):
            return False
        return pipeline.can_submit(self._session, index, artifacts) and pipeline.can_reserve(
            self._session, index, self._worker.exclusive_stage
        )

    # ------------------------------------------------------------------ the grant
    def _granted(self) -> None:
        """Use the grant: from here to the submit nothing else can happen."""
        try:
            self._bind_and_submit()
        except Exception as fault:  # a policy's fault ends its session, and only that
            log.exception("session %s: its control could not be bound", self._session)
            self._hooks.failed(fault)
            return
        self.nudge()

    def _bind_and_submit(self) -> None:
        assert self._policy is not None
        now, index = self._worker.clock(), self._next_control
        prompt = self._hooks.prompt()
        pending = self._intake.snapshot(now, prompt=prompt)
        values = dict(self._bound(self._policy, index, pending.control))
        pipeline = self._pipeline
        if not (
            pipeline.reserve(self._session, index, self._worker.exclusive_stage)
            and pipeline.try_submit(self._session, index, values, control_age_seconds=pending.age)
        ):
            raise RuntimeError(f"chunk {index} was refused although its grant was checked")
        expiries = self._intake.expiries
        self._intake.consume(pending)
        if self._intake.expiries > expiries:
            log.info("session %s: silence let go of what was held", self._session)
        self._prompt_shown = prompt
        self._next_condition = max(self._next_condition, index + 1)
        self._next_control = index + 1
        self._holding = (self._epoch, index)
        self.granted += 1
        self.records[index] = ChunkRecord(
            index, self._epoch, pending.control.receipt, now, self._due
        )
        self._hooks.granted(index)

    def _bound(
        self, policy: SessionPolicy, index: int, control: ControlSnapshot
    ) -> Mapping[str, object]:
        bound = policy.bind(index, control)
        if self._next_condition == index:
            return {**policy.conditions(index), **bound}
        return bound

    def _refill(self) -> None:
        """Fetch ahead what does not depend on control, as far as there is room."""
        policy = self._policy
        try:
            while policy is not None and self._next_condition - self._next_control < self._prefetch:
                values = policy.conditions(self._next_condition)
                if not values or not self._pipeline.try_submit(
                    self._session, self._next_condition, values
                ):
                    return
                self._next_condition += 1
        except Exception as fault:  # the world's: its session has failed, and only that
            self._hooks.failed(fault)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
