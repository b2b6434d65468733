"""The publish clock: even motion, late pictures, resets, idle repeats."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.load import WorkerLoad
from server.media.pacing import PacedFrame, Pacer

FPS = 10.0
CHUNK = 0.4  # four pictures


def pacer(**options: int) -> Pacer[str]:
    return Pacer[str](FPS, 4, **options)


def push(
    to: Pacer[str], chunk: int, now: float, *, frames: int = 4, epoch: int = 0, last: bool = True
) -> None:
    pictures = [f"{epoch}.{chunk}.{index}" for index in range(frames)]
    to.push(pictures, epoch=epoch, chunk=chunk, receipt=chunk + 1, now=now, last=last)


def play(from_: Pacer[str], start: float, until: float) -> list[tuple[float, PacedFrame[str]]]:
    """Publish everything that is due up to a time, as a shell that is never late would."""
    seen = []
    now = start
    while (due := from_.next_due(now)) is not None and due <= until:
        now = max(now, due)
        frame = from_.pop_due(now)
        assert frame is not None, "what next_due promises is there"
        seen.append((now, frame))
    return seen


def new(seen: list[tuple[float, PacedFrame[str]]]) -> list[tuple[float, str]]:
    return [(round(now, 6), frame.media) for now, frame in seen if not frame.repeated]


def test_nothing_is_due_before_the_first_picture():
    empty = pacer()
    assert (empty.next_due(5.0), empty.pop_due(5.0)) == (None, None)
    assert empty.playout_end(5.0) == 5.0


def test_a_burst_is_published_evenly():
    paced = pacer()
    push(paced, 0, 100.0)
    assert new(play(paced, 100.0, 100.35)) == [
        (100.0, "0.0.0"),
        (100.1, "0.0.1"),
        (100.2, "0.0.2"),
        (100.3, "0.0.3"),
    ]


def test_chunks_that_come_in_time_follow_without_a_seam():
    paced = pacer()
    times: list[float] = []
    for chunk in range(20):
        push(paced, chunk, now=chunk * CHUNK - 0.05 if chunk else 0.0)
        times += [t for t, _ in new(play(paced, chunk * CHUNK, chunk * CHUNK + 0.34))]
    assert len(times) == 80
    assert all(b - a == pytest.approx(0.1) for a, b in pairwise(times))
    assert (paced.restarts, paced.repeats, paced.dropped_overflow) == (0, 0, 0)


def test_a_picture_keeps_what_it_came_with():
    paced = pacer(epoch=3)
    push(paced, 7, 0.0, epoch=3)
    frame = paced.pop_due(0.0)
    assert frame == PacedFrame("3.7.0", frame_id=1, epoch=3, chunk=7, receipt=8, due=0.0)


def test_the_interval_is_never_below_nominal_and_follows_a_slow_period():
    paced = pacer()
    for period, interval in ((None, 0.1), (0.0, 0.1), (0.3, 0.1), (0.4, 0.1), (0.8, 0.2)):
        paced.set_period(period)
        assert paced.interval == pytest.approx(interval)
    push(paced, 0, 0.0)
    assert [t for t, _ in new(play(paced, 0.0, 0.7))] == [0.0, 0.2, 0.4, 0.6]


def test_a_late_picture_is_published_at_once_and_the_clock_restarts_there():
    paced = pacer()
    push(paced, 0, 0.0)
    play(paced, 0.0, 0.39)
    push(paced, 1, 0.73)
    assert new(play(paced, 0.73, 1.1)) == [
        (0.73, "0.1.0"),
        (0.83, "0.1.1"),
        (0.93, "0.1.2"),
        (1.03, "0.1.3"),
    ]
    assert paced.restarts == 1


def test_a_shell_that_slept_makes_no_burst():
    paced = pacer()
    push(paced, 0, 0.0)
    paced.pop_due(0.0)
    assert paced.pop_due(0.95) is not None  # due at 0.1
    assert (paced.next_due(0.95), paced.restarts) == (pytest.approx(1.05), 1)


def test_a_little_lateness_of_the_shell_does_not_shift_the_clock():
    paced = pacer()
    push(paced, 0, 0.0)
    for due in (0.0, 0.1, 0.2, 0.3):
        assert paced.next_due(due + 0.03) == pytest.approx(due)
        assert paced.pop_due(due + 0.03) is not None
        assert paced.pop_due(due + 0.03) is None


def test_after_a_stall_the_interval_is_nominal_again_within_three_chunks():
    load, paced = WorkerLoad("denoise"), pacer()
    now, times = 0.0, []
    for chunk in range(20):
        seconds = 2.0 if chunk == 10 else 0.3
        pushed, granted = now, max(now, paced.playout_end(now) - 0.3 - 0.02)
        now = granted + seconds
        times += play(paced, pushed, now - 1e-9)
        load.measured("a", "denoise", seconds)
        paced.set_period(load.period("a", []))
        push(paced, chunk, now)
    shown = [(t, frame.chunk) for t, frame in times if not frame.repeated]
    uneven = [b[1] for a, b in pairwise(shown) if abs(b[0] - a[0] - 0.1) > 1e-6]
    assert 10 in uneven
    assert max(uneven) <= 13


# ------------------------------------------------------------------ idle
def test_the_last_picture_is_repeated_five_times_a_second_under_its_id():
    paced = pacer()
    push(paced, 0, 0.0, frames=1)
    seen = play(paced, 0.0, 1.05)
    assert [round(t, 6) for t, _ in seen] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert {frame.frame_id for _, frame in seen} == {1}
    assert [frame.repeated for _, frame in seen] == [False] + [True] * 5
    assert paced.repeats == 5


def test_a_slow_clock_is_filled_with_repeats_but_never_crowded():
    paced = pacer()
    paced.set_period(4.0)  # a picture a second
    push(paced, 0, 0.0, frames=2)
    seen = play(paced, 0.0, 1.0)
    assert [(round(t, 6), frame.repeated) for t, frame in seen] == [
        (0.0, False),
        (0.2, True),
        (0.4, True),
        (0.6, True),
        (0.8, True),
        (1.0, False),
    ]
    paced.set_period(1.0)  # four a second: a repeat would be 50 ms ahead of the new one
    push(paced, 1, 1.1, frames=3)
    assert new(play(paced, 1.1, 1.8)) == [(1.25, "0.1.0"), (1.5, "0.1.1"), (1.75, "0.1.2")]


def test_a_world_that_recovers_is_shown_at_its_new_speed_from_the_next_picture_on():
    paced = pacer()
    paced.set_period(4.0)
    push(paced, 0, 0.0, frames=3)
    assert paced.pop_due(0.0) is not None
    paced.set_period(0.3)
    assert new(play(paced, 0.0, 1.0)) == [(0.1, "0.0.1"), (0.2, "0.0.2")]


# ------------------------------------------------------------------ epochs
def test_a_reset_drops_what_waits_and_what_comes_late():
    paced = pacer()
    push(paced, 0, 0.0)
    paced.pop_due(0.0)
    paced.reset(1)
    assert (paced.buffered, paced.dropped_stale, paced.epoch) == (0, 3, 1)
    push(paced, 1, 0.05, epoch=0)
    assert (paced.buffered, paced.dropped_stale) == (0, 7)
    assert paced.pop_due(0.2) == PacedFrame("0.0.0", 1, 0, 0, 1, due=0.2, repeated=True)
    push(paced, 0, 0.3, epoch=1)
    frame = paced.pop_due(0.3)
    assert frame is not None
    assert (frame.media, frame.frame_id, frame.epoch) == ("1.0.0", 2, 1)


def test_pictures_of_a_newer_epoch_begin_it():
    paced = pacer()
    push(paced, 0, 0.0)
    push(paced, 0, 0.0, epoch=1)
    assert new(play(paced, 0.0, 1.0))[0] == (0.0, "1.0.0")
    assert paced.dropped_stale == 4


# ------------------------------------------------------------------ playout end and bounds
def test_the_playout_end_counts_what_waits_and_what_is_expected():
    paced = pacer()
    push(paced, 0, 10.0)
    assert paced.playout_end(10.0) == pytest.approx(10.4)
    paced.pop_due(10.0)
    assert paced.playout_end(10.05) == pytest.approx(10.4)
    paced.expect(1, 4)
    assert paced.playout_end(10.05) == pytest.approx(10.8)
    push(paced, 1, 10.1, frames=1, last=False)
    assert paced.playout_end(10.1) == pytest.approx(10.8)
    push(paced, 1, 10.15, frames=2)  # three in all: it was a short chunk
    assert paced.playout_end(10.15) == pytest.approx(10.7)  # the shell is a little late: no shift


def test_the_playout_end_of_an_empty_clock_is_now():
    paced = pacer()
    push(paced, 0, 0.0)
    play(paced, 0.0, 0.35)
    assert paced.playout_end(0.35) == pytest.approx(0.4)  # the last one is being shown
    assert paced.playout_end(7.0) == 7.0
    paced.expect(1, 4)
    assert paced.playout_end(7.0) == pytest.approx(7.4)
    paced.forget_expected()
    assert paced.playout_end(7.0) == 7.0


def test_a_reset_forgets_what_was_expected():
    paced = pacer()
    paced.expect(0, 4)
    paced.reset(1)
    assert paced.playout_end(1.0) == 1.0


@pytest.mark.parametrize("reserve", [0, 2, 4])
def test_more_than_one_chunk_and_the_reserve_is_skipped_oldest_first(reserve: int):
    paced = pacer(reserve_frames=reserve)
    for chunk in range(3):
        push(paced, chunk, 0.0)
    assert (paced.buffered, paced.dropped_overflow) == (4 + reserve, 8 - reserve)
    first = paced.pop_due(0.0)
    assert first is not None
    assert (first.media, first.frame_id) == (f"0.{(8 - reserve) // 4}.{(8 - reserve) % 4}", 1)


@pytest.mark.parametrize("bad", [(0.0, 4), (-1.0, 4), (10.0, 0), (float("nan"), 4)])
def test_a_clock_without_speed_is_refused(bad: tuple[float, int]):
    with pytest.raises(ValueError, match="positive"):
        Pacer[str](*bad)


events = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 5), st.integers(-1, 1)),
    st.tuples(st.just("wait"), st.floats(0.0, 0.5)),
    st.tuples(st.just("period"), st.floats(0.0, 2.0)),
    st.tuples(st.just("expect"), st.integers(0, 8)),
)


@given(st.lists(events, max_size=60))
def test_whatever_comes_pictures_go_out_in_order_and_evenly(program: list):
    paced, now, epoch, chunk = pacer(), 0.0, 0, 0
    pushed: dict[str, int] = {}
    published: list[PacedFrame[str]] = []
    last_new: tuple[float, float] | None = None
    for kind, *values in program:
        if kind == "push":
            frames, step = values
            of = max(0, epoch + step)
            epoch = max(epoch, of)
            pictures = [f"{of}.{chunk}.{index}" for index in range(frames)]
            pushed.update((picture, of) for picture in pictures)
            paced.push(pictures, epoch=of, chunk=chunk, receipt=0, now=now)
            chunk += 1
        elif kind == "period":
            paced.set_period(values[0])
            if last_new is not None:
                last_new = last_new[0], min(last_new[1], paced.interval)
        elif kind == "expect":
            paced.expect(chunk, values[0])
        else:
            until = now + values[0]
            while (due := paced.next_due(now)) is not None and due <= until:
                now = max(now, due)
                frame = paced.pop_due(now)
                assert frame is not None
                if frame.repeated:
                    assert frame.frame_id == published[-1].frame_id
                    assert frame.media == published[-1].media
                else:
                    assert frame.frame_id == (published[-1].frame_id if published else 0) + 1
                    assert pushed.pop(frame.media) == frame.epoch >= paced.epoch
                    if last_new is not None:
                        assert now - last_new[0] >= last_new[1] - 1e-5
                    # A shorter interval may have put the slot in the past: it is kept to.
                    last_new = due if now - due <= paced.interval else now, paced.interval
                published.append(frame)
            now = until
        assert paced.buffered <= 8
        assert paced.playout_end(now) >= now
        due = paced.next_due(now)
        assert due is None or paced.pop_due(due - 0.001) is None
    order = [f.media.split(".") for f in published if not f.repeated]
    keys = [(int(c), int(i)) for _, c, i in order]
    assert keys == sorted(keys)
    new_count = sum(not f.repeated for f in published)
    accounted = new_count + paced.buffered + paced.dropped_stale + paced.dropped_overflow
    assert accounted == sum(v[0] for k, *v in program if k == "push")
