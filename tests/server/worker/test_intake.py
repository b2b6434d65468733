"""Control intake: taps exactly once, nothing stuck, one connection at a time."""

from __future__ import annotations

import pytest

from pipeline.service import ControlSnapshot
from server.protocol.keys import Keys
from server.worker.intake import (
    MAX_CODES,
    MAX_PENDING_PRESSES,
    ControlIntake,
    Received,
    is_newer,
)

NONCE = 7


def keys(
    seq: int,
    held: str = "",
    presses: dict[str, int] | None = None,
    *,
    epoch: int = 0,
    nonce: int = NONCE,
    axes: dict[str, float] | None = None,
) -> Keys:
    """A message; `held` is codes separated by spaces."""
    return Keys(
        epoch=epoch,
        nonce=nonce,
        seq=seq,
        held=tuple(held.split()),
        presses=presses or {},
        axes=axes or {},
    )


def connected(nonce: int = NONCE) -> ControlIntake:
    intake = ControlIntake()
    assert intake.hello(nonce)
    return intake


def control(intake: ControlIntake, now: float = 0.0) -> ControlSnapshot:
    return intake.snapshot(now).control


def test_before_hello_everything_is_foreign():
    intake = ControlIntake()
    assert intake.receive(keys(1, "KeyW", {"KeyW": 1}), 0.0) is Received.FOREIGN
    pending = intake.snapshot(0.0, prompt="a wood")
    assert pending.control == ControlSnapshot(prompt="a wood")
    assert (pending.age, pending.fresh) == (None, False)


def test_a_snapshot_carries_the_whole_state_and_its_receipt():
    intake = connected()
    assert intake.receive(
        keys(3, "KeyW KeyA", {"KeyW": 1}, axes={"yaw": 0.5, "pitch": 0.0}), 1.0
    ) is (Received.NEWER)
    assert control(intake, 1.2) == ControlSnapshot(
        held=frozenset({"KeyW", "KeyA"}),
        presses={"KeyW": 1},
        axes={"yaw": 0.5},
        receipt=NONCE << 32 | 3,
    )


def test_a_snapshot_does_not_change_afterwards():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}, axes={"yaw": 1.0}), 0.0)
    taken = intake.snapshot(0.0)
    intake.consume(taken)
    intake.receive(keys(2, "", {"KeyW": 2}), 0.1)
    assert taken.control.presses == {"KeyW": 1}
    assert taken.control.axes == {"yaw": 1.0}
    assert taken.control.held == {"KeyW"}


# ------------------------------------------------------------------ order
def test_the_newest_seq_wins_and_stale_ones_are_dropped():
    intake = connected()
    for seq, held in ((1, "KeyW"), (3, "KeyD"), (2, "KeyA")):
        intake.receive(keys(seq, held), 0.0)
    assert control(intake).held == {"KeyD"}
    assert intake.received == {Received.NEWER: 2, Received.STALE: 1}


def test_seq_wraps_around():
    intake = connected()
    intake.receive(keys(2**32 - 1, "KeyW"), 0.0)
    assert intake.receive(keys(0, "KeyA"), 0.0) is Received.NEWER
    assert intake.receive(keys(2**32 - 1, "KeyW"), 0.0) is Received.STALE
    assert control(intake).receipt == NONCE << 32


@pytest.mark.parametrize(
    ("seq", "than", "newer"),
    [
        (1, 0, True),
        (0, 1, False),
        (5, 5, False),
        (0, 2**32 - 1, True),
        (2**31 - 1, 0, True),
        (2**31, 0, False),
        (10, 2**32 - 10, True),
    ],
)
def test_newer_is_judged_across_the_wrap(seq: int, than: int, newer: bool):
    assert is_newer(seq, than) is newer


# ------------------------------------------------------------------ taps
def test_a_tap_between_two_chunks_shows_although_nothing_is_held():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}), 0.0)
    intake.receive(keys(2, "", {"KeyW": 1}), 0.05)
    seen = control(intake, 0.1)
    assert (seen.held, seen.presses, seen.active) == (frozenset(), {"KeyW": 1}, True)


