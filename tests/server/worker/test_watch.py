"""Hanging invocations are found, and nothing else is taken for one."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import pytest

from server.worker.watch import HangWatch, WatchedExecutor


class FakeExecutor:
    """Runs until it is let go."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def entered(self):
        return nullcontext()

    def open(self, start):
        return start

    def run(self, state, inputs, emit):
        self.began.set()
        self.go.wait(10)
        return {}, state

    def release(self, state):
        raise OSError("no")


@pytest.fixture
def stage():
    inner = FakeExecutor()
    executor = WatchedExecutor("denoise", inner, clock=lambda: 0.0)
    watch = HangWatch({"denoise": executor}, deadline_seconds=3.0, look_seconds=1.0)
    return inner, executor, watch


def test_an_invocation_that_is_seen_for_too_long_hangs(stage):
    inner, executor, watch = stage
    thread = threading.Thread(target=executor.run, args=(None, {}, print))
    thread.start()
    inner.began.wait(10)
    assert [watch.look() for _ in range(4)] == [None] * 4
    hanging = watch.look()
    inner.go.set()
    thread.join()
    assert (hanging.stage, hanging.what) == ("denoise", "run")


def test_many_short_invocations_do_not_add_up(stage):
    inner, executor, watch = stage
    inner.go.set()
    for _ in range(10):
        executor.run(None, {}, print)
        assert watch.look() is None
    assert executor.calls["run"] == 10


def test_an_invocation_that_raises_is_over(stage):
    _, executor, watch = stage
    with pytest.raises(OSError, match="no"):
        executor.release(None)
    assert executor.current is None
    assert watch.look() is None
