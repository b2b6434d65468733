from __future__ import annotations

import random
from itertools import pairwise

from server.transports.livekit.capture import EARLY_MS, CaptureTimes

INTERVAL = 1 / 16


def test_a_picture_is_captured_a_little_before_it_is_shown_and_rtp_counts_the_same() -> None:
    times = CaptureTimes(random.Random(1))
    for index in range(200):
        now = 1000.25 + index * INTERVAL
        captured = times.next(now)
        assert 0 <= int(now * 1000) - captured.timestamp_us // 1000 < EARLY_MS
        assert captured.timestamp_us % 1000 == 500
        assert captured.pts == captured.timestamp_us // 1000 * 90 % 2**32


def test_times_only_grow_however_fast_pictures_come() -> None:
    times = CaptureTimes(random.Random(2))
    taken = [times.next(5.0).timestamp_us for _ in range(50)]
    assert all(later - earlier >= 1000 for earlier, later in pairwise(taken))


def test_even_pictures_fit_only_one_offset() -> None:
    times = CaptureTimes(random.Random(3))
    pts = [times.next(1000.0 + index * INTERVAL).pts for index in range(64)]
    for shift in range(1, 20):
        apart = [later - earlier for earlier, later in zip(pts, pts[shift:], strict=False)]
        most = max(apart.count(each) for each in set(apart))
        assert 2 * most <= len(pts), f"frames {shift} apart look like the same offset"


def test_the_mean_is_right_from_the_first_pictures_on() -> None:
    """libwebrtc averages over what it has seen: half a millisecond off is another timestamp."""
    times = CaptureTimes(random.Random(4))
    early = []
    for index in range(100):
        now = 1000 + index / 10
        early.append(int(now * 1000) - times.next(now).timestamp_us // 1000)
        if len(early) % EARLY_MS == 0:
            assert sum(early) / len(early) == (EARLY_MS - 1) / 2
