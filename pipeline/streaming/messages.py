"""What passes between the core and the actors, and between the core and its callers.

Work goes to an actor; the actor answers each `Open`, `Run` and `Release` with exactly one event
that carries the same object. Notes tell the caller's side that something has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


# ------------------------------------------------------------------ core → actor
@dataclass(slots=True, eq=False)
class Work:
    """Something for the actor of `stage` to do for a session's incarnation `epoch`.

    `stamp` numbers the incarnations of all sessions together and never comes again, not even when
    a session of the same name is opened later.
    """

    stage: str
    session: str
    epoch: int
    stamp: int


@dataclass(slots=True, eq=False)
class Open(Work):
    """Build the session's state from `start`. Answered by `Opened` or `Failed`."""

    start: object

    def take_start(self) -> object:
        """The start, of which no reference stays behind."""
        start, self.start = self.start, None
        return start


@dataclass(slots=True, eq=False)
class Run(Work):
    """Do one sequence. Answered by `Emitted`…, then `Completed`, `Failed` or `Dropped`."""

    sequence: int
    inputs: Mapping[str, object]

    def take_inputs(self) -> Mapping[str, object]:
        """The inputs, of which no reference stays behind: the consumer is their only owner."""
        inputs, self.inputs = self.inputs, MappingProxyType({})
        return inputs


@dataclass(slots=True, eq=False)
class Release(Work):
    """Give the session's state back. Answered by `Released` or `Failed`."""


@dataclass(slots=True, eq=False)
class Abort(Work):
    """What this session asked for with an older stamp is void: skip it, drop its pieces.

    Not answered. It may come late, even after the session's `Release`.
    """


# ------------------------------------------------------------------ actor → core
@dataclass(slots=True, eq=False)
class ActorStarted:
    """The actor takes work."""

    stage: str


@dataclass(slots=True, eq=False)
class ActorStopped:
    """The actor has ended, by itself if there is a `fault`; nothing follows."""

    stage: str
    fault: BaseException | None = None


@dataclass(slots=True, eq=False)
class Opened:
    """The state is built."""

    work: Open
    started: float
    ended: float


@dataclass(slots=True, eq=False)
class Released:
    """The state is given back."""

    work: Release
    started: float
    ended: float


@dataclass(slots=True, eq=False)
class Emitted:
    """One piece of a streaming artifact, in the course of `work`."""

    work: Run
    artifact: str
    piece: object


@dataclass(slots=True, eq=False)
class Completed:
    """The sequence is done; every streaming artifact of it ends here."""

    work: Run
    outputs: Mapping[str, object]
    started: float
    ended: float


@dataclass(slots=True, eq=False)
class Failed:
    """A handler raised `fault`; the state is as it was before."""

    work: Work
    fault: Exception
    started: float
    ended: float


@dataclass(slots=True, eq=False)
class Dropped:
    """The work was void before it began."""

    work: Work


ActorEvent = (
    ActorStarted | ActorStopped | Opened | Released | Emitted | Completed | Failed | Dropped
)


# ------------------------------------------------------------------ core → caller
class Outcome(StrEnum):
    """How an invocation ended."""

    DONE = "done"
    STALE = "stale"  # its epoch was over; what it made is dropped
    FAILED = "failed"


class StageCompleted(NamedTuple):
    """One invocation of a stage is over and its actor free again (times: orchestrator's clock)."""

    session: str
    epoch: int
    sequence: int
    stage: str
    started: float
    ended: float
    outcome: Outcome = Outcome.DONE


class StageOpening(NamedTuple):
    """A stage begins to build the session's state."""

    session: str
    stage: str


class Changed(NamedTuple):
    """Outputs, or the state, of a session are not what they were."""

    session: str


class ActorChanged(NamedTuple):
    """An actor has started or ended."""

    stage: str


Note = StageCompleted | StageOpening | Changed | ActorChanged
Command = Work | Note


class StreamOutput(NamedTuple):
    """Something that leaves the pipeline.

    A streaming artifact gives its pieces, numbered from 0, and after them an end marker: `value`
    None, `last` True, `piece` the number of pieces. Any other artifact gives one item, `last` True.
    """

    session: str
    epoch: int
    sequence: int
    artifact: str
    piece: int
    value: object
    last: bool


@dataclass(frozen=True)
class CloseReport:
    """How a session was closed. Not clean = some state was not given back: quarantine the seat."""

    clean: bool
    failures: Mapping[str, BaseException] = field(default_factory=dict)