def test_a_tap_survives_the_loss_of_its_own_messages():
    intake = connected()
    intake.receive(keys(4, "", {"KeyW": 2, "KeyE": 1}), 0.0)  # all before were lost
    assert control(intake).presses == {"KeyW": 2, "KeyE": 1}


def test_a_tap_is_applied_once_whatever_is_repeated():
    intake = connected()
    message = keys(1, "", {"KeyE": 1})
    for _ in range(3):
        intake.receive(message, 0.0)
    intake.consume(intake.snapshot(0.0))
    for late in (message, keys(2, "", {"KeyE": 1}), message):
        intake.receive(late, 0.1)
    assert control(intake, 0.1).presses == {}
    intake.receive(keys(3, "", {"KeyE": 3}), 0.2)
    assert control(intake, 0.2).presses == {"KeyE": 2}


def test_counters_that_go_back_are_no_taps():
    intake = connected()
    intake.receive(keys(1, "", {"KeyE": 5}), 0.0)
    intake.consume()
    intake.receive(keys(2, "", {"KeyE": 3}), 0.0)
    intake.receive(keys(3, "", {"KeyE": 5}), 0.0)
    assert control(intake).presses == {}


def test_a_refused_submit_consumes_nothing():
    intake = connected()
    intake.receive(keys(1, "", {"KeyE": 1}), 0.0)
    intake.snapshot(0.0)
    intake.snapshot(0.1)
    assert control(intake, 0.2).presses == {"KeyE": 1}


def test_a_tap_that_comes_after_the_look_waits_for_the_next_chunk():
    intake = connected()
    intake.receive(keys(1, "", {"KeyE": 1}), 0.0)
    taken = intake.snapshot(0.0)
    intake.receive(keys(2, "", {"KeyE": 2, "KeyQ": 1}), 0.01)
    intake.consume(taken)
    assert control(intake, 0.02).presses == {"KeyE": 1, "KeyQ": 1}
    intake.consume()
    assert control(intake, 0.02).presses == {}


def test_failure_and_abort_discard_taps_but_not_what_is_held():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}), 0.0)
    intake.discard()
    assert (control(intake).presses, control(intake).held) == ({}, {"KeyW"})
    intake.receive(keys(2, "KeyW", {"KeyW": 1}), 0.0)
    assert control(intake).presses == {}


# ------------------------------------------------------------------ epochs
def test_presses_of_an_older_epoch_are_ignored_for_good():
    intake = connected()
    intake.receive(keys(1, "", {"KeyE": 1}), 0.0)
    intake.reset(1)
    assert control(intake).presses == {}
    intake.receive(keys(2, "KeyW", {"KeyE": 2}, epoch=0), 0.1)
    assert (control(intake, 0.1).presses, control(intake, 0.1).held) == ({}, {"KeyW"})
    intake.receive(keys(3, "", {"KeyE": 3}, epoch=1), 0.2)
    assert control(intake, 0.2).presses == {"KeyE": 1}
    assert intake.epoch == 1


def test_presses_of_an_epoch_that_has_not_begun_are_ignored():
    intake = connected()
    intake.receive(keys(1, "", {"KeyE": 1}, epoch=9), 0.0)
    assert control(intake).presses == {}


# ------------------------------------------------------------------ silence
def test_held_keys_and_axes_end_after_half_a_second_of_silence():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}, axes={"forward": 1.0}), 0.0)
    intake.consume()
    assert control(intake, 0.5).held == {"KeyW"}
    silent = control(intake, 0.51)
    assert (silent.held, silent.axes, silent.active) == (frozenset(), {}, False)


def test_each_silence_that_lets_go_of_something_counts_once():
    """Row B3: what the log and the metrics say of it."""
    intake = connected()
    for number, moment in enumerate((0.0, 10.0), 1):
        intake.receive(keys(number, axes={"forward": 1.0}), moment)
        for later in (0.1, 0.51, 0.7, 5.0):
            intake.consume(intake.snapshot(moment + later))
            assert intake.expiries == number - (later < 0.5)
    intake.receive(keys(3), 20.0)
    intake.consume(intake.snapshot(30.0))
    assert intake.expiries == 2, "nothing was held"


