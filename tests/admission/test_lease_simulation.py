"""Lease, prediction and pacing together, on simulated workers with one to eight players."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.simulated_worker import FRAMES, SimulatedWorker

FPS = 24.0
CHUNK = FRAMES / FPS
PLAYERS = range(1, 9)
WARM = 8.0  # simulated seconds: windows are full, phases have sorted themselves out
END = 24.0


def worker(
    players: int,
    load: float,
    *,
    jitter: float = 0.0,
    wake: float = 0.0,
    decode_load: float = 0.2,
    seed: int = 1,
) -> SimulatedWorker:
    """`load` is the share of the exclusive stage that all players together ask for."""
    decode = decode_load * CHUNK / players
    made = SimulatedWorker(fps=FPS, decode=decode, jitter=jitter, wake=wake, seed=seed)
    for index in range(players):
        name = f"s{index}"
        made.at(0.037 * index, lambda name=name: made.join(name, load * CHUNK / players))
    return made


def late_after(made: SimulatedWorker, when: float) -> dict[str, list[float]]:
    late = {name: [t for t in seen.late_at if t > when] for name, seen in made.served.items()}
    return {name: times for name, times in late.items() if times}


def spread_since(made: SimulatedWorker, when: float) -> int:
    """The largest difference of served counts at any moment after `when`."""
    times = sorted((t, name) for name, seen in made.served.items() for t in seen.grants)
    served: Counter[str] = Counter(dict.fromkeys(made.served, 0))
    worst = 0
    for time, name in times:
        if time >= when:
            served[name] += 1
            worst = max(worst, max(served.values()) - min(served.values()))
    return worst


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("players", PLAYERS)
def test_on_a_fast_worker_no_frame_is_late_after_warm_up(players: int, load: float):
    made = worker(players, load)
    made.run(END)
    assert late_after(made, WARM) == {}
    for seen in made.served.values():
        shown = [time for time, _ in seen.published if time > WARM]
        gaps = [b - a for a, b in pairwise(shown)]
        assert max(gaps) == pytest.approx(1 / FPS)
        assert min(gaps) == pytest.approx(1 / FPS)


@pytest.mark.parametrize("players", [1, 2, 4])
def test_some_jitter_is_absorbed_by_the_slack(players: int):
    made = worker(players, 0.6, jitter=0.001)
    made.run(END)
    assert late_after(made, WARM) == {}


@pytest.mark.parametrize("players", [2, 5, 8])
def test_jitter_on_a_busy_worker_costs_little(players: int):
    made = worker(players, 0.8, jitter=0.003)
    made.run(END)
    chunks = sum(len([t for t in seen.grants if t > WARM]) for seen in made.served.values())
    assert sum(map(len, late_after(made, WARM).values())) <= 0.02 * chunks
    for seen in made.served.values():
        shown = [time for time, _ in seen.published if time > WARM]
        assert max(b - a for a, b in pairwise(shown)) <= 1 / FPS + 0.010


@given(
    players=st.integers(1, 8),
    load=st.floats(0.05, 3.0),
    decode_load=st.floats(0.01, 1.5),
    jitter=st.floats(0.0, 0.01),
    wake=st.floats(0.0, 0.03),
    stall=st.floats(1.0, 6.0),
    seed=st.integers(0, 99),
)
@settings(max_examples=25)
def test_nobody_ever_has_two_unplayed_chunks_or_sees_the_world_run_fast(
    players: int,
    load: float,
    decode_load: float,
    jitter: float,
    wake: float,
    stall: float,
    seed: int,
):
    made = worker(players, load, jitter=jitter, wake=wake, decode_load=decode_load, seed=seed)
    made.at(stall, lambda: made.stall_next("s0"))
    made.run(10.0)
    for seen in made.served.values():
        assert max(seen.unplayed, default=0) <= 1
        ahead = [index / FPS - time for index, (time, _) in enumerate(seen.published)]
        lowest = list(accumulate(ahead, min))
        assert all(now - low <= 1 / FPS + 1e-5 for now, low in zip(ahead, lowest, strict=True))
    assert sum(each.pacer.dropped_overflow for each in made.sessions.values()) == 0


@given(
    load=st.floats(0.05, 0.7),
    decode_load=st.floats(0.01, 0.9),
    jitter=st.floats(0.0, 0.0015),
    wake=st.floats(0.0, 0.002),
    seed=st.integers(0, 99),
)
@settings(max_examples=25)
def test_the_clock_of_a_worker_that_keeps_up_does_not_drift(
    load: float, decode_load: float, jitter: float, wake: float, seed: int
):
    made = worker(1, load, jitter=jitter, wake=wake, decode_load=decode_load, seed=seed)
    made.run(END)
    shown = [time for time, _ in made.served["s0"].published if time > WARM]
    assert shown[-1] - shown[0] == pytest.approx((len(shown) - 1) / FPS)


@pytest.mark.parametrize("wake", [0.0, 0.010])
@pytest.mark.parametrize(("players", "load"), [(1, 0.5), (1, 0.8), (2, 0.6), (4, 0.6)])
def test_uneven_work_is_no_slow_motion_while_chunks_are_in_time(
    players: int, load: float, wake: float
):
    made = worker(players, load, jitter=0.010, wake=wake)
    made.run(END)
    for session in made.sessions.values():
        factor = session.playout.real_time_factor
        assert factor is not None
        assert factor <= 1.05


def test_a_world_at_half_speed_says_so():
    made = worker(1, 2.0)
    made.run(40.0)
    assert made.sessions["s0"].playout.real_time_factor == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("players", PLAYERS)
def test_controls_are_bound_just_in_time_on_a_fast_worker(players: int):
    made = worker(players, 0.6, decode_load=0.1)
    made.run(END)
    for seen in made.served.values():
        recent = sorted(seen.bind_to_show[-40:])
        # The chunk's own stages, at most every other player's once, and the slack.
        assert recent[20] <= 0.6 * CHUNK + 0.1 * CHUNK + CHUNK / 4


@pytest.mark.parametrize("load", [1.3, 2.0, 5.0])
@pytest.mark.parametrize("players", PLAYERS)
def test_a_slow_worker_is_shared_evenly_and_never_idle(players: int, load: float):
    made = worker(players, load, jitter=0.002)
    made.run(END)
    joined = 0.037 * players + load * CHUNK
    assert spread_since(made, joined) <= 1
    for seen in made.served.values():
        assert max(seen.passed_over) <= players - 1
    possible = END / (load * CHUNK / players)
    assert len(made.grants) >= 0.97 * possible


@pytest.mark.parametrize("players", [1, 2, 3, 8])
def test_a_slow_worker_shows_even_motion(players: int):
    made = worker(players, 2.0)
    made.run(END)
    for seen in made.served.values():
        shown = [time for time, _ in seen.published if time > WARM]
        gaps = [b - a for a, b in pairwise(shown)]
        assert max(gaps) <= 1.25 * 2.0 / FPS


@pytest.mark.parametrize("players", [1, 2, 5])
def test_after_a_stall_motion_is_nominal_again_within_three_chunks(players: int):
    made = worker(players, 0.6)
    made.at(12.0, lambda: made.stall_next("s0"))
    made.run(END)
    for seen in made.served.values():
        shown = [(time, chunk) for time, chunk in seen.published if time > WARM]
        gaps = [(b[0] - a[0], b[1]) for a, b in pairwise(shown)]
        longest, after = max(gaps)
        assert longest > 1.0, "the stall holds the exclusive stage, so everybody sees it"
        uneven = [chunk for gap, chunk in gaps if abs(gap - 1 / FPS) > 0.2 / FPS]
        assert max(uneven) <= after + 3


@pytest.mark.parametrize("players", [2, 4, 8])
@pytest.mark.parametrize("moment", [0.0, 0.01, 0.05, 0.11])
def test_whoever_leaves_others_play_on(players: int, moment: float):
    made = worker(players, 0.8)
    made.at(12.0 + moment, lambda: made.leave("s0"))
    made.run(END)
    assert made.lease.holder != "s0"
    assert late_after(made, 12.0 + CHUNK) == {}
    for name, seen in made.served.items():
        if name != "s0":
            assert len([t for t in seen.grants if t > 13.0]) >= (END - 13.0) / CHUNK - 1


def test_a_holder_that_leaves_frees_the_lease_when_its_stage_is_over():
    made = worker(2, 2.0)
    made.run(10.0)
    while made.lease.holder != "s0":
        made.run(made.now + 0.001)
    made.leave("s0")
    assert (made.lease.holder, made.lease.leaving) == ("s0", True)
    before = len(made.grants)
    made.run(made.now + CHUNK)
    assert made.lease.counters.left_holding == 1
    assert set(made.grants[before:]) == {"s1"}


def test_somebody_who_joins_a_loaded_worker_costs_the_others_a_few_late_pictures_at_most():
    made = worker(3, 0.5)
    made.at(12.0, lambda: made.join("new", 0.5 * CHUNK / 3))
    made.run(END)
    assert all(len(times) <= 2 for times in late_after(made, WARM).values())
    assert late_after(made, 12.0 + 16 * CHUNK) == {}
