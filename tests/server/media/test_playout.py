"""How fast a session really plays, from what is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.media.pacing import PacedFrame, Pacer
from server.media.playout import RECENT, PlayoutMeter

FPS = 10.0
FRAMES = 4
CHUNK = FRAMES / FPS


class Show:
    """A meter and the pictures that it sees, on a clock that the test sets."""

    def __init__(self) -> None:
        self.meter = PlayoutMeter(FPS)
        self.now = 50.0
        self.frames = 0

    def chunk(self, index: int, *, seconds: float = CHUNK, epoch: int = 0, frames: int = FRAMES):
        """A chunk is granted and shown, evenly, in that time."""
        self.meter.granted(epoch, index)
        for _ in range(frames):
            self.frames += 1
            self.meter.shown(PacedFrame("", self.frames, epoch, index, 0, self.now))
            self.now += seconds / frames

    @property
    def factor(self) -> float | None:
        return self.meter.real_time_factor


def test_nothing_is_known_before_two_chunks_are_shown():
    show = Show()
    assert show.factor is None
    show.chunk(0)
    assert show.factor is None
    show.chunk(1)
    assert show.factor == pytest.approx(1.0)


@pytest.mark.parametrize("slowness", [1.0, 1.3, 2.0, 8.0])
def test_a_world_that_needs_longer_is_slower_by_as_much(slowness: float):
    show = Show()
    for index in range(10):
        show.chunk(index, seconds=slowness * CHUNK)
    assert show.factor == pytest.approx(slowness)


def test_a_few_late_chunks_are_no_slow_motion_and_many_are():
    show = Show()
    for index in range(RECENT + 1):
        show.chunk(index)
        show.now += 0.3 if index in (20, 40) else 0.0
    assert show.factor == pytest.approx(1.0)
    for index in range(RECENT + 1, 2 * RECENT + 1):
        show.chunk(index)
        show.now += 0.2 if index % 8 == 0 else 0.0
    assert show.factor == pytest.approx(1.5)


def test_only_the_newest_chunks_are_judged():
    show = Show()
    for index in range(RECENT):
        show.chunk(index, seconds=3 * CHUNK)
    assert show.factor == pytest.approx(3.0)
    for index in range(RECENT, 2 * RECENT + 1):
        show.chunk(index)
    assert show.factor == pytest.approx(1.0)


def test_a_short_chunk_plays_for_less():
    show = Show()
    show.chunk(0, seconds=0.1, frames=1)  # a decoder whose first latent gives one picture
    show.chunk(1)
    show.chunk(2)
    assert show.factor == pytest.approx(1.0)


@pytest.mark.parametrize("under_way", [0, 1, 2])
def test_a_wait_by_choice_is_in_no_period(under_way: int):
    """Whatever was granted when the wait began is shown before it, around it or after it."""
    show = Show()
    for index in range(4):
        show.chunk(index)
    for index in range(4, 4 + under_way):
        show.meter.granted(0, index)
    show.meter.waits()
    for index in range(4, 10):
        show.now += 60.0 if index <= 4 + under_way else 0.0
        show.chunk(index)
    assert show.factor == pytest.approx(1.0)


def test_what_comes_after_a_wait_counts_again():
    show = Show()
    for index in range(3):
        show.chunk(index)
    show.meter.waits()
    for index in range(3, 8):
        show.chunk(index, seconds=2 * CHUNK)
    assert show.factor == pytest.approx(2.0)


def test_building_the_session_again_is_no_period():
    show = Show()
    for index in range(3):
        show.chunk(index)
    show.chunk(-1, epoch=1, frames=1)  # its start picture stands while it is built
    show.now += 60.0
    for index in range(3):
        show.chunk(index, epoch=1)
    assert show.factor == pytest.approx(1.0)


def test_a_wait_in_one_epoch_hides_nothing_of_the_next():
    show = Show()
    for index in range(9):
        show.chunk(index)
    show.meter.waits()
    for index in range(4):
        show.chunk(index, epoch=1, seconds=2 * CHUNK)
    assert show.factor == pytest.approx(2.0)


def test_a_chunk_that_was_skipped_makes_no_period():
    show = Show()
    show.chunk(0)
    show.chunk(1)
    show.now += 2 * CHUNK
    show.chunk(4)
    assert show.factor == pytest.approx(1.0)


@given(st.lists(st.floats(0.0, 0.999), min_size=3, max_size=40))
def test_chunks_that_come_in_time_have_the_period_that_they_play(early: list[float]):
    """However uneven they come: each of them somewhere within the chunk before."""
    pacer, meter = Pacer[int](FPS, FRAMES), PlayoutMeter(FPS)
    arrivals = [0.0] + [CHUNK * (index + share) for index, share in enumerate(early)]
    for index, arrival in enumerate(arrivals):
        play(pacer, meter, arrival)
        meter.granted(0, index)
        pacer.push(range(FRAMES), epoch=0, chunk=index, receipt=0, now=arrival)
    play(pacer, meter, CHUNK * len(arrivals))
    assert pacer.restarts == 0
    assert meter.real_time_factor == pytest.approx(1.0)


@given(st.lists(st.floats(0.0, 2.0), min_size=8, max_size=40))
def test_lateness_shows_in_full_and_nothing_is_made_up_for(late: list[float]):
    pacer, meter = Pacer[int](FPS, FRAMES), PlayoutMeter(FPS)
    now = 0.0
    for index, seconds in enumerate([0.0, *late]):
        now = max(now, pacer.playout_end(now)) + seconds
        play(pacer, meter, now - 1e-5)
        meter.granted(0, index)
        pacer.push(range(FRAMES), epoch=0, chunk=index, receipt=0, now=now)
    play(pacer, meter, now)
    assert meter.real_time_factor is not None
    worst = 1 + max(late) / CHUNK
    ordered = sorted(late)
    assert 1 + ordered[int(0.95 * (len(ordered) - 1))] / CHUNK - 1e-3 <= meter.real_time_factor
    assert meter.real_time_factor <= worst + 1e-3


def play(pacer: Pacer[int], meter: PlayoutMeter, until: float) -> None:
    """Show what is due, as a shell that is never late would."""
    while (due := pacer.next_due(until)) is not None and due <= until:
        frame = pacer.pop_due(due)
        assert frame is not None
        if not frame.repeated:
            meter.shown(frame)
