from __future__ import annotations

import pytest

from server.transports.base import Identity, PlayingElsewhere
from server.transports.succession import Succession


def test_newer_replaces_older_only_once_up() -> None:
    succession = Succession()
    first, _ = succession.admit(False, 0.0)
    assert succession.live is None
    assert succession.came_up(first, 0.1) == ()
    second, displaced = succession.admit(True, 0.2)
    assert (succession.live, displaced) == (first, ())
    assert succession.came_up(second, 0.3) == (first,)
    assert succession.live == second


def test_older_one_that_was_overtaken_is_gone() -> None:
    succession = Succession()
    slow, _ = succession.admit(False, 0.0)
    fast, _ = succession.admit(False, 0.1)
    assert succession.came_up(fast, 0.2) == (slow,)
    assert succession.known == (fast,)
    assert not succession.gone(slow)


def test_older_one_may_come_up_before_the_newer() -> None:
    succession = Succession()
    older, _ = succession.admit(False, 0.0)
    newer, _ = succession.admit(False, 0.1)
    assert succession.came_up(older, 0.2) == ()
    assert succession.came_up(newer, 0.3) == (older,)


def test_connections_on_the_way_are_bounded() -> None:
    succession = Succession(max_pending=2)
    first, _ = succession.admit(False, 0.0)
    second, _ = succession.admit(False, 0.0)
    third, displaced = succession.admit(False, 0.0)
    assert displaced == (first,)
    assert succession.known == (second, third)


def test_live_connection_is_asked_about_until_it_is_silent() -> None:
    succession = Succession(quiet_seconds=3.0)
    live, _ = succession.admit(False, 0.0)
    succession.came_up(live, 0.0)
    succession.heard(live, 5.0)
    with pytest.raises(PlayingElsewhere):
        succession.admit(False, 7.9)
    assert succession.known == (live,)
    succession.admit(False, 8.0)


def test_identity_is_never_used_twice() -> None:
    succession = Succession()
    seen = set()
    for _ in range(5):
        who, _ = succession.admit(False, 0.0)
        assert succession.gone(who)
        seen.add(who)
    assert len(seen) == 5


def test_whoever_was_away_comes_back_under_the_same_name_unless_a_newer_one_plays() -> None:
    succession = Succession()
    first, _ = succession.admit(False, 0.0)
    succession.came_up(first, 0.0)
    assert succession.away(first)
    assert not succession.away(first)
    assert succession.live is None
    assert succession.back(first, 1.0)
    assert succession.came_up(first, 1.0) == ()
    assert succession.away(first)
    second, _ = succession.admit(False, 2.0)
    succession.came_up(second, 2.0)
    assert not succession.back(first, 3.0)
    assert succession.live == second


def test_a_stranger_cannot_come_back() -> None:
    assert not Succession().back(Identity("player-7"), 0.0)
