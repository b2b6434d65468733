"""Doubles of what stands around the scheduler: executors, and actors that a test plays by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pipeline.service import Emit
from pipeline.streaming import (
    ReleaseOn,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingResourceGroupSpec,
    StreamingStageSpec,
)
from pipeline.streaming.core import Core
from pipeline.streaming.messages import (
    Abort,
    ActorStarted,
    ActorStopped,
    Command,
    Completed,
    Dropped,
    Emitted,
    Failed,
    Open,
    Opened,
    Release,
    Released,
    Run,
    StageCompleted,
    StageOpening,
    Work,
)
from pipeline.streaming.plan import plan_of

PIECES = 3


def world_spec(
    *,
    capacity: int = 2,
    request_capacity: int = 2,
    release_on: ReleaseOn = ReleaseOn.COMPLETE,
    group: bool = False,
    limit: int = 1,
) -> StreamingPipelineSpec:
    """encode → denoise (joined by control) → decode, whose frames are streaming."""
    shared = "device" if group else None
    return StreamingPipelineSpec(
        "world",
        stages=(
            StreamingStageSpec("encode", ("condition_request",), ("condition",)),
            StreamingStageSpec(
                "denoise", ("condition", "control"), ("latent",), resource_group=shared
            ),
            StreamingStageSpec("decode", ("latent",), ("frames",), resource_group=shared),
        ),
        edges=(
            StreamingEdgeSpec(
                "condition_request", capacity=request_capacity, release_on=release_on
            ),
            StreamingEdgeSpec("condition", capacity=capacity),
            StreamingEdgeSpec("control", capacity=capacity),
            StreamingEdgeSpec("latent", capacity=capacity),
            StreamingEdgeSpec("frames", capacity=capacity, streaming=True, max_pieces=PIECES),
        ),
        resource_groups=(StreamingResourceGroupSpec("device", limit),) if group else (),
        latency_anchor_artifact="control",
    )


def chain_spec(*names: str, capacity: int = 2) -> StreamingPipelineSpec:
    """A chain: stage `names[i]` turns `names[i]_in` into the next one's input, the last `out`."""
    artifacts = [f"{name}_in" for name in names] + ["out"]
    return StreamingPipelineSpec(
        "chain",
        stages=tuple(
            StreamingStageSpec(name, (artifacts[place],), (artifacts[place + 1],))
            for place, name in enumerate(names)
        ),
        edges=tuple(StreamingEdgeSpec(artifact, capacity=capacity) for artifact in artifacts),
    )


class FakeStage:
    """An executor that keeps books: which states are open, what ran where, on which thread.

    Every output is `(stage, session, sequence of the state, inputs)`; `meanwhile` is called in
    each run before it returns and may raise or block.
    """

    def __init__(
        self,
        name: str,
        outputs: tuple[str, ...] = (),
        *,
        streams: str | None = None,
        meanwhile: Callable[[str, int], None] | None = None,
    ) -> None:
        self.name = name
        self.outputs = outputs
        self.streams = streams
        self.meanwhile = meanwhile
        self.opened: list[str] = []
        self.released: list[str] = []
        self.threads: set[int] = set()
        self.fail_open: set[str] = set()
        self.fail_release: set[str] = set()
        self.entries = 0
        self._lock = threading.Lock()
        self._inside = 0

    @property
    def open_states(self) -> list[str]:
        """Sessions with a state that has not been given back."""
        left = list(self.opened)
        for session in self.released:
            left.remove(session)
        return left

    def entered(self) -> AbstractContextManager[object]:
        """Count."""
        self.entries += 1
        return nullcontext()

    def open(self, start: object) -> object:
        """A state: (session, next sequence). `start` is the session's name."""
        self.threads.add(threading.get_ident())
        session = str(start)
        if session in self.fail_open:
            raise ValueError(f"{self.name} cannot open {session}")
        self.opened.append(session)
        return (session, 0)

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        """Count on; never two at a time."""
        assert isinstance(state, tuple)
        session, sequence = state
        self.threads.add(threading.get_ident())
        assert self._lock.acquire(blocking=False), "two runs of one stage at a time"
        try:
            if self.streams is not None:
                for piece in range(PIECES):
                    emit(self.streams, (session, sequence, piece, dict(inputs)))
            if self.meanwhile is not None:
                self.meanwhile(session, sequence)
        finally:
            self._lock.release()
        made = {name: (self.name, session, sequence, dict(inputs)) for name in self.outputs}
        return made, (session, sequence + 1)

    def release(self, state: object) -> None:
        """Note it."""
        assert isinstance(state, tuple)
        session = state[0]
        self.threads.add(threading.get_ident())
        if session in self.fail_release:
            raise OSError(f"{self.name} cannot release {session}")
        self.released.append(session)


