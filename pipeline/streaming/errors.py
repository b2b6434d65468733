"""What can go wrong in a pipeline: the caller broke a rule, or a stage did.

PipelineError
├─ SpecError            every fault of a spec at once
├─ CallerError          the call is refused, nothing has changed
│  ├─ UnknownName       a session, stage or artifact that is not there
│  ├─ SessionExists     the name is taken
│  ├─ SessionClosed     the session is closing or closed
│  ├─ SessionBusy       another reset is under way
│  ├─ SequenceDuplicated, SequenceSkipped
│  └─ WrongType         a value that its edge does not carry
└─ StageError           one session cannot go on, or one actor
   ├─ StageFailed       a handler raised
   ├─ BadOutput         a handler returned or emitted what its stage does not declare
   ├─ ActorDied         the owner of a stage is gone
   └─ SessionFailed     what a session's caller sees of any of these
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class PipelineError(Exception):
    """Any error of a pipeline; `code` belongs to the class and never changes its meaning."""

    code = "pipeline_error"


@dataclass(frozen=True)
class SpecFault:
    """One fault of a spec: the field it is in, such as `edges[2].capacity`, and what is wrong."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class SpecError(PipelineError):
    """A spec cannot be built; `faults` are all of them."""

    code = "bad_spec"

    def __init__(self, name: object, faults: Sequence[SpecFault]) -> None:
        lines = "".join(f"\n  {fault}" for fault in faults)
        super().__init__(f"pipeline {name!r} has {len(faults)} fault(s):{lines}")
        self.faults = tuple(faults)


class CallerError(PipelineError):
    """The caller broke a rule; the call changed nothing."""

    code = "bad_call"


class UnknownName(CallerError):
    """There is no such session, stage or artifact."""

    code = "unknown_name"

    def __init__(self, kind: str, name: object, known: Sequence[str] = ()) -> None:
        super().__init__(
            f"no {kind} {name!r}" + (f"; there are {', '.join(known)}" if known else "")
        )
        self.kind, self.name = kind, name


class SessionExists(CallerError):
    """A session of this name still holds state."""

    code = "session_exists"

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session!r} exists already")
        self.session = session


class SessionClosed(CallerError):
    """The session takes nothing more: it is closing, or closed."""

    code = "session_closed"

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session!r} is closed")
        self.session = session


class SessionBusy(CallerError):
    """The session is being opened or reset already."""

    code = "session_busy"

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session!r} is being opened or reset already")
        self.session = session


class SequenceDuplicated(CallerError):
    """The sequence was accepted before."""

    code = "sequence_duplicated"

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"sequence {got} came again; {expected} is next")
        self.expected, self.got = expected, got


class SequenceSkipped(CallerError):
    """An earlier sequence has not been accepted yet."""

    code = "sequence_skipped"

    def __init__(self, expected: int, got: int) -> None:
        super().__init__(f"sequence {got} came before {expected}")
        self.expected, self.got = expected, got


class WrongType(CallerError):
    """A value that its edge does not carry."""

    code = "wrong_type"

    def __init__(self, artifact: str, expected: type, value: object) -> None:
        super().__init__(f"{artifact!r} carries {expected.__name__}, not {type(value).__name__}")
        self.artifact, self.expected = artifact, expected


class StageError(PipelineError):
    """A stage or its actor failed."""

    code = "stage_error"


class StageFailed(StageError):
    """A handler raised; the fault is the `__cause__`, with its traceback."""

    code = "stage_failed"

    def __init__(self, stage: str, cause: BaseException) -> None:
        super().__init__(f"stage {stage!r} failed: {type(cause).__name__}: {cause}")
        self.stage, self.cause = stage, cause
        self.__cause__ = cause


class BadOutput(StageError):
    """A handler returned or emitted what its stage does not declare."""

    code = "bad_output"


class ActorDied(StageError):
    """The actor of a stage has ended, was declared dead, or could not start."""

    code = "actor_died"

    def __init__(self, stage: str, cause: BaseException | None = None) -> None:
        super().__init__(
            f"the actor of stage {stage!r} is gone" + (f": {cause!r}" if cause else "")
        )
        self.stage, self.cause = stage, cause
        self.__cause__ = cause


class SessionFailed(StageError):
    """The session cannot go on and can only be closed; `cause` says which stage, and why."""

    code = "session_failed"

    def __init__(self, session: str, cause: StageError) -> None:
        super().__init__(f"session {session!r} failed: {cause}")
        self.session, self.cause = session, cause
        self.__cause__ = cause
