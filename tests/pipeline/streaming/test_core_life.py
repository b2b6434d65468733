"""How sessions come, go, fail and are reset: one program a fact."""

from __future__ import annotations

import pytest

from pipeline.streaming import (
    ActorDied,
    SessionBusy,
    SessionClosed,
    SessionExists,
    SessionFailed,
    StageFailed,
    UnknownName,
)
from pipeline.streaming.messages import Abort, Completed, Emitted, Open, Outcome, Release, Run
from pipeline.streaming.records import Phase
from tests.fakes.stages import PIECES, FakeActors, world_spec


def opened(*sessions: str, **options) -> FakeActors:
    actors = FakeActors(world_spec(**options))
    for session in sessions or ("a",):
        actors.open(session)
    return actors


def asked(actors: FakeActors, kind: type) -> list[tuple[str, str]]:
    return [(work.stage, work.session) for work in actors.history if type(work) is kind]


# ------------------------------------------------------------------ open
def test_state_is_opened_stage_by_stage_in_the_given_order():
    actors = FakeActors(world_spec())
    order = ["decode", "encode", "denoise"]
    actors.core.open("a", {"encode": "picture"}, order, 0.0)
    actors.settle()
    for stage in order:
        assert [name for name, works in actors.posted.items() if works] == [stage]
        (work,) = actors.posted[stage]
        assert isinstance(work, Open)
        assert work.start == ("picture" if stage == "encode" else None)
        actors.answer(stage)
    assert actors.core.session("a").phase is Phase.OPEN
    assert actors.openings == [("a", stage) for stage in order]


def test_opening_waits_for_an_actor_that_is_busy_with_another_session():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    actors.open("b", finish=False)
    assert actors.running("encode") == ("a", 0)
    assert asked(actors, Open).count(("encode", "b")) == 0
    actors.answer("encode")
    assert isinstance(actors.posted["encode"][0], Open)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_open_that_fails_half_way_releases_what_was_opened(place):
    actors = FakeActors(world_spec())
    actors.open("a", finish=False)
    stages = ["encode", "denoise", "decode"]
    for stage in stages[:place]:
        actors.answer(stage)
    record = actors.core.session("a")
    actors.answer(stages[place], fault=ValueError("no memory"))
    actors.answer_all()
    assert asked(actors, Release) == [(stage, "a") for stage in reversed(stages[:place])]
    assert record.phase is Phase.CLOSED
    assert isinstance(record.failure, StageFailed)
    assert record.failure.stage == stages[place]
    assert str(record.failure.__cause__) == "no memory"
    actors.open("a")
    assert actors.core.session("a").phase is Phase.OPEN


def test_closing_while_opening_does_not_open_the_rest():
    actors = FakeActors(world_spec())
    actors.open("a", finish=False)
    actors.close("a")
    assert asked(actors, Open) == [("encode", "a")]
    actors.answer_all()
    assert asked(actors, Open) == [("encode", "a")]
    assert asked(actors, Release) == [("encode", "a")]
    assert actors.core.sessions == ()


def test_an_opening_that_has_not_begun_is_withdrawn():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    actors.open("b", finish=False)
    record = actors.core.session("b")
    actors.close("b")
    assert record.phase is Phase.CLOSED, "encode was busy with a; b had nothing yet"
    actors.answer_all()
    assert ("encode", "b") not in asked(actors, Open)


def test_a_name_is_taken_until_the_session_is_gone():
    actors = opened("a")
    with pytest.raises(SessionExists):
        actors.open("a")
    actors.close("a")
    with pytest.raises(SessionExists):
        actors.open("a")
    actors.answer_all()
    actors.open("a")


def test_an_opening_for_a_stage_that_is_not_there_is_refused():
    actors = FakeActors(world_spec())
    with pytest.raises(UnknownName):
        actors.core.open("a", {"decoder": 1}, ["encode", "denoise", "decode"], 0.0)
    assert actors.core.sessions == ()


# ------------------------------------------------------------------ close
def test_state_is_released_in_reverse_order_one_after_the_other():
    actors = opened("a")
    actors.close("a")
    for stage in ("decode", "denoise", "encode"):
        assert [name for name, works in actors.posted.items() if works] == [stage]
        actors.answer(stage)
    assert actors.core.sessions == ()
    assert actors.core.diagnostics(0.0).slot_leaks == 0


