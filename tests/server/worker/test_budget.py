"""What one sender may cost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from server.worker.budget import (
    ERRORS_PER_SECOND,
    MAX_ERROR_CODES,
    MESSAGES_PER_SECOND,
    ErrorBudget,
    MessageBudget,
)


def test_a_flood_is_cut_to_the_rate_and_counted():
    budget = MessageBudget(0.0)
    read = sum(budget.admit(index / 10_000) for index in range(30_000))  # three seconds
    assert 3 * MESSAGES_PER_SECOND <= read <= 4 * MESSAGES_PER_SECOND + 1
    assert budget.dropped == 30_000 - read


def test_an_ordinary_player_is_never_cut():
    budget = MessageBudget(0.0)
    assert all(budget.admit(index / 120) for index in range(10_000))
    assert budget.dropped == 0


def test_after_a_flood_the_sender_is_read_again():
    budget = MessageBudget(0.0)
    while budget.admit(0.0):
        pass
    assert budget.admit(0.01)


def test_silence_saves_up_one_second_and_no_more():
    budget = MessageBudget(0.0)
    assert sum(budget.admit(100.0) for _ in range(1000)) == MESSAGES_PER_SECOND


def test_a_clock_that_stands_gives_nothing():
    budget = MessageBudget(5.0, per_second=2)
    assert [budget.admit(at) for at in (5.0, 5.0, 5.0, 4.0, 5.5)] == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_five_errors_a_second_and_the_rest_in_one():
    budget = ErrorBudget()
    assert [budget.offer("bad", at / 100) for at in range(8)] == [1] * 5 + [0] * 3
    assert budget.offer("bad", 1.0) == 4


def test_what_was_kept_back_is_said_later():
    budget = ErrorBudget(per_second=2)
    for code in ("a", "a", "a", "b", "a"):
        budget.offer(code, 0.0)
    assert (budget.next_overdue(), budget.overdue(0.9)) == (1.0, [])
    assert budget.overdue(1.0) == [("a", 2), ("b", 1)]
    assert (budget.next_overdue(), budget.overdue(2.0)) == (None, [])


def test_the_moment_it_names_is_the_moment_it_speaks():
    for tenth in range(1, 500):
        budget, now = ErrorBudget(per_second=1), tenth * 0.1
        budget.offer("a", now)
        budget.offer("a", now)
        due = budget.next_overdue()
        assert due is not None
        assert budget.overdue(due) == [("a", 1)], now


def test_a_sender_cannot_make_the_budget_remember_without_end():
    budget = ErrorBudget(per_second=1)
    for index in range(10_000):
        budget.offer(f"code{index}", 0.0)
    seen = [budget.overdue(float(second)) for second in range(1, 100)]
    assert sum(len(each) for each in seen) == MAX_ERROR_CODES


@given(st.lists(st.tuples(st.floats(0, 0.6), st.sampled_from("abc"), st.booleans()), max_size=80))
def test_no_second_has_more_than_five_and_none_is_forgotten(program: list):
    budget, now = ErrorBudget(), 0.0
    happened: Counter[str] = Counter()
    told: Counter[str] = Counter()
    times: list[float] = []
    for wait, code, look in program:
        now += wait
        if look:
            for late, count in budget.overdue(now):
                told[late] += count
                times.append(now)
        happened[code] += 1
        if count := budget.offer(code, now):
            told[code] += count
            times.append(now)
    while (due := budget.next_overdue()) is not None:
        now = max(now, due)
        for late, count in budget.overdue(now):
            told[late] += count
            times.append(now)
    assert told == happened
    for first, sixth in zip(times, times[ERRORS_PER_SECOND:], strict=False):
        assert sixth - first >= 1.0 - 1e-9
