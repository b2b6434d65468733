from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.service import ControlSnapshot
from pipeline.tiny.controls import NOTHING_UNSPENT, TAP_SECONDS, Steering
from pipeline.tiny.motion import MAX_PITCH, TURN_SPEED, WALK_SPEED, WORLD_RADIUS, Player, step
from pipeline.tiny.place import CLOCK_PERIOD, OBSTACLES

RATES = (16.0, 24.0, 32.0)
OPEN = Player(-1.0, -2.5, -0.5)  # nothing to bump into within two seconds


def walked(player: Player, steering: Steering, seconds: float, fps: float) -> Player:
    wanted, _ = steering.frames(NOTHING_UNSPENT, round(seconds * fps), 1 / fps)
    for frame in wanted:
        player = step(player, frame, 1 / fps)
    return player


def pressed(**presses: int) -> Steering:
    return Steering.of(ControlSnapshot(presses=presses))


@pytest.mark.parametrize("keys", ["W", "WL", "SA", "J", "I", "WJK", "D"])
def test_two_seconds_lead_to_the_same_pose_at_any_frame_rate(keys):
    ends = [walked(OPEN, Steering.holding(keys), 2.0, fps) for fps in RATES]
    assert math.dist(ends[0].pose()[:3], OPEN.pose()[:3]) + abs(ends[0].pitch) > 0.5
    for end in ends[1:]:
        assert end.pose()[:2] == pytest.approx(ends[0].pose()[:2], abs=0.001)
        assert end.pose()[2:] == pytest.approx(ends[0].pose()[2:], abs=1e-9)


def test_speeds_are_per_second_and_settle():
    for fps in RATES:
        before = walked(OPEN, Steering.holding("W"), 1.0, fps)
        after = walked(before, Steering.holding("W"), 0.5, fps)
        way = math.dist(before.pose()[:2], after.pose()[:2])
        assert way == pytest.approx(0.5 * WALK_SPEED, rel=0.01)
        assert after.clock == pytest.approx(1.5)


@pytest.mark.parametrize("fps", RATES)
def test_a_tap_turns_by_the_same_angle_however_many_come_at_once(fps):
    def turned(steering: Steering) -> float:
        return walked(OPEN, steering, 6.0, fps).yaw - OPEN.yaw

    one, ten = turned(pressed(KeyL=1)), turned(pressed(KeyL=10))
    assert one == pytest.approx(TURN_SPEED * TAP_SECONDS, rel=1e-3)
    assert ten == pytest.approx(10 * one, rel=1e-3)


@pytest.mark.parametrize("fps", RATES)
def test_taps_in_ten_chunks_turn_as_far_as_ten_in_one(fps):
    player, unspent = OPEN, NOTHING_UNSPENT
    for _ in range(10):
        wanted, unspent = pressed(ArrowRight=1).frames(unspent, 4, 1 / fps)
        for frame in wanted:
            player = step(player, frame, 1 / fps)
    player = walked(player, Steering(), 3.0, fps)  # taps of the last chunk fit into it
    assert player.yaw - OPEN.yaw == pytest.approx(10 * TURN_SPEED * TAP_SECONDS, rel=1e-3)
    assert sum(unspent) == pytest.approx(0)


def test_the_press_that_begins_a_hold_adds_nothing():
    held = ControlSnapshot(held=frozenset({"KeyW"}))
    both = ControlSnapshot(held=frozenset({"KeyW"}), presses={"KeyW": 1})
    assert Steering.of(held) == Steering.of(both)
    again = ControlSnapshot(held=frozenset({"KeyW"}), presses={"KeyW": 2})
    assert Steering.of(again).taps == (1, 0, 0, 0, 0, 0, 0, 0)


def test_a_released_key_stops_at_once_though_it_was_tapped_before():
    wanted, unspent = Steering(held=(True,) + (False,) * 7, taps=(1,) + (0,) * 7).frames(
        NOTHING_UNSPENT, 4, 1 / 16
    )
    assert [frame.forward for frame in wanted] == [1.0] * 4
    assert unspent == NOTHING_UNSPENT


def test_arrows_look_and_opposite_keys_cancel():
    steering = Steering.of(ControlSnapshot(held=frozenset({"ArrowLeft", "KeyL", "ArrowUp"})))
    ((wanted,), _) = steering.frames(NOTHING_UNSPENT, 1, 1 / 16)
    assert (wanted.yaw, wanted.pitch, wanted.forward) == (0.0, 1.0, 0.0)


def test_key_and_alias_together_are_one_key():
    steering = Steering.of(ControlSnapshot(held=frozenset({"ArrowLeft", "KeyJ"})))
    ((wanted,), _) = steering.frames(NOTHING_UNSPENT, 1, 1 / 16)
    assert wanted.yaw == -1.0


def test_axes_scale_the_same_motion():
    half = Steering.of(ControlSnapshot(axes={"yaw": 0.5, "forward": -1.0}))
    whole = Steering.holding("LS")
    turned = [walked(OPEN, steering, 1.0, 24).yaw - OPEN.yaw for steering in (half, whole)]
    assert turned[0] == pytest.approx(turned[1] / 2)
    assert walked(OPEN, half, 0.25, 24).forward_speed == pytest.approx(
        walked(OPEN, whole, 0.25, 24).forward_speed
    )


@pytest.mark.parametrize(
    "control",
    [
        ControlSnapshot(held=frozenset({"KeyQ", "Space", "MetaLeft"}), presses={"KeyX": 3}),
        ControlSnapshot(presses={"KeyW": -4}, axes={"zoom": 1.0}),
    ],
)
def test_unknown_input_means_nothing(control):
    assert Steering.of(control) == Steering()


def test_axes_beyond_one_are_no_faster_than_keys():
    fast = Steering.of(ControlSnapshot(held=frozenset({"KeyW"}), axes={"forward": 1.0}))
    ((wanted,), _) = fast.frames(NOTHING_UNSPENT, 1, 1 / 16)
    assert wanted.forward == 1.0


@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("index", [1, 9, 14])
def test_obstacles_stop_the_eye_at_their_circle(fps, index):
    x, y, radius = OBSTACLES[index]
    end = walked(Player(x - radius - 2, y, 0.0), Steering.holding("W"), 3.0, fps)
    assert math.hypot(end.x - x, end.y - y) == pytest.approx(radius, abs=2e-3)


@pytest.mark.parametrize("fps", RATES)
def test_nobody_leaves_the_world_or_looks_over_the_top(fps):
    random = np.random.RandomState(4)
    player = OPEN
    for _ in range(120):
        keys = "".join(key for key in "WASDIJKL" if random.rand() < (0.8 if key in "WI" else 0.2))
        player = walked(player, Steering.holding(keys), 0.5, fps)
        assert math.hypot(player.x, player.y) <= WORLD_RADIUS + 1e-6
        assert abs(player.pitch) <= MAX_PITCH
        gap = np.hypot(OBSTACLES[:, 0] - player.x, OBSTACLES[:, 1] - player.y) - OBSTACLES[:, 2]
        assert gap.min() > -1e-6


def test_the_clock_wraps():
    end = step(Player(0, 0, 0, clock=CLOCK_PERIOD - 0.01), Steering().axes, 1 / 16)
    assert 0 <= end.clock < 1
