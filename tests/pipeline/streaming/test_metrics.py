"""Measurements against a clock that the test sets. One answer of a `FakeActors` takes 1 second."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.streaming import IdleReason
from pipeline.streaming.messages import Completed, Emitted
from pipeline.streaming.metrics import INTERVALS, WINDOW, IdleClock, SessionMeter, Window, quantile
from tests.fakes.stages import FakeActors, chain_spec, world_spec


def opened(spec=None, *sessions: str) -> FakeActors:
    actors = FakeActors(spec or world_spec())
    for session in sessions or ("a",):
        actors.open(session)
    return actors


def metrics(actors: FakeActors, session: str = "a"):
    return actors.core.session(session).metrics()


# ------------------------------------------------------------------ windows
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.floats(0, 1))
def test_a_quantile_lies_between_neighbouring_samples(samples, share):
    ordered = sorted(samples)
    found = quantile(ordered, share)
    below = sum(sample < found for sample in ordered)
    assert ordered[0] <= found <= ordered[-1]
    assert below <= share * (len(ordered) - 1) + 1


def test_a_window_forgets_old_samples_but_not_their_sum():
    window = Window(size=4)
    for sample in range(100):
        window.add(float(sample))
    summary = window.summary()
    assert (summary.count, summary.mean) == (100, 49.5)
    assert (summary.p50, summary.peak, summary.last) == (97.5, 99.0, 99.0)


def test_no_sample_no_figure():
    assert Window().summary().count == 0
    actors = opened()
    assert metrics(actors).compute_factor(0.25) is None
    assert metrics(actors).real_time_factor(0.25) is None
    assert metrics(actors).first_frame_latency is None


# ------------------------------------------------------------------ latencies of a session
def test_the_clock_of_a_sequence_starts_when_its_control_is_accepted():
    actors = opened()
    begin = actors.now
    actors.submit("a", 0, "condition_request")
    actors.answer("encode")  # + 1 s: condition-only ingress starts nothing
    actors.now = begin + 10
    actors.submit("a", 0, "control")
    actors.answer("denoise")  # 11
    actors.answer("decode")  # 12
    found = metrics(actors)
    assert found.first_frame_latency == 2.0
    assert found.control_to_output.last == 2.0
    assert found.compute_factor(4.0) == 0.5


def test_without_an_anchor_the_clock_starts_with_the_last_artifact():
    actors = opened(replace(world_spec(), latency_anchor_artifact=None))
    actors.submit("a", 0, "control")
    actors.now += 5
    actors.submit("a", 0, "condition_request")
    for stage in ("encode", "denoise", "decode"):
        actors.answer(stage)
    assert metrics(actors).first_frame_latency == 3.0


def test_the_first_piece_and_the_whole_sequence_are_measured_apart():
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    accepted = actors.now
    actors.answer("encode")
    actors.answer("denoise")
    (work,) = actors.posted["decode"]
    for delay in (3.0, 4.0):
        actors.core.handle(Emitted(work, "frames", delay), accepted + delay)
    actors.core.handle(Completed(work, {}, accepted, accepted + 6), accepted + 6)
    found = metrics(actors)
    assert (found.control_to_first_output.last, found.control_to_output.last) == (3.0, 6.0)
    assert found.first_frame_latency == 3.0


def test_the_chunk_period_is_between_completions_and_skips_a_pause():
    actors = opened(chain_spec("work", capacity=8))
    for sequence in range(4):
        actors.submit("a", sequence, "work_in")
    for _ in range(3):
        actors.answer("work")
    actors.now += 100
    actors.core.session("a").meter.paused()
    actors.answer("work")
    found = metrics(actors)
    assert found.chunk_period.count == 2
    assert found.chunk_period.peak == 1.0
    assert found.real_time_factor(0.5) == 2.0


def test_counts_of_a_session_say_how_far_it_is():
    actors = opened()
    for sequence in range(2):
        actors.submit("a", sequence, "condition_request", "control")
    actors.answer("encode")
    actors.answer("encode")
    actors.answer("denoise")
    found = metrics(actors)
    assert (found.submitted, found.completed) == (2, 0)
    stages = {name: (s.input_ready, s.admitted, s.completed) for name, s in found.stages.items()}
    assert stages == {"encode": (2, 2, 2), "denoise": (2, 2, 1), "decode": (1, 1, 0)}
    assert found.slots == {
        "condition_request": 0,
        "condition": 1,
        "control": 1,
        "latent": 2,
        "frames": 1,
    }


def test_a_reset_starts_the_measurements_of_an_epoch_anew():
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer_all()
    actors.reset("a")
    actors.answer_all()
    found = metrics(actors)
    assert (found.epoch, found.submitted, found.completed) == (1, 0, 0)
    assert found.first_frame_latency is None
    assert found.control_to_output.count == 1, "the session's history stays"


def test_the_age_of_a_control_is_taken_down_where_it_is_accepted():
    actors = opened()
    core = actors.core
    assert core.submit("a", 0, {"condition_request": 1, "control": 1}, 0.0, 0.02)
    assert core.submit("a", 1, {"condition_request": 1, "control": 1}, 0.0, 0.04)
    assert not core.submit("a", 2, {"condition_request": 1, "control": 1}, 0.0, 9.0)
    assert metrics(actors).control_age_at_bind.count == 2
    assert metrics(actors).control_age_at_bind.peak == 0.04


def test_the_memory_of_measurements_is_bounded():
    meter = SessionMeter()
    for sequence in range(3 * WINDOW):
        meter.anchored(sequence, float(sequence))
        meter.put_out(sequence, sequence + 0.5)
        meter.completed(sequence, sequence + 0.5)
    assert len(meter.to_output.samples) == len(meter.to_first_output.samples) == WINDOW
    assert not meter._anchors, "what is complete is forgotten"
    clock = IdleClock("s", 0.0)
    for moment in range(3 * INTERVALS):
        clock.turn(IdleReason.NO_INPUT if moment % 2 else None, float(moment))
    assert len(clock.intervals) == INTERVALS


# ------------------------------------------------------------------ idle time
def idle(actors: FakeActors, stage: str) -> dict[IdleReason, float]:
    seconds = actors.core.diagnostics(actors.now).stages[stage].idle_seconds
    return {reason: total for reason, total in seconds.items() if total}


def test_idle_time_has_a_reason():
    actors = FakeActors(world_spec(capacity=1, group=True))
    actors.now = 2.0
    actors.open("a", finish=False)  # nobody was there for 2 s
    assert idle(actors, "encode") == {IdleReason.NO_SESSION: 2.0}
    actors.answer_chores()  # 3 s: each stage opens for one
    actors.now += 4.0
    assert idle(actors, "decode")[IdleReason.NO_INPUT] == 2.0 + 4.0
    actors.submit("a", 0, "condition_request", "control")
    before = idle(actors, "denoise")
    actors.answer("encode")  # 1 s
    assert idle(actors, "denoise")[IdleReason.NO_INPUT] == before[IdleReason.NO_INPUT] + 1.0
    actors.answer("denoise")
    actors.answer("decode")
    actors.submit("a", 1, "condition_request", "control")
    actors.answer("encode")
    actors.answer("denoise")
    actors.now += 8.0  # frames of chunk 0 are not taken: decode 1 has no room
    assert idle(actors, "decode")[IdleReason.OUTPUT_FULL] == 8.0
    actors.take("a")
    actors.submit("a", 2, "condition_request", "control")
    actors.answer("encode")  # denoise has its input, decode has the right
    assert actors.running("decode") == ("a", 1)
    actors.now += 16.0
    assert IdleReason.RESOURCE_GROUP not in idle(actors, "denoise"), "its output was full"
    assert idle(actors, "denoise")[IdleReason.OUTPUT_FULL] == 16.0


def test_waiting_for_the_right_of_a_group_is_told_from_having_no_input():
    actors = opened(world_spec(group=True), "a", "b")
    for session in ("a", "b"):
        actors.submit(session, 0, "condition_request", "control")
    actors.answer("encode")
    actors.answer("encode")
    actors.answer("denoise")  # decode takes the right, b is ready at denoise
    actors.now += 16.0
    assert idle(actors, "denoise")[IdleReason.RESOURCE_GROUP] == 16.0


def test_a_claimed_and_a_dead_actor_idle_for_their_own_reasons():
    actors = opened()
    actors.core.reserve("a", 0, actors.now, claim="denoise")
    actors.settle()
    actors.now += 3.0
    assert idle(actors, "denoise")[IdleReason.CLAIMED] == 3.0
    actors.die("decode")
    actors.now += 5.0
    assert idle(actors, "decode")[IdleReason.DEAD] == 5.0


def test_idle_intervals_are_listed_and_do_not_overlap():
    actors = opened()
    for sequence in range(4):
        actors.submit("a", sequence, "condition_request", "control")
        actors.answer_all()
        actors.now += 2.0
        actors.take("a")
    for sequence in (4, 5, 6):
        actors.submit("a", sequence, "condition_request", "control")
        actors.answer("encode") if sequence < 6 else None
        actors.answer("denoise") if sequence < 5 else None
    assert [actors.running(name) for name in actors.posted] == [("a", 6), ("a", 5), ("a", 4)]
    for stage in actors.core.diagnostics(actors.now).stages.values():
        ends = 0.0
        for interval in stage.idle_intervals:
            assert ends <= interval.started < interval.ended
            ends = interval.ended
        total = sum(i.ended - i.started for i in stage.idle_intervals)
        assert total == pytest.approx(sum(stage.idle_seconds.values()))


def test_diagnostics_count_runs_and_time():
    actors = opened()
    actors.submit("a", 0, "condition_request", "control")
    actors.answer_all()
    actors.submit("a", 1, "condition_request", "control")
    actors.answer("encode", fault=ValueError())
    found = actors.core.diagnostics(actors.now).stages["encode"]
    assert (found.completed, found.failed, found.alive) == (1, 1, True)
    assert found.run_seconds.last == 1.0
    assert found.busy_seconds == 3.0, "opening counts as work"
