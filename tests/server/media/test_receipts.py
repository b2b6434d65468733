"""Receipts and publish times as numbers."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import server.media
from server.media.receipts import (
    CLOCK_RATE,
    NO_RECEIPT,
    WRAP,
    PtsClock,
    pack_receipt,
    pts_difference,
    unpack_receipt,
)

uint32 = st.integers(0, WRAP - 1)


@given(uint32, uint32)
def test_a_receipt_comes_back_as_it_went(nonce: int, seq: int):
    receipt = pack_receipt(nonce, seq)
    assert 0 <= receipt < 1 << 64
    assert unpack_receipt(receipt) == (nonce, seq)


def test_the_layout_is_nonce_then_seq():
    assert pack_receipt(1, 2) == 0x0000_0001_0000_0002
    assert pack_receipt(0, 0) == NO_RECEIPT


@pytest.mark.parametrize("halves", [(-1, 0), (0, -1), (WRAP, 0), (0, WRAP)])
def test_what_does_not_fit_is_refused(halves: tuple[int, int]):
    with pytest.raises(ValueError, match="32 bits"):
        pack_receipt(*halves)


@pytest.mark.parametrize("receipt", [-1, 1 << 64])
def test_what_is_no_receipt_is_refused(receipt: int):
    with pytest.raises(ValueError, match="64 bits"):
        unpack_receipt(receipt)


@given(st.lists(st.floats(0, 0.2), max_size=50))
def test_publish_times_grow_strictly_and_keep_to_the_clock(steps: list[float]):
    now, last = 1000.0, -1
    clock = PtsClock(now)
    for count, step in enumerate(steps):
        now += step
        ticks = clock.ticks(now)
        assert ticks > last
        assert abs(ticks - (now - 1000.0) * CLOCK_RATE) <= count + 1
        last = ticks


def test_publish_times_never_go_back_when_the_clock_does():
    clock = PtsClock(0.0)
    assert [clock.pts(t) for t in (1.0, 0.5, 1.0, 2.0)] == [90_000, 90_001, 90_002, 180_000]


def test_publish_times_wrap_after_thirteen_hours():
    clock = PtsClock(0.0)
    before, after = clock.pts(WRAP / CLOCK_RATE - 0.1), clock.pts(WRAP / CLOCK_RATE + 0.1)
    assert (before, after) == (WRAP - 9000, 9000)
    assert pts_difference(after, before) == 18_000
    assert pts_difference(before, after) == -18_000


def test_the_first_page_of_the_folder_runs():
    results = doctest.testmod(server.media)
    assert results.attempted > 0
    assert results.failed == 0
