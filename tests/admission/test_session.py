"""A session's states: every pair of state and cause, every deadline, and the drawn table."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission import diagram
from admission.session import (
    END_STATE,
    TERMINAL,
    TRANSITIONS,
    Cause,
    EndReason,
    IllegalTransition,
    Limits,
    Overdue,
    SessionLife,
    State,
    target_of,
)

# Rows are states, columns causes; "-" is IllegalTransition. Ending is for the reason `left`.
TABLE = """
           promoted claimed    claim_missed claim_missed_twice connected  started   lost       paused    resumed   ending   released
queued     admitted -          -            -                  -          -         -          -         -         closed   -
admitted   -        connecting queued       expired            -          -         -          -         -         closed   -
connecting -        -          -            -                  starting   -         connecting -         -         draining -
starting   -        -          -            -                  starting   running   starting   starting  starting  draining -
running    -        -          -            -                  running    running   suspended  suspended running   draining -
suspended  -        -          -            -                  running    suspended suspended  suspended running   draining -
draining   -        -          -            -                  draining   draining  draining   draining  draining  draining closed
closed     -        -          -            -                  -          -         -          -         -         -        -
failed     -        -          -            -                  -          -         -          -         -         -        -
expired    -        -          -            -                  -          -         -          -         -         -        -
"""  # noqa: E501
_HEAD, *_ROWS = TABLE.strip().splitlines()
EXPECTED = {
    (State(row.split()[0]), Cause(cause)): None if word == "-" else State(word)
    for row in _ROWS
    for cause, word in zip(_HEAD.split(), row.split()[1:], strict=True)
}
LIMITS = Limits(claim=20, connect=30, max_session=1800, idle=300, disconnect_grace=30)
TO_RUNNING = (Cause.CLAIMED, Cause.CONNECTED, Cause.STARTED)


def life_at(state: State, now: float = 0.0) -> SessionLife:
    """A session that has come to `state` the ordinary way, all at `now`."""
    life = SessionLife(LIMITS, now, State.QUEUED if state is State.QUEUED else State.ADMITTED)
    steps = {
        State.CONNECTING: TO_RUNNING[:1],
        State.STARTING: TO_RUNNING[:2],
        State.RUNNING: TO_RUNNING,
        State.DRAINING: TO_RUNNING,
        State.CLOSED: TO_RUNNING,
    }
    for cause in steps.get(state, ()):
        life.take(cause, now)
    if state is State.DRAINING:
        life.take(Cause.ENDING, now, EndReason.LEFT)
    if state is State.CLOSED:
        life.take(Cause.ENDING, now, EndReason.LEFT)
        life.take(Cause.RELEASED, now)
    if state is State.FAILED:
        life.take(Cause.ENDING, now, EndReason.WORKER_DIED)
    if state is State.EXPIRED:
        life.take(Cause.CLAIM_MISSED_TWICE, now)
    return life


def suspended_by_both() -> SessionLife:
    life = life_at(State.RUNNING)
    life.take(Cause.PAUSED, 1)
    life.take(Cause.LOST, 2)
    return life


def life_for(state: State, cause: Cause) -> SessionLife:
    """As `life_at`; suspended by what `cause` ends, or else by a pause."""
    if state is not State.SUSPENDED:
        return life_at(state)
    life = life_at(State.RUNNING)
    life.take(Cause.LOST if cause is Cause.CONNECTED else Cause.PAUSED, 0)
    return life


def test_the_table_of_this_test_is_complete():
    assert EXPECTED.keys() == set(product(State, Cause))


@pytest.mark.parametrize(("state", "cause"), EXPECTED, ids=lambda word: word.value)
def test_every_pair_leads_to_a_known_state_or_is_refused(state: State, cause: Cause):
    expected = EXPECTED[state, cause]
    life = life_for(state, cause)
    assert life.state is state
    reason = EndReason.LEFT if cause is Cause.ENDING else None
    before = (life.state, life.reason, life.paused, life.lost, life.next_deadline())
    if expected is None:
        with pytest.raises(IllegalTransition, match=f"is {state} cannot be {cause}"):
            life.take(cause, 5, reason)
        assert (life.state, life.reason, life.paused, life.lost, life.next_deadline()) == before
    else:
        step = life.take(cause, 5, reason)
        assert (step.source, step.target, step.cause, step.now) == (state, expected, cause, 5)
        assert step.changed is (state is not expected)
        assert life.state is expected


@pytest.mark.parametrize("reason", EndReason)
@pytest.mark.parametrize("state", [s for s in State if s not in TERMINAL])
def test_an_end_waits_for_the_worker_exactly_where_it_holds_state(state: State, reason: EndReason):
    target = target_of(state, Cause.ENDING, reason=reason)
    nothing_to_release = state in (State.QUEUED, State.ADMITTED)
    if nothing_to_release or reason is EndReason.WORKER_DIED:
        assert target is END_STATE[reason]
    else:
        assert target is State.DRAINING
        assert target_of(State.DRAINING, Cause.RELEASED, reason=reason) is END_STATE[reason]


def test_every_reason_has_an_end_and_every_end_a_reason():
    assert END_STATE.keys() == set(EndReason)
    assert set(END_STATE.values()) == TERMINAL


def test_every_state_can_be_reached_and_left():
    reached = {target for _, target, _ in diagram.edges()} | {State.QUEUED, State.ADMITTED}
    assert reached == set(State)
    assert {state for state, _ in TRANSITIONS} == set(State) - TERMINAL


def test_an_end_needs_its_reason():
    for state in (State.QUEUED, State.RUNNING):
        life = life_at(state)
        with pytest.raises(ValueError, match="needs a reason"):
            life.take(Cause.ENDING, 1)
        assert life.state is state


def test_the_first_reason_stands_unless_the_worker_dies():
    life = life_at(State.RUNNING)
    life.take(Cause.ENDING, 1, EndReason.STOPPED)
    assert not life.take(Cause.ENDING, 2, EndReason.KICKED).changed
    assert life.reason is EndReason.STOPPED
    life.take(Cause.ENDING, 3, EndReason.WORKER_DIED)
    assert (life.state, life.reason) == (State.FAILED, EndReason.WORKER_DIED)
    assert life.ended
    assert life.next_deadline() is None


@pytest.mark.parametrize("state", [s for s in State if s not in TERMINAL | {State.SUSPENDED}])
def test_a_dead_worker_fails_the_session_without_waiting(state: State):
    life = life_at(state)
    step = life.take(Cause.ENDING, 1, EndReason.WORKER_DIED)
    assert (step.target, step.reason) == (State.FAILED, EndReason.WORKER_DIED)


@pytest.mark.parametrize(
    "ends", [(Cause.RESUMED, Cause.CONNECTED), (Cause.CONNECTED, Cause.RESUMED)]
)
def test_paused_and_lost_both_have_to_end(ends: tuple[Cause, Cause]):
    life = suspended_by_both()
    assert (life.state, life.paused, life.lost) == (State.SUSPENDED, True, True)
    assert life.take(ends[0], 3).target is State.SUSPENDED
    assert life.take(ends[1], 4).target is State.RUNNING
    assert (life.paused, life.lost) == (False, False)


@pytest.mark.parametrize("holds", [Cause.PAUSED, Cause.LOST])
def test_a_start_that_is_paused_or_lost_meanwhile_does_not_run(holds: Cause):
    life = life_at(State.STARTING)
    life.take(holds, 1)
    assert life.take(Cause.STARTED, 2).target is State.SUSPENDED


# ------------------------------------------------------------------ deadlines
def test_a_seat_that_nobody_claims_expires():
    life = SessionLife(LIMITS, 100)
    assert (life.next_deadline(), life.due(119.9)) == (120, None)
    overdue = life.due(120)
    assert overdue == Overdue(Cause.CLAIM_MISSED_TWICE, EndReason.CLAIM_MISSED)
    life.take(overdue.cause, 120, overdue.reason)
    assert (life.state, life.reason) == (State.EXPIRED, EndReason.CLAIM_MISSED)


def test_with_a_queue_the_first_missed_claim_leads_back_to_it():
    life = SessionLife(Limits(claims=2), 0, State.QUEUED)
    assert life.next_deadline() is None
    life.take(Cause.PROMOTED, 50)
    assert life.due(70) == Overdue(Cause.CLAIM_MISSED)
    life.take(Cause.CLAIM_MISSED, 70)
    assert (life.state, life.reason) == (State.QUEUED, None)
    life.take(Cause.PROMOTED, 90)
    assert life.due(110) == Overdue(Cause.CLAIM_MISSED_TWICE, EndReason.CLAIM_MISSED)


def test_connecting_has_its_own_limit_whatever_attempts_fail():
    life = life_at(State.CONNECTING, 10)
    life.take(Cause.LOST, 25)
    assert life.next_deadline() == 40
    assert life.due(40) == Overdue(Cause.ENDING, EndReason.CONNECT_TIMEOUT)


def test_a_start_has_no_limit_while_the_player_watches_it():
    life = life_at(State.STARTING)
    assert life.next_deadline() is None
    life.take(Cause.PAUSED, 5)  # a hidden tab
    assert life.due(605) == Overdue(Cause.ENDING, EndReason.IDLE)
    assert life.due(604) is None


def test_time_limits_start_with_the_first_frame():
    life = SessionLife(Limits(max_session=100, idle=1000), 0)
    life.take(Cause.CLAIMED, 10)
    life.take(Cause.CONNECTED, 30)
    life.take(Cause.STARTED, 50)
    life.take(Cause.PAUSED, 60)
    life.take(Cause.RESUMED, 70)
    life.take(Cause.STARTED, 80)  # a reset
    assert life.next_deadline() == 150
    assert life.due(150) == Overdue(Cause.ENDING, EndReason.TIME_LIMIT)


def test_input_puts_off_the_idle_limit_and_a_pause_makes_it_longer():
    life = life_at(State.RUNNING)
    life.active(200)
    life.active(150)  # late, and older
    assert life.next_deadline() == 500
    life.take(Cause.PAUSED, 250)
    assert life.next_deadline() == 850
    assert life.due(850) == Overdue(Cause.ENDING, EndReason.IDLE)
    life.take(Cause.RESUMED, 800)
    assert life.next_deadline() == 1100


def test_a_pause_never_ends_sooner_than_play():
    life = SessionLife(Limits(idle=900, paused=600), 0)
    for cause in (*TO_RUNNING, Cause.PAUSED):
        life.take(cause, 0)
    assert life.next_deadline() == 900


def test_while_nobody_is_connected_only_the_grace_runs():
    life = life_at(State.RUNNING)
    life.take(Cause.LOST, 290)
    life.take(Cause.LOST, 300)  # said twice: the grace runs from the first
    assert life.next_deadline() == 320
    assert life.due(320) == Overdue(Cause.ENDING, EndReason.DISCONNECTED)
    life.take(Cause.CONNECTED, 319)
    assert life.next_deadline() == 619  # coming back is activity


def test_of_two_passed_deadlines_the_earlier_one_counts():
    life = SessionLife(Limits(max_session=290, idle=300), 0)
    for cause in TO_RUNNING:
        life.take(cause, 0)
    assert life.due(10_000) == Overdue(Cause.ENDING, EndReason.TIME_LIMIT)


def test_played_seconds_leave_out_what_was_suspended():
    life = life_at(State.RUNNING, 10)
    assert life.played_seconds(15) == 5
    life.take(Cause.PAUSED, 20)
    life.take(Cause.LOST, 25)
    life.take(Cause.CONNECTED, 28)
    life.take(Cause.RESUMED, 30)
    assert life.played_seconds(33) == 13
    life.take(Cause.ENDING, 40, EndReason.LEFT)
    life.take(Cause.RELEASED, 50)
    assert life.played_seconds(1000) == 20


def test_a_session_begins_queued_or_admitted():
    with pytest.raises(ValueError, match="begins queued or admitted"):
        SessionLife(LIMITS, 0, State.RUNNING)


# ------------------------------------------------------------------ any life at all
steps = st.tuples(st.sampled_from(Cause), st.sampled_from(EndReason), st.floats(0, 40))


@given(
    start=st.sampled_from([State.QUEUED, State.ADMITTED]),
    lead_in=st.integers(0, 3),
    program=st.lists(steps, max_size=30),
)
def test_any_life_keeps_the_rules(start: State, lead_in: int, program: list):
    life, now = SessionLife(LIMITS, 0, start), 0.0
    if start is State.ADMITTED:
        for cause in TO_RUNNING[:lead_in]:
            life.take(cause, now)
    for cause, reason, wait in program:
        now += wait
        was = life.state
        try:
            step = life.take(cause, now, reason if cause is Cause.ENDING else None)
        except IllegalTransition:
            assert life.state is was
            continue
        assert was not in TERMINAL
        assert step.target is life.state
        if life.state is State.RUNNING:
            assert not life.paused
            assert not life.lost
        if life.state is State.SUSPENDED:
            assert life.paused or life.lost
        if life.ended:
            assert life.reason is not None
            assert END_STATE[life.reason] is life.state
        deadline = life.next_deadline()
        if deadline is None:
            assert life.due(now + 1e9) is None
        else:
            assert life.due(deadline) is not None
            assert deadline <= now or life.due(now) is None
        assert 0 <= life.played_seconds(now) <= now


@given(program=st.lists(steps, max_size=20))
def test_deadlines_alone_end_every_session_that_is_not_queued(program: list):
    life, now = SessionLife(LIMITS, 0), 0.0
    for cause, reason, wait in program:
        now += wait
        try:
            life.take(cause, now, reason if cause is Cause.ENDING else None)
        except IllegalTransition:
            continue
    for _ in range(5):
        if (deadline := life.next_deadline()) is None:
            break
        now = max(now, deadline)
        overdue = life.due(now)
        assert overdue is not None
        life.take(overdue.cause, now, overdue.reason)
    waits_for_others = (State.QUEUED, State.STARTING, State.DRAINING)
    assert life.ended or life.state in waits_for_others


def test_the_page_of_states_is_current():
    path = Path(__file__).parents[2] / "docs" / "guide" / "session-states.md"
    assert path.read_text(encoding="utf-8") == diagram.page(), (
        "python -m admission.diagram > docs/guide/session-states.md"
    )