def test_a_cancelling_close_waits_for_what_runs_and_drops_what_waits():
    actors = opened("a")
    for sequence in range(2):
        actors.submit("a", sequence, "condition_request", "control")
    actors.answer("encode")  # denoise runs 0, encode runs 1
    record = actors.core.session("a")
    actors.close("a")
    assert {abort.stage for abort in actors.aborts} == {"encode", "denoise", "decode"}
    assert all(abort.epoch == record.epoch for abort in actors.aborts)
    assert record.slots_used == 3, "held by what runs: one request, one condition, one control"
    assert actors.running("denoise") == ("a", 0)
    actors.answer("decode")
    assert asked(actors, Release) == [("decode", "a")], "denoise is still running"
    actors.answer("denoise")
    actors.answer_all()
    assert record.phase is Phase.CLOSED
    assert record.slots_used == 0
    assert actors.core.diagnostics(0.0).stale == 2


def test_a_draining_close_lets_everything_through_first():
    actors = opened("a")
    for sequence in range(2):
        actors.submit("a", sequence, "condition_request", "control")
    record = actors.core.session("a")
    actors.close("a", drain=True)
    with pytest.raises(SessionClosed):
        actors.submit("a", 2, "condition_request")
    assert not actors.core.can_submit("a", 2, ["condition_request"])
    actors.answer_all()
    assert asked(actors, Release) == []
    taken = actors.take("a")
    assert [output.sequence for output in taken if output.last] == [0, 1]
    actors.answer_all()
    assert record.phase is Phase.CLOSED
    assert record.report.clean


def test_draining_does_not_wait_for_a_prefetched_condition():
    actors = opened("a")
    actors.submit("a", 0, "condition_request", "control")
    actors.submit("a", 1, "condition_request")
    record = actors.core.session("a")
    actors.close("a", drain=True)
    actors.answer_all()
    actors.take("a")
    actors.answer_all()
    assert record.phase is Phase.CLOSED
    assert actors.core.diagnostics(0.0).slot_leaks == 0


def test_draining_a_session_in_which_nothing_is_under_way_closes_it_at_once():
    actors = opened("a")
    record = actors.core.session("a")
    actors.close("a", drain=True)
    assert record.phase is Phase.CLOSING
    actors.answer_all()
    assert record.phase is Phase.CLOSED


def test_a_drain_can_be_cut_short():
    actors = opened("a")
    actors.submit("a", 0, "condition_request", "control")
    record = actors.core.session("a")
    actors.close("a", drain=True)
    actors.close("a")
    actors.answer_all()
    assert record.phase is Phase.CLOSED
    assert not record.outbox


def test_closing_again_changes_nothing():
    actors = opened("a")
    actors.close("a")
    actors.close("a")
    actors.answer_all()
    assert len(asked(actors, Release)) == 3
    assert actors.core.close("a", 0.0) is None


