from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

from pipeline.options import BadWorldOptions
from pipeline.registry import load_world
from pipeline.service import BadStart, ControlSnapshot, Idle, SessionStart
from pipeline.tiny.stages import torch_thread
from pipeline.tiny.warm_up import Speed, best_rate
from pipeline.tiny.world import make_world


def test_it_says_what_it_is(world):
    info = world.info
    assert (info.name, info.width, info.height, info.frames_per_chunk) == ("tiny", 256, 160, 4)
    assert "does not invent" in info.about
    assert [control.code for control in info.controls] == [f"Key{key}" for key in "WASDIJKL"]
    assert {a for c in info.controls for a in c.aliases} == {
        "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight",
    }  # fmt: skip
    assert not info.prompt
    assert len(info.start_points) == 6
    assert all(point.picture.startswith(b"\x89PNG") for point in info.start_points)
    assert world.policy(SessionStart()).idle is Idle.CONTINUE


@pytest.mark.parametrize(
    ("start", "field"),
    [
        (SessionStart(start_point="moon"), "start_point"),
        (SessionStart(start_point="../../etc/passwd"), "start_point"),
        (SessionStart(prompt="a jungle"), "prompt"),
        (SessionStart(image=b"not an image"), "image"),
        (SessionStart(image=b""), "image"),
    ],
)
def test_what_it_cannot_start_from_is_refused_by_name(world, start, field):
    with pytest.raises(BadStart) as caught:
        world.policy(start)
    assert caught.value.field_name == field


@pytest.mark.parametrize(
    "options",
    [{"fps": 4}, {"fps": 1000}, {"fps": "fast"}, {"decode_threads": 0}, {"decode_precision": "x"}],
)
def test_bad_options_are_refused_before_anything_is_loaded(options):
    with pytest.raises(BadWorldOptions) as caught:
        load_world("tiny", options)
    assert caught.value.option in options


def test_the_frame_rate_is_the_highest_that_leaves_time():
    def rate(seconds: float) -> float:
        return best_rate(Speed(seconds, seconds))

    # 0.45 of a chunk: 56 ms at 32 fps, 75 ms at 24, 112 ms at 16
    assert [rate(ms / 1e3) for ms in (30, 56, 57, 75, 76, 112, 113, 900)] == [
        32, 32, 24, 24, 16, 16, 16, 16,
    ]  # fmt: skip


def test_the_slow_chunks_count():
    speed = Speed.of([0.010] * 18 + [0.100] * 2)
    assert speed.median_seconds == 0.010
    assert speed.p95_seconds == 0.100


def test_warm_up_measures_and_settles_the_frame_rate():
    world, told = make_world(), list[float]()
    world.warm_up(lambda stage, share: told.append(share))
    assert world.info.fps in (32, 24, 16)
    assert world.info.chunk_compute_seconds > 0
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_chosen_frame_rate_survives_warm_up():
    world = make_world(fps=30)
    world.warm_up(lambda stage, share: None)
    assert world.info.fps == 30
    assert world.policy(SessionStart()).openings()["denoise"].fps == 30


def test_the_start_picture_is_encoded_once(world):
    policy = world.policy(SessionStart())
    assert policy.conditions(0)["condition_request"].picture is not None
    assert policy.conditions(1)["condition_request"].picture is None
    assert set(policy.bind(0, ControlSnapshot())) == {"control"}


def test_each_actor_keeps_its_own_number_of_torch_threads():
    seen: dict[str, list[int]] = {}
    entered, checked = threading.Barrier(3), threading.Barrier(3)

    def actor(name: str, threads: int) -> None:
        with torch_thread(threads):
            entered.wait(10)
            torch.ones(200, 200) @ torch.ones(200, 200)
            seen[name] = [threads, torch.get_num_threads()]
            checked.wait(10)

    before = torch.get_num_threads()
    actors = [threading.Thread(target=actor, args=(f"actor {n}", n)) for n in (1, 2, 3)]
    for thread in actors:
        thread.start()
    for thread in actors:
        thread.join(20)
    assert seen == {f"actor {n}": [n, n] for n in (1, 2, 3)}
    assert torch.get_num_threads() == before


def test_playing_needs_neither_the_renderer_nor_numba():
    script = """
import sys
from pipeline.registry import load_world
from pipeline.service import SessionStart
from tests.fakes.player import FakePlayer, holding
player = FakePlayer(load_world("tiny", {"fps": 16}), SessionStart(start_point="hut"))
assert player.play([holding("KeyW")] * 3).std() > 20
foreign = [name for name in sys.modules if name.split(".")[0] in ("training", "numba", "server")]
assert not foreign, foreign
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
