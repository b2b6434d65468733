"""What makes a spec a pipeline. Every rule looks at the whole spec and names all that break it.

Specs may come from anywhere (a world by import path, a test's mutation), so no rule trusts a type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from pipeline.streaming.errors import SpecFault
from pipeline.streaming.spec import (
    Placement,
    ReleaseOn,
    StageOrdering,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingResourceGroupSpec,
    StreamingStageSpec,
)

T = TypeVar("T")


def faults_of(spec: StreamingPipelineSpec) -> tuple[SpecFault, ...]:
    """All faults of `spec`: those of single fields first; if there are none, those of the graph."""
    return tuple(_field_faults(spec)) or tuple(_graph_faults(spec))


# ------------------------------------------------------------------ single fields
def _field_faults(spec: StreamingPipelineSpec) -> Iterator[SpecFault]:
    yield from _name("name", spec.name)
    anchor: object = spec.latency_anchor_artifact
    if anchor is not None:
        yield from _name("latency_anchor_artifact", anchor)
    yield from _tuple_of("stages", spec.stages, StreamingStageSpec, empty=False)
    yield from _tuple_of("edges", spec.edges, StreamingEdgeSpec, empty=False)
    yield from _tuple_of("resource_groups", spec.resource_groups, StreamingResourceGroupSpec)
    for at, stage in _each("stages", spec.stages, StreamingStageSpec):
        yield from _stage_fields(at, stage)
    for at, edge in _each("edges", spec.edges, StreamingEdgeSpec):
        yield from _edge_fields(at, edge)
    for at, group in _each("resource_groups", spec.resource_groups, StreamingResourceGroupSpec):
        yield from _name(f"{at}.name", group.name)
        yield from _count(f"{at}.limit", group.limit)


def _stage_fields(at: str, stage: StreamingStageSpec) -> Iterator[SpecFault]:
    yield from _name(f"{at}.name", stage.name)
    yield from _names(f"{at}.inputs", stage.inputs)
    yield from _names(f"{at}.outputs", stage.outputs)
    if stage.resource_group is not None:
        yield from _name(f"{at}.resource_group", stage.resource_group)
    yield from _is_a(f"{at}.ordering", stage.ordering, StageOrdering)
    yield from _is_a(f"{at}.placement", stage.placement, Placement)
    if isinstance(stage.placement, Placement):
        yield from _is_a(f"{at}.placement.process", stage.placement.process, str)
        yield from _tuple_of(f"{at}.placement.devices", stage.placement.devices, str)


def _edge_fields(at: str, edge: StreamingEdgeSpec) -> Iterator[SpecFault]:
    yield from _name(f"{at}.artifact", edge.artifact)
    yield from _is_a(f"{at}.type", edge.type, type)
    yield from _count(f"{at}.capacity", edge.capacity)
    yield from _is_a(f"{at}.release_on", edge.release_on, ReleaseOn)
    yield from _is_a(f"{at}.streaming", edge.streaming, bool)
    yield from _count(f"{at}.max_pieces", edge.max_pieces)


def _is_a(at: str, value: object, kind: type) -> Iterator[SpecFault]:
    if not isinstance(value, kind):
        yield SpecFault(at, f"is {value!r}, not a {kind.__name__}")


def _name(at: str, value: object) -> Iterator[SpecFault]:
    if not isinstance(value, str) or not value:
        yield SpecFault(at, f"is {value!r}, not a name")


def _count(at: str, value: object) -> Iterator[SpecFault]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        yield SpecFault(at, f"is {value!r}, not a whole number of at least 1")


def _names(at: str, value: object) -> Iterator[SpecFault]:
    yield from _tuple_of(at, value, str, empty=False)
    if isinstance(value, tuple):
        names = [name for name in value if isinstance(name, str)]
        if "" in names:
            yield SpecFault(at, "holds an empty name")
        for name, times in Counter(names).items():
            if times > 1:
                yield SpecFault(at, f"names {name!r} {times} times")


def _tuple_of(at: str, value: object, kind: type, *, empty: bool = True) -> Iterator[SpecFault]:
    if not isinstance(value, tuple):
        yield SpecFault(at, f"is {value!r}, not a tuple")
        return
    if not value and not empty:
        yield SpecFault(at, "is empty")
    for index, entry in enumerate(value):
        if not isinstance(entry, kind):
            yield SpecFault(f"{at}[{index}]", f"is {entry!r}, not a {kind.__name__}")


def _each(at: str, value: object, kind: type[T]) -> Iterator[tuple[str, T]]:
    if isinstance(value, tuple):
        for index, entry in enumerate(value):
            if isinstance(entry, kind):
                yield f"{at}[{index}]", entry


# ------------------------------------------------------------------ the graph
def _graph_faults(spec: StreamingPipelineSpec) -> Iterator[SpecFault]:
    yield from _unique("stages", "name", [stage.name for stage in spec.stages])
    yield from _unique("edges", "artifact", [edge.artifact for edge in spec.edges])
    yield from _unique("resource_groups", "name", [group.name for group in spec.resource_groups])
    yield from _ends(spec)
    yield from _pieces(spec)
    yield from _groups(spec)
    yield from _cycles(spec)


def _unique(at: str, field: str, names: list[str]) -> Iterator[SpecFault]:
    times = Counter(names)
    for index, name in enumerate(names):
        if times[name] > 1:
            yield SpecFault(f"{at}[{index}].{field}", f"{name!r} is there {times[name]} times")


def _ends(spec: StreamingPipelineSpec) -> Iterator[SpecFault]:
    declared = {edge.artifact for edge in spec.edges}
    producers = Counter(name for stage in spec.stages for name in stage.outputs)
    consumed = {name for stage in spec.stages for name in stage.inputs}
    for index, stage in enumerate(spec.stages):
        for field, names in (("inputs", stage.inputs), ("outputs", stage.outputs)):
            for name in names:
                if name not in declared:
                    yield SpecFault(f"stages[{index}].{field}", f"no edge declares {name!r}")
        for name in stage.outputs:
            if producers[name] > 1:
                yield SpecFault(
                    f"stages[{index}].outputs", f"{name!r} has {producers[name]} producers"
                )
    for index, edge in enumerate(spec.edges):
        if edge.artifact not in producers and edge.artifact not in consumed:
            looked_at = ", ".join(
                f"stages[{place}].{field}"
                for place in range(len(spec.stages))
                for field in ("inputs", "outputs")
            )
            yield SpecFault(
                f"edges[{index}].artifact", f"none of {looked_at} names {edge.artifact!r}"
            )
        if edge.streaming and edge.artifact not in producers:
            yield SpecFault(f"edges[{index}].streaming", "an artifact from outside comes whole")
    anchor = spec.latency_anchor_artifact
    if anchor is not None and (anchor in producers or anchor not in consumed):
        yield SpecFault("latency_anchor_artifact", f"{anchor!r} does not come from outside")
    # an artifact that has just become an entry or stopped being one shows where its stage is
    if anchor is not None and anchor in producers:
        for index, stage in enumerate(spec.stages):
            if anchor in stage.outputs:
                yield SpecFault(f"stages[{index}].outputs", f"produces the anchor {anchor!r}")


def _pieces(spec: StreamingPipelineSpec) -> Iterator[SpecFault]:
    for index, edge in enumerate(spec.edges):
        if not edge.streaming and edge.max_pieces != 1:
            yield SpecFault(
                f"edges[{index}].max_pieces",
                f"is {edge.max_pieces}, but edges[{index}].streaming is False",
            )


def _groups(spec: StreamingPipelineSpec) -> Iterator[SpecFault]:
    declared = {group.name for group in spec.resource_groups}
    used = {stage.resource_group for stage in spec.stages}
    for index, stage in enumerate(spec.stages):
        if stage.resource_group is not None and stage.resource_group not in declared:
            yield SpecFault(
                f"stages[{index}].resource_group", f"no group {stage.resource_group!r} is declared"
            )
    for index, group in enumerate(spec.resource_groups):
        if group.name not in used:
            looked_at = ", ".join(
                f"stages[{place}].resource_group" for place in range(len(spec.stages))
            )
            yield SpecFault(
                f"resource_groups[{index}].name", f"none of {looked_at} is {group.name!r}"
            )


def _cycles(spec: StreamingPipelineSpec) -> Iterator[SpecFault]:
    """Peel off stages whose inputs are all there; what cannot be peeled stands in a cycle."""
    waiting = Counter(name for stage in spec.stages for name in stage.outputs)
    left = dict(enumerate(spec.stages))
    while free := [
        index for index, stage in left.items() if not any(waiting[name] for name in stage.inputs)
    ]:
        for index in free:
            waiting.subtract(left.pop(index).outputs)
    for index, stage in left.items():
        waits = ", ".join(repr(name) for name in stage.inputs if waiting[name])
        yield SpecFault(f"stages[{index}].inputs", f"waits for {waits}, in or behind a cycle")
        yield SpecFault(f"stages[{index}].outputs", f"stands in or behind a cycle through {waits}")
