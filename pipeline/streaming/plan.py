"""What follows from a spec: order, ends, joins, and what carries each artifact.

Everything is numbered here once, so that the core finds its way by index. Stages are numbered in
topological order: a higher number is never upstream of a lower one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pipeline.streaming.spec import (
    Placement,
    ReleaseOn,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingStageSpec,
)


class Transport(StrEnum):
    """How an artifact gets from its producer to a consumer; follows from their placements."""

    REFERENCE = "reference"  # one process
    SHARED_MEMORY = "shared_memory"  # processes without a device in common
    CUDA_IPC = "cuda_ipc"  # processes that both have CUDA devices


@dataclass(frozen=True)
class LanePlan:
    """One edge on its way to one consumer; every session has its own lane of it.

    `producer` is None where the artifact comes from outside, `consumer` where it leaves.
    """

    index: int
    edge: StreamingEdgeSpec
    producer: int | None
    consumer: int | None
    transport: Transport = Transport.REFERENCE

    @property
    def frees_on_admit(self) -> bool:
        """Whether the slot is free again as soon as its consumer starts."""
        return self.consumer is not None and self.edge.release_on is ReleaseOn.ADMIT


@dataclass(frozen=True)
class OutputPlan:
    """One artifact that a stage produces, and the lanes it goes into: one for each consumer."""

    edge: StreamingEdgeSpec
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class StagePlan:
    """A stage by number: its join set (lanes in) and its outputs."""

    index: int
    spec: StreamingStageSpec
    inputs: tuple[int, ...]
    outputs: tuple[OutputPlan, ...]
    group: int | None

    @property
    def name(self) -> str:
        """The name in the spec."""
        return self.spec.name


@dataclass(frozen=True)
class GroupPlan:
    """Stages that share a right to run, the most downstream first."""

    name: str
    limit: int
    stages: tuple[int, ...]


@dataclass(frozen=True)
class PipelinePlan:
    """A pipeline ready to run."""

    spec: StreamingPipelineSpec
    stages: tuple[StagePlan, ...]  # in topological order
    lanes: tuple[LanePlan, ...]
    groups: tuple[GroupPlan, ...]
    entries: Mapping[str, tuple[int, ...]]  # artifact from outside → its lanes
    terminals: Mapping[str, int]  # artifact that leaves → its lane

    def stage(self, name: str) -> StagePlan:
        """The stage of this name (KeyError if there is none)."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)


def plan_of(spec: StreamingPipelineSpec) -> PipelinePlan:
    """Derive the plan; raises `SpecError` with all faults of the spec.

    >>> stage = StreamingStageSpec("double", inputs=("number",), outputs=("twice",))
    >>> edges = (StreamingEdgeSpec("number", int), StreamingEdgeSpec("twice", int))
    >>> plan = plan_of(StreamingPipelineSpec("demo", (stage,), edges))
    >>> list(plan.entries), list(plan.terminals)
    (['number'], ['twice'])
    """
    spec.validate()
    ordered = _topological(spec)
    number = {stage.name: index for index, stage in enumerate(ordered)}
    producer = {name: number[stage.name] for stage in ordered for name in stage.outputs}
    lanes: list[LanePlan] = []
    of_artifact: dict[str, list[int]] = {edge.artifact: [] for edge in spec.edges}
    into: dict[int, dict[str, int]] = {index: {} for index in range(len(ordered))}
    for edge in spec.edges:
        made_by = producer.get(edge.artifact)
        consumers: list[int | None] = [
            index for index, stage in enumerate(ordered) if edge.artifact in stage.inputs
        ]
        for consumer in consumers or [None]:
            lane = LanePlan(
                len(lanes), edge, made_by, consumer, _transport(ordered, made_by, consumer)
            )
            lanes.append(lane)
            of_artifact[edge.artifact].append(lane.index)
            if consumer is not None:
                into[consumer][edge.artifact] = lane.index
    edges = {edge.artifact: edge for edge in spec.edges}
    groups = tuple(
        GroupPlan(
            group.name,
            group.limit,
            tuple(
                i for i in reversed(range(len(ordered))) if ordered[i].resource_group == group.name
            ),
        )
        for group in spec.resource_groups
    )
    group_number = {group.name: index for index, group in enumerate(groups)}
    stages = tuple(
        StagePlan(
            index,
            stage,
            inputs=tuple(into[index][name] for name in stage.inputs),
            outputs=tuple(
                OutputPlan(edges[name], tuple(of_artifact[name])) for name in stage.outputs
            ),
            group=None if stage.resource_group is None else group_number[stage.resource_group],
        )
        for index, stage in enumerate(ordered)
    )
    return PipelinePlan(
        spec,
        stages,
        tuple(lanes),
        groups,
        entries={name: tuple(of_artifact[name]) for name in of_artifact if name not in producer},
        terminals={lane.edge.artifact: lane.index for lane in lanes if lane.consumer is None},
    )


def _topological(spec: StreamingPipelineSpec) -> list[StreamingStageSpec]:
    """Stages with every producer before its consumers; else in the order of the spec."""
    waiting = {name for stage in spec.stages for name in stage.outputs}
    left, ordered = list(spec.stages), list[StreamingStageSpec]()
    while left:
        free = next(stage for stage in left if not waiting.intersection(stage.inputs))
        left.remove(free)
        ordered.append(free)
        waiting.difference_update(free.outputs)
    return ordered


def _transport(
    stages: list[StreamingStageSpec], producer: int | None, consumer: int | None
) -> Transport:
    source = Placement() if producer is None else stages[producer].placement
    target = Placement() if consumer is None else stages[consumer].placement
    if source.process == target.process:
        return Transport.REFERENCE
    if all(
        any(device.startswith("cuda") for device in placement.devices)
        for placement in (source, target)
    ):
        return Transport.CUDA_IPC
    return Transport.SHARED_MEMORY
