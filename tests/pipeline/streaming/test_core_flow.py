"""What passes through the pipeline, and when it may: one program a fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.streaming import (
    CallerError,
    ReleaseOn,
    SequenceDuplicated,
    SequenceSkipped,
    SessionFailed,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingStageSpec,
    UnknownName,
    WrongType,
)
from pipeline.streaming.messages import Completed, Emitted, Outcome, Run
from tests.fakes.stages import PIECES, FakeActors, chain_spec, world_spec


def opened(spec=None, *sessions: str) -> FakeActors:
    actors = FakeActors(spec or world_spec())
    for session in sessions or ("a",):
        actors.open(session)
    return actors


# ------------------------------------------------------------------ ingress
def test_a_submit_is_all_or_nothing():
    actors = opened()
    assert actors.submit("a", 0, "condition_request")
    assert actors.submit("a", 1, "condition_request")
    assert actors.submit("a", 0, "control")
    assert actors.submit("a", 1, "control")  # encode has not answered: no condition, control full
    before = actors.core.session("a").metrics().slots
    assert not actors.core.can_submit("a", 2, ["condition_request", "control"])
    assert not actors.submit("a", 2, "condition_request", "control")
    assert actors.core.session("a").metrics().slots == before
    actors.answer("encode")  # a place for the request, none for the control
    assert actors.core.can_submit("a", 2, ["condition_request"])
    before = actors.core.session("a").metrics().slots
    assert not actors.core.can_submit("a", 2, ["control", "condition_request"])
    assert not actors.submit("a", 2, "condition_request", "control")
    assert actors.core.session("a").metrics().slots == before


def test_duplicates_and_skips_raise_and_change_nothing():
    actors = opened()
    actors.submit("a", 0, "condition_request")
    before = actors.core.session("a").metrics()
    with pytest.raises(SequenceDuplicated) as duplicated:
        actors.submit("a", 0, "condition_request")
    assert (duplicated.value.expected, duplicated.value.got) == (1, 0)
    with pytest.raises(SequenceSkipped) as skipped:
        actors.submit("a", 2, "condition_request")
    assert (skipped.value.expected, skipped.value.got) == (1, 2)
    with pytest.raises(SequenceSkipped):
        actors.submit("a", 1, "condition_request", "control")  # control 0 is missing
    with pytest.raises(UnknownName, match="condition_request, control"):
        actors.submit("a", 0, "latent")
    with pytest.raises(UnknownName):
        actors.submit("nobody", 0, "control")
    with pytest.raises(CallerError):
        actors.core.submit("a", 0, {}, 0.0)
    assert actors.core.session("a").metrics() == before


def test_an_edge_refuses_what_it_does_not_carry():
    spec = world_spec()
    typed = tuple(
        replace(edge, type=int) if edge.artifact == "control" else edge for edge in spec.edges
    )
    actors = opened(replace(spec, edges=typed))
    with pytest.raises(WrongType, match="control"):
        actors.core.submit("a", 0, {"condition_request": "x", "control": "W"}, 0.0)
    assert actors.core.submit("a", 0, {"condition_request": "x", "control": 3}, 0.0)


def test_nothing_is_accepted_before_the_session_is_open():
    actors = FakeActors(world_spec())
    actors.open("a", finish=False)
    assert not actors.core.can_submit("a", 0, ["control"])
    assert not actors.submit("a", 0, "control")
    assert not actors.core.can_reserve("a", 0)
    actors.answer_chores()
    assert actors.submit("a", 0, "control")


# ------------------------------------------------------------------ order, joins, releases
def test_the_join_waits_for_both_and_matches_sequences():
    actors = opened()
    actors.submit("a", 0, "control")
    actors.submit("a", 1, "control")
    assert actors.running("denoise") is None
    actors.submit("a", 0, "condition_request")
    actors.answer("encode")
    assert actors.running("denoise") == ("a", 0)
    (work,) = actors.posted["denoise"]
    assert isinstance(work, Run)
    assert work.inputs == {"condition": ("condition", "a", 0), "control": ("control", "a", 0)}
    actors.answer("denoise")
    assert actors.running("denoise") is None, "condition 1 is missing"


def test_stages_of_one_session_overlap():
    actors = opened()
    for sequence in range(2):
        actors.submit("a", sequence, "condition_request", "control")
    actors.answer("encode")
    actors.answer("encode")
    actors.answer("denoise")
    assert actors.running("denoise") == ("a", 1)
    assert actors.running("decode") == ("a", 0)


@pytest.mark.parametrize("release_on", list(ReleaseOn))
def test_a_slot_is_freed_when_its_edge_says_so(release_on):
    actors = opened(world_spec(release_on=release_on, request_capacity=1))
    assert actors.submit("a", 0, "condition_request")
    assert actors.running("encode") == ("a", 0)
    expected = release_on is ReleaseOn.ADMIT
    assert actors.core.can_submit("a", 1, ["condition_request"]) is expected
    assert actors.submit("a", 1, "condition_request") is expected
    actors.answer("encode")
    assert actors.core.can_submit("a", 2 if expected else 1, ["condition_request"])


def test_a_full_output_stops_its_stage_and_nothing_else():
    actors = opened(world_spec(capacity=1), "a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer_all()
    actors.submit("a", 1, "condition_request", "control")
    actors.answer_all()
    metrics = actors.core.session("a").metrics()
    assert metrics.completed == 1, "its frames of chunk 0 have not been taken"
    assert metrics.stages["denoise"].completed == 2
    assert len(actors.take("b")) == PIECES + 1
    actors.submit("b", 1, "condition_request", "control")
    actors.answer_all()
    assert actors.core.session("b").metrics().completed == 2
    for output in actors.take("a"):
        assert output.sequence == 0
    actors.answer_all()
    assert actors.core.session("a").metrics().completed == 2


# ------------------------------------------------------------------ reservation
def test_reserving_takes_every_slot_of_the_chunk_and_dispatch_uses_them():
    actors = opened(world_spec(capacity=1, request_capacity=1))
    assert actors.core.reserve("a", 0, 0.0)
    slots = actors.core.session("a").metrics().slots
    assert set(slots.values()) == {1}
    assert actors.core.reserve("a", 0, 0.0), "again: nothing more to do"
    assert not actors.core.can_reserve("a", 1)
    assert not actors.core.reserve("a", 1, 0.0)
    assert actors.submit("a", 0, "condition_request", "control")
    actors.answer_all()
    assert [output.last for output in actors.take("a")] == [False] * PIECES + [True]
    assert actors.core.session("a").metrics().slots == dict.fromkeys(slots, 0)


def test_a_chunk_is_not_reservable_while_its_outputs_are_full():
    actors = opened(world_spec(capacity=2))
    for sequence in range(2):
        assert actors.core.reserve("a", sequence, 0.0)
        actors.submit("a", sequence, "condition_request", "control")
        actors.answer_all()
    assert actors.core.stage_free("denoise")
    assert not actors.core.can_reserve("a", 2), "two chunks of frames wait for their taker"
    record = actors.core.session("a")
    for _ in range(PIECES):
        actors.core.take(record, 0.0)
        assert not actors.core.can_reserve("a", 2)
    actors.core.take(record, 0.0)  # the end marker of chunk 0
    assert actors.core.can_reserve("a", 2)


def test_a_claim_keeps_the_stage_and_its_right_until_the_dispatch():
    actors = opened(world_spec(group=True), "a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request")
        actors.answer("encode")
    assert actors.core.inputs_ready("a", 0, "denoise", besides={"control"})
    assert not actors.core.inputs_ready("a", 0, "denoise", besides=())
    assert actors.core.reserve("a", 0, 0.0, claim="denoise")
    assert not actors.core.stage_free("denoise")
    assert not actors.core.stage_free("decode"), "they share the right"
    assert not actors.core.reserve("b", 0, 0.0, claim="denoise")
    assert actors.submit("b", 0, "control")
    assert actors.running("denoise") is None, "kept for a"
    assert actors.submit("a", 0, "control")
    assert actors.running("denoise") == ("a", 0)
    actors.answer("denoise")
    assert actors.running("decode") == ("a", 0), "downstream first"
    assert actors.running("denoise") is None
    actors.answer("decode")
    assert actors.running("denoise") == ("b", 0)


@pytest.mark.parametrize("how", ["close", "reset", "fail"])
def test_a_claim_ends_with_what_its_session_was(how):
    actors = opened(world_spec(group=True), "a", "b")
    actors.submit("a", 0, "condition_request")
    assert actors.core.reserve("a", 0, 0.0, claim="denoise")
    if how == "close":
        actors.close("a")
    elif how == "reset":
        actors.reset("a")
    else:
        actors.answer("encode", fault=ValueError("broken"))
    actors.answer_all()
    assert actors.core.stage_free("denoise")
    actors.submit("b", 0, "condition_request", "control")
    actors.answer_all()
    assert actors.core.session("b").metrics().completed == 1


def test_reserving_a_finished_chunk_raises():
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer_all()
    with pytest.raises(SequenceDuplicated):
        actors.core.reserve("a", 0, 0.0)


# ------------------------------------------------------------------ who runs next
def test_ready_sessions_take_turns():
    actors = opened(chain_spec("work", capacity=4), *"abc")
    for sequence in range(3):
        for session in "abc":
            actors.submit(session, sequence, "work_in")
    order = []
    while actors.posted["work"]:
        order.append(actors.running("work")[0])
        actors.answer("work")
    assert order == list("abcabcabc")


def test_in_a_resource_group_downstream_goes_first():
    actors = opened(world_spec(group=True), "a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer("encode")
    assert actors.running("denoise") == ("a", 0)
    actors.answer("encode")
    actors.answer("denoise")
    assert (actors.running("denoise"), actors.running("decode")) == (None, ("a", 0))
    actors.answer("decode")
    assert (actors.running("denoise"), actors.running("decode")) == (("b", 0), None)


def test_a_group_admits_as_many_as_its_limit():
    actors = opened(world_spec(group=True, limit=2), "a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("encode")
    actors.answer("denoise")
    assert (actors.running("denoise"), actors.running("decode")) == (("b", 0), ("a", 0))


# ------------------------------------------------------------------ fan-out, several terminals
def fan() -> StreamingPipelineSpec:
    return StreamingPipelineSpec(
        "fan",
        stages=(
            StreamingStageSpec("source", ("a",), ("b",)),
            StreamingStageSpec("left", ("b",), ("l",)),
            StreamingStageSpec("right", ("b",), ("r",)),
        ),
        edges=tuple(StreamingEdgeSpec(name) for name in "ablr"),
    )


def test_each_consumer_has_its_own_container_and_its_own_slots():
    actors = opened(fan())
    actors.submit("a", 0, "a")
    (work,) = actors.posted["source"]
    tensor = object()
    actors.posted["source"].clear()
    actors.core.handle(Completed(work, {"b": {"tensor": tensor}}, 0.0, 1.0), 1.0)
    actors.settle()
    left, right = actors.posted["left"][0].inputs["b"], actors.posted["right"][0].inputs["b"]
    assert left == right == {"tensor": tensor}
    assert left["tensor"] is right["tensor"], "the tensor itself is not copied"
    left.pop("tensor")
    assert right == {"tensor": tensor}


def test_a_sequence_is_complete_when_every_terminal_is_in():
    actors = opened(fan())
    actors.submit("a", 0, "a")
    actors.answer("source")
    actors.answer("left")
    assert actors.core.in_flight("a") == 1
    actors.answer("right")
    assert actors.core.in_flight("a") == 0
    assert {output.artifact for output in actors.take("a")} == {"l", "r"}


def test_a_slow_branch_stops_the_source_when_its_lane_is_full():
    actors = opened(fan())
    for sequence in range(2):
        actors.submit("a", sequence, "a")
        actors.answer("source")
        if sequence == 0:
            actors.answer("left")
    actors.answer("left")
    actors.submit("a", 2, "a")
    assert actors.running("source") is None, "right has two waiting"
    actors.answer("right")
    assert actors.running("source") == ("a", 2)


# ------------------------------------------------------------------ streaming edges
@pytest.mark.parametrize("pieces", [0, 1, PIECES])
def test_pieces_leave_one_by_one_and_an_end_marker_follows(pieces):
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("denoise")
    actors.answer("decode", pieces=pieces)
    taken = actors.take("a")
    assert [(output.piece, output.last) for output in taken] == [
        *((piece, False) for piece in range(pieces)),
        (pieces, True),
    ]
    assert [output.value for output in taken[:-1]] == [
        ("frames", "a", 0, piece) for piece in range(pieces)
    ]
    assert taken[-1].value is None


def test_pieces_can_be_taken_while_their_stage_runs():
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("denoise")
    (work,) = actors.posted["decode"]
    actors.core.handle(Emitted(work, "frames", "first"), 1.0)
    (piece,) = actors.take("a")
    assert (piece.value, piece.last) == ("first", False)


def test_a_stage_that_consumes_pieces_gets_them_as_a_tuple():
    spec = StreamingPipelineSpec(
        "pieces",
        stages=(
            StreamingStageSpec("cut", ("a",), ("parts",)),
            StreamingStageSpec("join", ("parts",), ("whole",)),
        ),
        edges=(
            StreamingEdgeSpec("a"),
            StreamingEdgeSpec("parts", streaming=True, max_pieces=4),
            StreamingEdgeSpec("whole"),
        ),
    )
    actors = opened(spec)
    actors.submit("a", 0, "a")
    actors.answer("cut", pieces=2)
    assert actors.posted["join"][0].inputs == {
        "parts": (("parts", "a", 0, 0), ("parts", "a", 0, 1))
    }
    actors.submit("a", 1, "a")
    actors.answer("cut", pieces=0)
    actors.answer("join")
    assert actors.posted["join"][0].inputs == {"parts": ()}


@pytest.mark.parametrize(
    ("emissions", "outputs", "message"),
    [
        (["frames"] * (PIECES + 1), {}, "at most"),
        (["latent"], {}, "does not stream"),
        ([], {"frames": 1}, "returned"),
        ([], {"other": 1}, "returned"),
    ],
)
def test_a_stage_that_breaks_its_declaration_fails_its_session_only(emissions, outputs, message):
    actors = opened(None, "a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("denoise")
    work = actors.posted["decode"].pop(0)
    for artifact in emissions:
        actors.core.handle(Emitted(work, artifact, 0), 1.0)
    actors.core.handle(Completed(work, outputs, 0.0, 1.0), 1.0)
    actors.settle()
    with pytest.raises(SessionFailed, match=message):
        actors.submit("a", 1, "control")
    actors.answer_all()
    assert len(actors.take("b")) == PIECES + 1


# ------------------------------------------------------------------ what is told
def test_completions_are_told_with_their_times_and_outcome():
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("denoise", fault=ValueError("broken"))
    told = [(note.stage, note.sequence, note.outcome) for note in actors.completions]
    assert told == [("encode", 0, Outcome.DONE), ("denoise", 0, Outcome.FAILED)]
    assert all(note.ended - note.started == 1.0 for note in actors.completions)


def test_answers_that_nobody_waits_for_are_counted_and_dropped():
    actors = opened()
    actors.submit("a", 0, "condition_request")
    work = actors.answer("encode")
    before = actors.core.session("a").metrics().slots
    again = Completed(work, {"condition": "again"}, 0.0, 1.0)
    actors.core.handle(again, 1.0)
    assert actors.core.diagnostics(0.0).duplicate == 1
    assert actors.core.session("a").metrics().slots == before
    actors.reset("a")
    actors.core.handle(again, 1.0)
    assert actors.core.diagnostics(0.0).stale == 1
    actors.answer_all()
    actors.close("a")
    actors.answer_all()
    actors.core.handle(again, 1.0)
    assert actors.core.diagnostics(0.0).orphaned == 1