# ------------------------------------------------------------------ failure
def test_a_failing_handler_fails_its_session_only():
    actors = opened("a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("encode")
    actors.answer("denoise", fault=ValueError("nan"))
    with pytest.raises(SessionFailed) as caught:
        actors.submit("a", 1, "control")
    assert isinstance(caught.value.cause, StageFailed)
    assert (caught.value.cause.stage, str(caught.value.cause.cause)) == ("denoise", "nan")
    assert not actors.core.can_submit("a", 1, ["control"])
    assert not actors.core.can_reserve("a", 1)
    with pytest.raises(SessionFailed):
        actors.core.reset("a", {}, ["encode", "denoise", "decode"], 0.0)
    actors.answer_all()
    assert len(actors.take("b")) == PIECES + 1
    actors.close("a")
    actors.answer_all()
    assert actors.core.sessions == ("b",)
    assert asked(actors, Release) == [(stage, "a") for stage in ("decode", "denoise", "encode")]


def test_a_fault_while_draining_closes_at_once():
    actors = opened("a")
    actors.submit("a", 0, "condition_request", "control")
    record = actors.core.session("a")
    actors.close("a", drain=True)
    actors.answer("encode", fault=ValueError("broken"))
    actors.answer_all()
    assert record.phase is Phase.CLOSED
    assert isinstance(record.failure, StageFailed)


def test_a_fault_of_a_void_invocation_fails_nobody():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    actors.reset("a")
    actors.answer("encode", fault=ValueError("late"))
    actors.answer_all()
    assert actors.submit("a", 0, "condition_request")


# ------------------------------------------------------------------ reset
def test_a_reset_voids_what_is_under_way_and_rebuilds_when_it_has_ended():
    actors = opened("a", "b")
    for sequence in range(2):
        actors.submit("a", sequence, "condition_request", "control")
    actors.answer("encode")
    (running,) = actors.posted["denoise"]
    assert isinstance(running, Run)
    actors.reset("a")
    assert actors.core.session("a").epoch == 1
    assert not actors.submit("a", 0, "control"), "not before the state is rebuilt"
    actors.answer("encode")
    assert asked(actors, Release) == [("decode", "a")]
    actors.answer("decode")
    assert asked(actors, Release) == [("decode", "a")], "denoise still runs for the old epoch"
    actors.answer("denoise")
    actors.answer_all()
    assert asked(actors, Release) == [(stage, "a") for stage in ("decode", "denoise", "encode")]
    assert asked(actors, Open)[-3:] == [(stage, "a") for stage in ("encode", "denoise", "decode")]
    assert actors.core.session("a").metrics().slots == dict.fromkeys(
        ("condition_request", "condition", "control", "latent", "frames"), 0
    )
    assert actors.take("a") == []
    assert [note.outcome for note in actors.completions] == [
        Outcome.DONE,
        Outcome.STALE,
        Outcome.STALE,
    ]
    assert actors.submit("a", 0, "condition_request", "control")
    actors.answer_all()
    assert {(output.epoch, output.sequence) for output in actors.take("a")} == {(1, 0)}


def test_late_pieces_of_an_old_epoch_are_counted_and_dropped():
    actors = opened("a")
    actors.submit("a", 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("denoise")
    (work,) = actors.posted["decode"]
    actors.core.handle(Emitted(work, "frames", "shown"), 0.0)
    actors.reset("a")
    actors.core.handle(Emitted(work, "frames", "late"), 0.0)
    assert actors.take("a") == []
    assert actors.core.diagnostics(0.0).stale == 1
    assert actors.core.session("a").metrics().stale == 1
    actors.answer("decode")
    actors.answer_all()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer_all()
    pieces = [output.piece for output in actors.take("a")]
    assert pieces == list(range(PIECES + 1)), "pieces of the new epoch count from 0"


def test_an_actor_may_answer_void_work_without_running_it():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    actors.reset("a")
    actors.drop("encode")
    actors.answer_all()
    assert actors.submit("a", 0, "condition_request")
    assert actors.completions[0].outcome is Outcome.STALE


def test_a_session_is_reset_once_at_a_time():
    actors = opened("a")
    actors.reset("a")
    with pytest.raises(SessionBusy):
        actors.reset("a")
    actors.answer_all()
    actors.reset("a")
    actors.answer_all()
    assert actors.core.session("a").epoch == 2


def test_a_reset_that_fails_leaves_a_failed_session_that_can_be_closed():
    actors = opened("a")
    actors.reset("a")
    for stage in ("decode", "denoise", "encode", "encode"):
        actors.answer(stage)
    actors.answer("denoise", fault=ValueError("no memory"))
    assert actors.core.session("a").phase is Phase.FAILED
    actors.close("a")
    actors.answer_all()
    assert actors.core.sessions == ()
    assert asked(actors, Release)[3:] == [("encode", "a")], "only encode had been rebuilt"


def test_closing_in_the_middle_of_a_reset_opens_nothing_more():
    actors = opened("a")
    actors.reset("a")
    actors.answer("decode")
    actors.close("a")
    actors.answer_all()
    assert actors.core.sessions == ()
    assert len(asked(actors, Open)) == 3
    assert len(asked(actors, Release)) == 3


# ------------------------------------------------------------------ quarantine
def test_a_release_that_raises_quarantines_the_session_and_the_others_are_released():
    actors = opened("a", "b")
    record = actors.core.session("a")
    actors.close("a")
    actors.answer("decode")
    actors.answer("denoise", fault=OSError("busy"))
    actors.answer("encode")
    assert record.phase is Phase.QUARANTINED
    assert not record.report.clean
    assert [(stage, str(fault)) for stage, fault in record.report.failures.items()] == [
        ("denoise", "busy")
    ]
    diagnostics = actors.core.diagnostics(0.0)
    assert (diagnostics.quarantined, diagnostics.cleanup_failures) == (("a",), 1)
    with pytest.raises(SessionExists):
        actors.open("a")
    with pytest.raises(SessionClosed):
        actors.submit("a", 0, "control")


def test_closing_a_quarantined_session_tries_the_failed_release_again():
    actors = opened("a")
    actors.close("a")
    actors.answer("decode")
    actors.answer("denoise", fault=OSError("busy"))
    actors.answer("encode")
    actors.history.clear()
    record = actors.core.close("a", 0.0)
    actors.settle()
    assert asked(actors, Release) == [("denoise", "a")], "the others were released once"
    actors.answer("denoise", fault=OSError("still busy"))
    assert record.phase is Phase.QUARANTINED
    actors.close("a")
    actors.answer("denoise")
    assert record.phase is Phase.CLOSED
    assert record.report.clean
    assert actors.core.diagnostics(0.0).quarantined == ()
    actors.open("a")


def test_a_release_that_raised_in_a_reset_and_then_succeeded_leaves_no_quarantine():
    actors = opened("a")
    record = actors.core.session("a")
    actors.reset("a")
    actors.answer("decode", fault=OSError("busy"))
    assert record.phase is Phase.FAILED
    actors.close("a")
    actors.answer_all()
    assert record.phase is Phase.CLOSED
    assert record.report.clean


# ------------------------------------------------------------------ dead actors
@pytest.mark.parametrize("stage", ["encode", "denoise", "decode"])
def test_a_dead_actor_fails_the_sessions_that_used_it(stage):
    actors = opened("a", "b", group=True)
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer("encode")
    actors.open("c", finish=False)
    actors.die(stage)
    for session in ("a", "b"):
        with pytest.raises(SessionFailed) as caught:
            actors.submit(session, 1, "control")
        assert isinstance(caught.value.cause, ActorDied)
        record = actors.core.session(session)
        actors.close(session)
        actors.answer_all()
        assert record.phase is Phase.QUARANTINED
        assert set(record.report.failures) == {stage}
        assert record.slots_used == 0
    actors.answer_all()
    assert actors.core.sessions == (), "c could not be opened and is gone"
    assert not actors.core.stage_free(stage)
    assert actors.core.diagnostics(0.0).slot_leaks == 0


def test_a_session_that_never_used_the_dead_actor_goes_on_releasing():
    actors = opened("a")
    actors.open("b", finish=False)  # b has not come further than encode
    actors.die("decode")
    actors.answer_all()
    assert actors.core.sessions == ("a",)
    assert ("encode", "b") in asked(actors, Release)


@pytest.mark.parametrize("stage", ["encode", "denoise", "decode"])
def test_an_actor_that_dies_does_not_stop_a_close_that_is_under_way(stage):
    actors = opened("a")
    record = actors.core.session("a")
    actors.close("a")
    actors.answer("decode") if stage != "decode" else None
    actors.die(stage)
    actors.answer_all()
    assert record.phase is Phase.QUARANTINED
    assert set(record.report.failures) == {stage}
    assert record.failure is None, "it was closed, it did not fail"


def test_a_second_fault_does_not_hide_the_first():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    actors.answer("encode", fault=ValueError("first"))
    actors.die("decode")
    assert isinstance(actors.core.session("a").failure, StageFailed)


def test_what_a_dead_actor_still_says_is_ignored():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    work = actors.posted["encode"][0]
    actors.die("encode")
    actors.core.handle(Completed(work, {"condition": 1}, 0.0, 1.0), 1.0)
    assert actors.core.diagnostics(0.0).orphaned == 1


def test_a_group_gets_the_right_of_a_dead_actor_back():
    actors = opened("a", "b", group=True)
    actors.submit("a", 0, "condition_request", "control")
    actors.answer("encode")
    assert actors.running("denoise") == ("a", 0)
    assert not actors.core.stage_free("decode")
    actors.die("denoise")
    assert actors.core.stage_free("decode")


def test_aborts_carry_a_stamp_that_is_newer_than_all_work_before_and_older_than_all_after():
    actors = opened("a")
    actors.submit("a", 0, "condition_request")
    actors.reset("a")
    stamp = actors.aborts[-1].stamp
    assert all(work.stamp < stamp for work in actors.history if type(work) is Run)
    actors.answer_all()
    actors.close("a")
    actors.answer_all()
    actors.open("a")
    actors.submit("a", 0, "condition_request")
    again = actors.posted["encode"][0]
    assert again.epoch == 0
    assert all(again.stamp > abort.stamp for abort in actors.aborts)
    assert all(isinstance(abort, Abort) for abort in actors.aborts)
