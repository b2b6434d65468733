from __future__ import annotations

from server.transports.livekit.silence import Silence


def test_whoever_is_silent_for_too_many_watches_is_lost_once() -> None:
    silence = Silence(lost_after=2)
    silence.watch("a")
    silence.watch("b")
    assert [silence.next(), silence.next()] == [[], []]
    silence.heard("a")
    assert silence.next() == ["b"]
    assert silence.watched == ("a",)
    assert [silence.next(), silence.next(), silence.next()] == [[], ["a"], []]


def test_a_word_of_somebody_who_is_not_watched_changes_nothing() -> None:
    silence = Silence(lost_after=1)
    silence.heard("a")
    silence.watch("b")
    silence.forget("b")
    assert [silence.next(), silence.next(), silence.next()] == [[], [], []]
