from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from pipeline.registry import load_world
from pipeline.service import BadStart, ControlSnapshot, Idle, SessionStart
from pipeline.testworlds.failing import ToldToFail
from pipeline.testworlds.marker import read_marker
from pipeline.testworlds.prompt import prompt_colour
from pipeline.testworlds.slow import taking
from tests.fakes.player import FakePlayer, holding

FAST = {"encode_ms": 0, "denoise_ms": 0, "decode_ms": 0}


def seconds_of(player: FakePlayer) -> float:
    began = time.perf_counter()
    player.chunk()
    return time.perf_counter() - began


def test_the_slow_world_takes_its_time_in_every_stage():
    for stage in ("encode", "denoise", "decode"):
        player = FakePlayer(load_world("slow", FAST | {f"{stage}_ms": 60}))
        assert seconds_of(player) >= 0.06


def test_waiting_costs_no_processor_and_busy_does():
    def processor_seconds(busy: bool) -> float:
        work, began = taking(0.1, busy, -1, 0.0), time.thread_time()
        work(0)
        return time.thread_time() - began

    waiting = min(processor_seconds(busy=False) for _ in range(3))
    assert waiting < 0.01
    # As much as others leave of it; a machine that stands still leaves nothing, but not each time.
    assert any(processor_seconds(busy=True) > 10 * waiting for _ in range(20))


def test_a_stall_comes_once_a_session_at_its_chunk(monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []  # what a clock would say, a busy machine says of every chunk
    monkeypatch.setattr(time, "sleep", slept.append)
    world = load_world("slow", FAST | {"stall_at": 2, "stall_seconds": 0.2})
    for _ in range(2):
        player, stalled = FakePlayer(world), []
        for _ in range(4):
            slept.clear()
            player.chunk()
            stalled.append(max(slept, default=0.0) >= 0.2)
        assert stalled == [False, False, True, False]


def test_the_slow_world_shows_markers():
    film = FakePlayer(load_world("slow", FAST)).chunk(ControlSnapshot(receipt=5))
    marker = read_marker(film[0])
    assert marker is not None
    assert marker.seq == 5


@pytest.mark.parametrize("stage", ["encode", "denoise", "decode"])
def test_the_failing_world_fails_where_it_is_told(stage):
    player = FakePlayer(load_world("failing", {"stage": stage, "at_chunk": 2}))
    player.play([holding()] * 2)
    with pytest.raises(ToldToFail, match=f"{stage} was told to fail at chunk 2"):
        player.chunk()
    again = FakePlayer(player.world)  # another session of the same world is not harmed
    assert len(again.play([holding()] * 2)) == 8


def test_it_can_fail_when_a_session_opens():
    with pytest.raises(ToldToFail):
        FakePlayer(load_world("failing", {"stage": "open"}))


def test_a_hang_ends_when_the_world_is_closed():
    world = load_world("failing", {"hang": True, "at_chunk": 0, "stage": "decode"})
    thread = threading.Thread(target=FakePlayer(world).chunk, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    world.close()
    thread.join(10)
    assert not thread.is_alive()


def test_the_prompt_world_shows_its_prompt_and_holds_still():
    world = load_world("prompt")
    assert world.info.prompt
    player = FakePlayer(world, SessionStart(prompt="a jungle"))
    assert player.policy.idle is Idle.HOLD
    first = player.chunk()
    assert np.array_equal(first[0], first[3])
    assert tuple(first[0][-1, -1]) == prompt_colour("a jungle")
    film = player.play([ControlSnapshot(prompt="the sea"), ControlSnapshot()])
    assert tuple(film[0][-1, -1]) == tuple(film[-1][-1, -1]) == prompt_colour("the sea")
    text = film[0][20:100] != np.array(prompt_colour("the sea"))
    assert text.any()


@pytest.mark.parametrize("prompt", ["", "x" * 4000, "🦒 \ud800 دشت\n\n", "\x00"])
def test_any_prompt_can_be_shown(prompt):
    assert FakePlayer(load_world("prompt"), SessionStart(prompt=prompt)).chunk().shape[0] == 4


def test_keys_move_the_dot_and_a_tap_counts_once():
    player = FakePlayer(load_world("prompt", {"fps": 16}))
    still = player.chunk()
    tapped = player.chunk(ControlSnapshot(presses={"KeyD": 1}))
    assert not np.array_equal(still[0], tapped[-1])
    assert np.array_equal(tapped[-1], player.chunk()[-1])


@pytest.mark.parametrize("name", ["marker", "slow", "failing", "prompt"])
def test_what_a_world_cannot_start_from_is_refused(name):
    world = load_world(name)
    with pytest.raises(BadStart):
        world.policy(SessionStart(start_point="moon"))
    with pytest.raises(BadStart):
        world.policy(SessionStart(image=b"x"))
    if name != "prompt":
        with pytest.raises(BadStart):
            world.policy(SessionStart(prompt="x"))


def test_start_points_differ_and_their_pictures_are_theirs():
    world = load_world("prompt")
    pictures = [point.picture for point in world.info.start_points]
    assert len(set(pictures)) == len(pictures) == 2
