"""The execution lease and the just-in-time want, by example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.lease import ExecutionLease, JustInTime, NotHolder, StillLeaving
from admission.load import WorkerLoad
from admission.window import Window


def anyone(_session: str) -> bool:
    return True


def test_a_session_re_enters_at_the_tail():
    lease = ExecutionLease()
    served = []
    for session in "abc":
        lease.want(session)
    for _ in range(9):
        session = lease.grant(anyone)
        assert session is not None
        served.append(session)
        lease.release(session)
        lease.want(session)
    assert "".join(served) == "abcabcabc"


def test_one_holder_at_a_time():
    lease = ExecutionLease()
    lease.want("a")
    lease.want("b")
    assert [lease.grant(anyone), lease.grant(anyone), lease.holder] == ["a", None, "a"]


def test_who_cannot_be_granted_keeps_the_place():
    lease = ExecutionLease()
    for session in "abc":
        lease.want(session)
    assert lease.grant(lambda session: session == "c") == "c"
    assert (lease.waiting, lease.counters.skips) == (("a", "b"), 2)
    lease.release("c")
    assert lease.grant(lambda session: False) is None
    assert lease.grant(anyone) == "a"


def test_wanting_twice_keeps_the_place_and_unwanting_gives_it_up():
    lease = ExecutionLease()
    for session in "aba":
        lease.want(session)
    assert lease.waiting == ("a", "b")
    lease.unwant("a")
    lease.unwant("nobody")
    lease.want("a")
    assert lease.waiting == ("b", "a")


def test_positions_count_from_the_holder():
    lease = ExecutionLease()
    for session in "abc":
        lease.want(session)
    assert [lease.position(s) for s in "abcd"] == [1, 2, 3, None]
    lease.grant(anyone)
    assert [lease.position(s) for s in "abcd"] == [0, 1, 2, None]


def test_a_holder_may_queue_for_its_next_chunk():
    lease = ExecutionLease()
    lease.want("a")
    lease.grant(anyone)
    lease.want("a")
    lease.want("b")
    assert (lease.position("a"), lease.waiting) == (0, ("a", "b"))
    lease.unwant("a")  # the place in line, not the chunk that runs
    assert (lease.holder, lease.waiting) == ("a", ("b",))


@pytest.mark.parametrize("acknowledge", ["gone", "release"])
def test_a_holder_that_leaves_keeps_the_lease_until_its_actor_acknowledges(acknowledge: str):
    lease = ExecutionLease()
    lease.want("a")
    lease.want("b")
    lease.grant(anyone)
    lease.leave("a")
    lease.leave("a")
    assert (lease.holder, lease.leaving, lease.counters.left_holding) == ("a", True, 1)
    assert lease.grant(anyone) is None
    with pytest.raises(StillLeaving):
        lease.want("a")
    getattr(lease, acknowledge)("a")
    assert (lease.holder, lease.leaving) == (None, False)
    assert lease.grant(anyone) == "b"


def test_a_waiting_session_leaves_without_a_trace():
    lease = ExecutionLease()
    lease.want("a")
    lease.want("b")
    lease.leave("a")
    assert (lease.waiting, lease.leaving, lease.counters.left_holding) == (("b",), False, 0)
    lease.gone("a")
    lease.want("a")  # a new incarnation under the old name
    assert lease.waiting == ("b", "a")


def test_gone_frees_only_its_own_session():
    lease = ExecutionLease()
    lease.want("a")
    lease.grant(anyone)
    lease.gone("b")
    assert lease.holder == "a"


@pytest.mark.parametrize("session", ["b", "nobody"])
def test_only_the_holder_can_give_it_back(session: str):
    lease = ExecutionLease()
    lease.want("a")
    lease.want("b")
    lease.grant(anyone)
    with pytest.raises(NotHolder):
        lease.release(session)
    assert lease.holder == "a"


# ------------------------------------------------------------------ just in time
def measured(due_to_first: list[float], *, grant_to_first: float = 0.06) -> JustInTime:
    timing = JustInTime(chunk_seconds=0.2)
    for index, seconds in enumerate(due_to_first):
        due = index * 0.2
        timing.measured(due, due + seconds - grant_to_first, due + seconds)
    return timing


def test_the_prediction_is_the_middle_of_grant_to_first_frame():
    timing = JustInTime(0.2, predicted_seconds=0.1)
    assert timing.predicted == 0.1
    for seconds in (0.05, 0.06, 2.0):
        timing.measured(0.0, 1.0, 1.0 + seconds)
    assert timing.predicted == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("due_to_first", "slack"),
    [
        ([], 0.05),  # nothing known: as careful as it gets
        ([0.07] * 7, 0.05),
        ([0.07] * 8, 0.010),  # never less
        ([0.07] * 30 + [0.10] * 2, 0.0135),  # p95 lies between the 30th and the 31st of 32
        ([0.07] * 16 + [0.10] * 15, 0.03),
        ([0.07] * 20 + [0.50] * 12, 0.05),  # never more than a quarter of a chunk
    ],
)
def test_the_slack_covers_what_is_late_at_times(due_to_first: list[float], slack: float):
    assert measured(due_to_first).slack == pytest.approx(slack)


def test_queueing_counts_in_the_slack_and_not_in_the_prediction():
    timing = measured([0.06, 0.09] * 16)  # every other chunk waits 30 ms for the lease
    assert timing.predicted == pytest.approx(0.06)
    assert timing.slack == pytest.approx(0.015)


def test_a_wake_up_that_comes_late_counts_in_the_slack_and_not_in_the_prediction():
    timing = JustInTime(chunk_seconds=0.2)
    for index in range(32):
        playout_end, late = 10 + 0.2 * index, 0.015 * (index % 4 == 0)
        at = timing.want_at(playout_end, period_seconds=0.06, now=playout_end - 0.15)
        due = timing.wanted(at + late)
        assert due == at
        timing.measured(due, at + late, at + late + 0.06)
    assert timing.predicted == pytest.approx(0.06)
    assert timing.slack == pytest.approx(0.015)


def test_a_chunk_is_due_when_it_is_wanted_at_the_latest_and_never_before_it_could_be():
    timing = JustInTime(chunk_seconds=0.2, predicted_seconds=0.06)
    assert timing.wanted(3.0) == 3.0, "the first one is wanted at once"
    assert timing.want_at(10.0, period_seconds=0.06, now=10.5) < 10.5
    assert timing.wanted(10.5) == 10.5, "it was behind already: no wake-up was missed"
    at = timing.want_at(20.0, period_seconds=0.06, now=19.0)
    assert timing.wanted(19.5) == 19.5 < at, "a key went down, and it could be wanted earlier"
    assert timing.wanted(20.5) == 20.5, "a due time counts once"
    timing.want_at(30.0, period_seconds=0.06, now=29.0)
    timing.unwanted()  # paused: what was due then is not due now
    assert timing.wanted(99.0) == 99.0


seconds = st.floats(0.0, 1.0)


@given(
    st.lists(st.tuples(seconds, seconds, seconds), max_size=100),
    st.floats(0.01, 1.0),
    st.floats(0.0, 2.0),
)
def test_whatever_is_measured_a_chunk_is_wanted_within_the_bounds_of_the_slack(
    chunks: list[tuple[float, float, float]], chunk: float, period: float
):
    timing = JustInTime(chunk)
    for late, queued, computed in chunks:
        timing.measured(0.0, late + queued, late + queued + computed)
    assert min(0.010, chunk / 4) <= timing.slack <= chunk / 4
    early = 100.0 - timing.predicted - timing.want_at(100.0, period, now=0.0)
    if period < chunk:
        assert early == pytest.approx(timing.slack)
    else:
        assert early == pytest.approx(period - 0.010), "when the one before begins to play"


@given(st.lists(seconds, min_size=8, max_size=32), st.floats(0.1, 1.0))
def test_nineteen_of_twenty_chunks_like_those_measured_come_in_time(
    computed: list[float], chunk: float
):
    timing = JustInTime(chunk)
    for taken in computed:
        timing.measured(0.0, 0.0, taken)
    lead = timing.predicted + timing.slack
    late = sum(taken > lead + 1e-9 for taken in computed)
    assert late <= 0.05 * len(computed) + 1 or timing.slack == pytest.approx(chunk / 4)


def test_a_fast_worker_is_asked_as_late_as_possible():
    timing = measured([0.06] * 32)
    assert timing.want_at(10.0, period_seconds=0.06, now=9.8) == pytest.approx(10 - 0.06 - 0.01)


def test_a_slow_worker_is_asked_at_once():
    """As slow as two chunks: when one is denoised the one before has just begun to play."""
    timing = measured([0.45] * 32, grant_to_first=0.45)
    now, plays_until = 9.6, 9.6 + 0.05 + 0.4  # decoded in 50 ms, then stretched over the period
    assert timing.want_at(plays_until, period_seconds=0.4, now=now) <= now


def test_a_slow_worker_that_got_ahead_waits_until_the_chunk_before_plays():
    timing = measured([0.05] * 32, grant_to_first=0.05)
    want = timing.want_at(10.4, period_seconds=0.2, now=9.9)
    assert want + timing.predicted > 10.2  # when the last granted chunk begins to play


def test_a_chunk_has_to_play_for_some_time():
    with pytest.raises(ValueError, match="some time"):
        JustInTime(0.0)


# ------------------------------------------------------------------ load and window
def test_the_period_is_the_own_bottleneck_or_what_everybody_shares():
    load = WorkerLoad("denoise")
    for session, denoise, decode in (("a", 0.05, 0.08), ("b", 0.06, 0.01)):
        load.measured(session, "denoise", denoise)
        load.measured(session, "decode", decode)
    assert load.period("a", ["a"]) == pytest.approx(0.08)
    assert load.period("b", ["b"]) == pytest.approx(0.06)
    assert load.period("a", ["a", "b"]) == pytest.approx(0.11)
    assert load.period("a", []) == load.period("a", ["a", "a"])  # it runs, and once
    load.forget("b")
    assert load.period("a", ["a", "b"]) == pytest.approx(0.08)
    assert load.period("c", []) == 0.0


def test_every_shared_stage_can_be_the_scarce_one():
    load = WorkerLoad("denoise", "decode")
    for session in "ab":
        load.measured(session, "denoise", 0.02)
        load.measured(session, "decode", 0.08)
    assert load.period("a", "ab") == pytest.approx(0.16)


def test_one_stall_leaves_the_period_alone_and_a_new_speed_takes_over():
    load = WorkerLoad("denoise")
    for _ in range(9):
        load.measured("a", "denoise", 0.05)
    load.measured("a", "denoise", 2.0)
    assert load.period("a", []) == pytest.approx(0.05)
    for _ in range(5):
        load.measured("a", "denoise", 0.1)
    assert load.period("a", []) == pytest.approx(0.1)


def test_a_window_forgets_the_oldest():
    window = Window(3)
    assert window.median() is None
    for value in (100.0, 1.0, 2.0, 3.0):
        window.add(value)
    assert (len(window), window.median(), window.percentile(1.0)) == (3, 2.0, 3.0)
    assert window.percentile(0.25) == pytest.approx(1.5)
