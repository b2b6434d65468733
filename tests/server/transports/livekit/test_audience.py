from __future__ import annotations

import pytest

from server.transports.base import Identity, TooManySpectators
from server.transports.livekit.audience import Audience


def test_only_those_who_were_invited_watch() -> None:
    audience = Audience()
    who = audience.invite(now=0.0, until=90.0)
    assert who.startswith("spectator-")
    assert audience.arrived(who)
    assert audience.arrived(who)
    assert not audience.arrived(Identity("spectator-0000000000"))
    assert audience.present == {who}


def test_seats_of_those_who_never_come_are_free_again() -> None:
    audience = Audience(max_spectators=2)
    audience.arrived(audience.invite(now=0.0, until=90.0))
    audience.invite(now=0.0, until=90.0)
    with pytest.raises(TooManySpectators):
        audience.invite(now=89.0, until=179.0)
    audience.invite(now=91.0, until=181.0)


def test_whoever_leaves_with_the_controls_is_told_apart_and_may_come_back() -> None:
    audience = Audience()
    who, other = audience.invite(0.0, 90.0), audience.invite(0.0, 90.0)
    audience.arrived(who)
    audience.arrived(other)
    audience.holder = who
    assert not audience.departed(other, until=100.0)
    assert audience.departed(who, until=100.0)
    assert audience.holder is None
    assert audience.arrived(who)
    audience.room_lost(until=200.0)
    assert audience.present == frozenset()
    assert audience.arrived(who)