def test_repeats_keep_it_alive_and_bring_it_back():
    intake = connected()
    message = keys(1, "KeyW")
    for tenth in range(20):
        intake.receive(message, tenth / 10)
    assert control(intake, 2.3).held == {"KeyW"}
    assert control(intake, 3.0).held == frozenset()
    assert intake.receive(message, 3.1) is Received.REPEATED
    assert control(intake, 3.2).held == {"KeyW"}


@pytest.mark.parametrize("late", [Received.STALE, Received.FOREIGN])
def test_what_does_not_count_keeps_nothing_alive(late: Received):
    intake = connected()
    intake.receive(keys(5, "KeyW"), 0.0)
    nonce = NONCE if late is Received.STALE else 8
    assert intake.receive(keys(4, "KeyW", nonce=nonce), 0.4) is late
    assert control(intake, 0.6).held == frozenset()


def test_taps_outlive_silence():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}), 0.0)
    assert control(intake, 5.0).presses == {"KeyW": 1}


@pytest.mark.parametrize("code", ["AltLeft", "AltRight", "MetaLeft", "MetaRight", "OSLeft"])
def test_keys_whose_release_the_system_swallows_never_count(code: str):
    intake = connected()
    intake.receive(keys(1, f"KeyW {code}", {code: 1}), 0.0)
    assert (control(intake).held, control(intake).presses) == ({"KeyW"}, {})


# ------------------------------------------------------------------ connections
def test_a_repeated_hello_changes_nothing():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}), 0.0)
    assert not intake.hello(NONCE)
    assert control(intake).active


def test_a_new_connection_releases_everything_and_the_old_one_is_foreign():
    intake = connected()
    intake.receive(keys(9, "KeyW", {"KeyW": 4}), 0.0)
    assert intake.hello(8)
    assert control(intake) == ControlSnapshot()
    assert intake.receive(keys(10, "KeyD"), 0.1) is Received.FOREIGN
    assert control(intake, 0.1).held == frozenset()
    intake.receive(keys(0, "KeyA", {"KeyW": 1}, nonce=8), 0.2)  # counters begin at 0 again
    assert control(intake, 0.2) == ControlSnapshot(
        held=frozenset({"KeyA"}), presses={"KeyW": 1}, receipt=8 << 32
    )


def test_when_the_controller_is_gone_everything_is_released():
    intake = connected()
    intake.receive(keys(1, "KeyW", {"KeyW": 1}), 0.0)
    intake.gone()
    assert (intake.nonce, control(intake)) == (None, ControlSnapshot())
    assert intake.receive(keys(2, "KeyW"), 0.1) is Received.FOREIGN
    assert intake.hello(NONCE), "the same connection may introduce itself again"


# ------------------------------------------------------------------ age
def test_the_age_is_that_of_the_newest_state_not_of_its_repeats():
    intake = connected()
    intake.receive(keys(1, "KeyW"), 1.0)
    intake.receive(keys(1, "KeyW"), 1.1)
    pending = intake.snapshot(1.2)
    assert (pending.age, pending.fresh) == (pytest.approx(0.2), True)
    intake.consume(pending)
    assert not intake.snapshot(1.3).fresh
    intake.receive(keys(2), 1.4)
    pending = intake.snapshot(1.45)
    assert (pending.age, pending.fresh) == (pytest.approx(0.05), True)


def test_a_state_that_came_after_the_look_is_still_fresh():
    intake = connected()
    intake.receive(keys(1), 0.0)
    taken = intake.snapshot(0.0)
    intake.receive(keys(2), 0.1)
    intake.consume(taken)
    assert intake.snapshot(0.2).fresh


# ------------------------------------------------------------------ bounds
def test_no_message_makes_more_taps_than_a_player_could():
    intake = connected()
    intake.receive(keys(1, "", {"KeyE": 2**31 - 1}), 0.0)
    intake.receive(keys(2, "", {"KeyE": 2**31 - 1, "KeyQ": 1}), 0.0)
    assert control(intake).presses == {"KeyE": MAX_PENDING_PRESSES, "KeyQ": 1}


def test_the_number_of_codes_is_bounded():
    intake = connected()
    for seq in range(40):
        codes = {f"X{seq * 32 + index}": 1 for index in range(32)}
        intake.receive(keys(seq, "", codes), 0.0)
    assert len(control(intake).presses) == MAX_CODES
