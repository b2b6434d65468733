from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import pytest

from pipeline.streaming import (
    Placement,
    ReleaseOn,
    SpecError,
    StageOrdering,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingResourceGroupSpec,
    StreamingStageSpec,
    plan_of,
)
from tests.fakes.stages import world_spec

VALUES: tuple[object, ...] = (
    None,
    "",
    "nobody",
    "control",
    "latent",
    "denoise",
    "device",
    0,
    -1,
    1,
    7,
    10**30,
    1.5,
    float("nan"),
    True,
    False,
    (),
    ("control",),
    ("latent",),
    ("frames",),
    ("condition", "condition"),
    ("nobody",),
    ("",),
    (3,),
    (None,),
    ["control"],
    {"control": 1},
    b"control",
    object,
    int,
    object(),
    StageOrdering.STRICT,
    "strict",
    ReleaseOn.ADMIT,
    "admit",
    Placement(),
    Placement(process="p", devices=("cuda:0",)),
    Placement(process=3),  # type: ignore[arg-type]
    Placement(devices="cuda:0"),  # type: ignore[arg-type]
    Placement(devices=(0,)),  # type: ignore[arg-type]
    StreamingStageSpec("extra", ("control",), ("nobody",)),
    StreamingEdgeSpec("extra"),
    StreamingResourceGroupSpec("extra"),
)


def single_field_mutations(spec):
    """(path of the field, spec with that field replaced), at every depth, for every value."""
    for field in fields(spec):
        current = getattr(spec, field.name)
        for value in VALUES:
            yield field.name, replace(spec, **{field.name: value})
        if isinstance(current, tuple):
            for place, entry in enumerate(current):
                at = f"{field.name}[{place}]"
                without = current[:place] + current[place + 1 :]
                yield field.name, replace(spec, **{field.name: without})
                yield field.name, replace(spec, **{field.name: (*current, entry)})
                if is_dataclass(entry):
                    for path, changed in single_field_mutations(entry):
                        row = (*current[:place], changed, *current[place + 1 :])
                        yield f"{at}.{path}", replace(spec, **{field.name: row})
        elif is_dataclass(current):
            for path, changed in single_field_mutations(current):
                yield f"{field.name}.{path}", replace(spec, **{field.name: changed})


def named(path: str, error: SpecError) -> bool:
    """Whether some fault is about the field at `path`, a part of it, or what contains it."""
    return any(fault.field.startswith(path) or path in fault.message for fault in error.faults)


def test_every_single_field_mutation_is_accepted_or_refused_by_name():
    tried = accepted = 0
    for path, mutant in single_field_mutations(world_spec(group=True)):
        tried += 1
        error = refusal(mutant)
        accepted += error is None
        # an entry too many or too few shows at the entries around it
        if error is not None and path not in ("stages", "edges", "resource_groups"):
            assert named(path, error), f"{path} is not named by:\n{error}"
    assert tried > 1000
    assert 20 < accepted < tried / 2


def refusal(spec) -> SpecError | None:
    """Why there is no plan of `spec`; None if there is one."""
    try:
        plan_of(spec)
    except SpecError as error:
        return error
    return None


def test_all_faults_are_reported_at_once():
    spec = StreamingPipelineSpec(
        "bad",
        stages=(
            StreamingStageSpec("one", ("a",), ("b",)),
            StreamingStageSpec("one", ("b",), ("b",), resource_group="none"),
        ),
        edges=(
            StreamingEdgeSpec("a", streaming=True, max_pieces=3),
            StreamingEdgeSpec("b", max_pieces=2),
            StreamingEdgeSpec("c"),
        ),
        resource_groups=(StreamingResourceGroupSpec("unused"),),
        latency_anchor_artifact="b",
    )
    with pytest.raises(SpecError) as caught:
        spec.validate()
    found = {fault.field for fault in caught.value.faults}
    assert found >= {
        "stages[0].name",
        "stages[1].name",
        "stages[0].outputs",
        "stages[1].outputs",
        "stages[1].resource_group",
        "edges[0].streaming",
        "edges[1].max_pieces",
        "edges[2].artifact",
        "resource_groups[0].name",
        "latency_anchor_artifact",
        "stages[1].inputs",
    }
    assert all(str(fault) in str(caught.value) for fault in caught.value.faults)


def test_faults_of_single_fields_are_reported_together_too():
    spec = replace(
        world_spec(),
        name="",
        edges=(StreamingEdgeSpec("condition", capacity=0), StreamingEdgeSpec("x", capacity=-1)),
    )
    with pytest.raises(SpecError) as caught:
        spec.validate()
    assert {fault.field for fault in caught.value.faults} == {
        "name",
        "edges[0].capacity",
        "edges[1].capacity",
    }


def test_a_cycle_is_refused_and_everyone_in_it_named():
    spec = StreamingPipelineSpec(
        "ring",
        stages=(
            StreamingStageSpec("one", ("start", "back"), ("there",)),
            StreamingStageSpec("two", ("there",), ("back",)),
        ),
        edges=tuple(StreamingEdgeSpec(name) for name in ("start", "there", "back")),
    )
    with pytest.raises(SpecError) as caught:
        spec.validate()
    found = {fault.field for fault in caught.value.faults}
    assert {"stages[0].inputs", "stages[1].inputs"} <= found
    assert not any("start" in fault.message for fault in caught.value.faults)


def test_a_valid_spec_is_silent():
    world_spec().validate()
    world_spec(group=True, limit=2).validate()
