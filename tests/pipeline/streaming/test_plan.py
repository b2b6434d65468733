from __future__ import annotations

from dataclasses import replace

from pipeline.streaming import (
    Placement,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingStageSpec,
    Transport,
    plan_of,
)
from tests.fakes.stages import world_spec


def test_entries_terminals_and_joins_are_derived():
    plan = plan_of(world_spec())
    assert [stage.name for stage in plan.stages] == ["encode", "denoise", "decode"]
    assert set(plan.entries) == {"condition_request", "control"}
    assert set(plan.terminals) == {"frames"}
    join = [plan.lanes[lane].edge.artifact for lane in plan.stage("denoise").inputs]
    assert join == ["condition", "control"]


def test_stages_are_ordered_topologically_however_they_are_declared():
    spec = world_spec(group=True)
    for order in ((2, 1, 0), (1, 0, 2), (2, 0, 1)):
        shuffled = replace(spec, stages=tuple(spec.stages[place] for place in order))
        plan = plan_of(shuffled)
        assert [stage.name for stage in plan.stages] == ["encode", "denoise", "decode"]
        assert plan.groups[0].stages == (2, 1), "downstream first"


def test_fan_out_gives_each_consumer_a_lane():
    spec = StreamingPipelineSpec(
        "fan",
        stages=(
            StreamingStageSpec("source", ("a",), ("b",)),
            StreamingStageSpec("left", ("b",), ("l",)),
            StreamingStageSpec("right", ("b",), ("r",)),
        ),
        edges=tuple(StreamingEdgeSpec(name) for name in "ablr"),
    )
    plan = plan_of(spec)
    (output,) = plan.stage("source").outputs
    consumers = [plan.lanes[lane].consumer for lane in output.lanes]
    assert consumers == [plan.stage("left").index, plan.stage("right").index]
    assert set(plan.terminals) == {"l", "r"}


def test_the_transport_follows_from_the_placements():
    here, gpu, other = Placement(), Placement("a", ("cuda:0",)), Placement("b", ("cuda:1",))

    def between(source: Placement, target: Placement) -> Transport:
        spec = StreamingPipelineSpec(
            "two",
            stages=(
                StreamingStageSpec("one", ("a",), ("b",), placement=source),
                StreamingStageSpec("two", ("b",), ("c",), placement=target),
            ),
            edges=tuple(StreamingEdgeSpec(name) for name in "abc"),
        )
        plan = plan_of(spec)
        (lane,) = [lane for lane in plan.lanes if lane.edge.artifact == "b"]
        return lane.transport

    assert between(here, here) is Transport.REFERENCE
    assert between(gpu, gpu) is Transport.REFERENCE
    assert between(here, Placement("a")) is Transport.SHARED_MEMORY
    assert between(here, gpu) is Transport.SHARED_MEMORY
    assert between(gpu, other) is Transport.CUDA_IPC
