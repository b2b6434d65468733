"""What a pipeline is: stages, the artifacts between them, and what they share. Declarations only.

Nothing here runs. Entries, terminals, joins and transports are *derived* in `plan.py`; there is no
second place to declare them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipeline.streaming.errors import SpecError


class StageOrdering(StrEnum):
    """In which order a stage takes the items of one session."""

    STRICT = "strict"  # by sequence, never skipping, never overtaking


class ReleaseOn(StrEnum):
    """When the consumer of an edge gives its slot back."""

    COMPLETE = "complete"  # when the consuming invocation is over: tensors
    ADMIT = "admit"  # as soon as the invocation is admitted: metadata


@dataclass(frozen=True)
class Placement:
    """Where a stage runs: a process by name ("" = the worker's own) and its devices."""

    process: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class StreamingStageSpec:
    """One stage: consumes `inputs` (joined on sequence), produces `outputs`; artifacts by name."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ordering: StageOrdering = StageOrdering.STRICT
    placement: Placement = Placement()
    resource_group: str | None = None


@dataclass(frozen=True)
class StreamingEdgeSpec:
    """One artifact: its type, and the bounded place it takes per session and consumer.

    `capacity` counts chunks (sequences). A `streaming` edge carries 0..`max_pieces` pieces per
    sequence and then an end marker; its places are reserved at dispatch, so emitting never waits.
    The caller gets the pieces one by one; a stage that consumes them gets all of one sequence as
    a tuple.
    An artifact that no stage consumes is an output of the pipeline; its slot is given back when
    the caller has taken it.
    """

    artifact: str
    type: type = object
    capacity: int = 2
    release_on: ReleaseOn = ReleaseOn.COMPLETE
    streaming: bool = False
    max_pieces: int = 1


@dataclass(frozen=True)
class StreamingResourceGroupSpec:
    """Stages that share something; at most `limit` of them run at once, downstream ones first."""

    name: str
    limit: int = 1


@dataclass(frozen=True)
class StreamingPipelineSpec:
    """A whole pipeline: a DAG of typed artifacts."""

    name: str
    stages: tuple[StreamingStageSpec, ...]
    edges: tuple[StreamingEdgeSpec, ...]
    resource_groups: tuple[StreamingResourceGroupSpec, ...] = ()
    latency_anchor_artifact: str | None = None  # the clock of a sequence starts at its acceptance

    def validate(self) -> None:
        """Check every rule; raise one `SpecError` that lists all faults, or return."""
        from pipeline.streaming.rules import faults_of  # the rules are about this file's classes

        if faults := faults_of(self):
            raise SpecError(self.name, faults)