def world_stages(
    meanwhile: Mapping[str, Callable[[str, int], None]] | None = None,
) -> dict[str, FakeStage]:
    """The executors of `world_spec`."""
    slow = meanwhile or {}
    return {
        "encode": FakeStage("encode", ("condition",), meanwhile=slow.get("encode")),
        "denoise": FakeStage("denoise", ("latent",), meanwhile=slow.get("denoise")),
        "decode": FakeStage("decode", streams="frames", meanwhile=slow.get("decode")),
    }


@dataclass
class FakeActors:
    """Actors that answer when the test says so; one `Core` and its clock."""

    spec: StreamingPipelineSpec
    core: Core = field(init=False)
    now: float = 0.0
    posted: dict[str, list[Work]] = field(init=False)  # by stage, not answered yet, oldest first
    aborts: list[Abort] = field(default_factory=list)
    history: list[Work] = field(default_factory=list)
    completions: list[StageCompleted] = field(default_factory=list)
    openings: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = plan_of(self.spec)
        self.core = Core(plan, self.now)
        self.posted = {stage.name: [] for stage in plan.stages}
        for stage in self.posted:
            self.core.handle(ActorStarted(stage), self.now)
        self.settle()

    def settle(self) -> list[Command]:
        """Carry out what the core commands."""
        commands = self.core.settle()
        for command in commands:
            if isinstance(command, Abort):
                self.aborts.append(command)
            elif isinstance(command, Work):
                self.posted[command.stage].append(command)
                self.history.append(command)
            elif isinstance(command, StageCompleted):
                self.completions.append(command)
            elif isinstance(command, StageOpening):
                self.openings.append((command.session, command.stage))
        return commands

    def open(self, session: str, *, finish: bool = True) -> None:
        """Open a session on every stage."""
        self.core.open(session, {}, list(self.posted), self.now)
        self.settle()
        if finish:
            self.answer_chores()

    def reset(self, session: str) -> None:
        """Reset it, without answering anything."""
        self.core.reset(session, {}, list(self.posted), self.now)
        self.settle()

    def close(self, session: str, *, drain: bool = False) -> None:
        """Close it, without answering anything."""
        self.core.close(session, self.now, drain=drain)
        self.settle()

    def submit(self, session: str, sequence: int, *artifacts: str) -> bool:
        """Submit; every value says what it is."""
        values = {name: (name, session, sequence) for name in artifacts}
        accepted = self.core.submit(session, sequence, values, self.now)
        self.settle()
        return accepted

    def running(self, stage: str) -> tuple[str, int] | None:
        """What the stage runs: session and sequence; None if it does not run."""
        work = self.posted[stage][0] if self.posted[stage] else None
        return (work.session, work.sequence) if isinstance(work, Run) else None

    def answer(self, stage: str, *, pieces: int = PIECES, fault: Exception | None = None) -> Work:
        """Answer the oldest work of `stage`, well unless there is a `fault`."""
        work = self.posted[stage].pop(0)
        started, self.now = self.now, self.now + 1.0
        if fault is not None:
            self.core.handle(Failed(work, fault, started, self.now), self.now)
        elif isinstance(work, Open):
            self.core.handle(Opened(work, started, self.now), self.now)
        elif isinstance(work, Release):
            self.core.handle(Released(work, started, self.now), self.now)
        else:
            assert isinstance(work, Run)
            self._run(work, started, pieces)
        self.settle()
        return work

    def _run(self, work: Run, started: float, pieces: int) -> None:
        stage = self.core.plan.stage(work.stage)
        outputs: dict[str, object] = {}
        for output in stage.outputs:
            name = output.edge.artifact
            if output.edge.streaming:
                for piece in range(pieces):
                    value = (name, work.session, work.sequence, piece)
                    self.core.handle(Emitted(work, name, value), self.now)
            else:
                outputs[name] = (name, work.session, work.sequence)
        self.core.handle(Completed(work, outputs, started, self.now), self.now)

    def drop(self, stage: str) -> None:
        """Answer the oldest work as void."""
        self.core.handle(Dropped(self.posted[stage].pop(0)), self.now)
        self.settle()

    def die(self, stage: str) -> None:
        """Let the stage's actor end by itself; what it was asked for is never answered."""
        self.posted[stage].clear()
        self.core.handle(ActorStopped(stage, MemoryError("died")), self.now)
        self.settle()

    def answer_chores(self) -> None:
        """Answer every Open and Release, and what comes of them, until only runs are left."""
        while chores := [
            stage
            for stage, works in self.posted.items()
            if works and isinstance(works[0], Open | Release)
        ]:
            for stage in chores:
                self.answer(stage)

    def answer_all(self) -> None:
        """Answer until nobody has anything to do."""
        while busy := [stage for stage, works in self.posted.items() if works]:
            for stage in busy:
                self.answer(stage)

    def take(self, session: str) -> list[object]:
        """All that has left, as (sequence, artifact, piece, value, last)."""
        record = self.core.session(session)
        taken = []
        while (output := self.core.take(record, self.now)) is not None:
            taken.append(output)
            self.settle()
        return list(taken)
