from __future__ import annotations

import gc
import threading
import time
import traceback
import weakref
from contextlib import contextmanager
from queue import Queue

import pytest

from pipeline.streaming import InlineStageActor, LocalStageActor
from pipeline.streaming.messages import (
    Abort,
    ActorEvent,
    ActorStarted,
    ActorStopped,
    Completed,
    Dropped,
    Emitted,
    Failed,
    Open,
    Opened,
    Release,
    Released,
    Run,
)
from tests.fakes.stages import PIECES, FakeStage


class Started:
    """A local actor, and the events it says, in order."""

    def __init__(self, executor: object, **options) -> None:
        self.events: Queue[ActorEvent] = Queue()
        self.actor = LocalStageActor("s", executor, **options)
        self.actor.start(self.events.put, time.monotonic)

    def next(self, kind: type) -> ActorEvent:
        event = self.events.get(timeout=10)
        assert isinstance(event, kind), event
        return event

    def ask(self, work, kind: type) -> ActorEvent:
        self.actor.post(work)
        event = self.next(kind)
        assert event.work is work
        return event


@pytest.fixture
def begin():
    begun: list[Started] = []

    def start(executor: object, **options) -> Started:
        begun.append(Started(executor, **options))
        return begun[-1]

    yield start
    for started in begun:
        started.actor.stop()
        assert started.actor.join(10)


def run(sequence: int, inputs=None, stamp: int = 1) -> Run:
    return Run("s", "a", 0, stamp, sequence, {"x": 1} if inputs is None else inputs)


def opening(stamp: int = 1) -> Open:
    return Open("s", "a", 0, stamp, "a")


def test_work_is_answered_in_order_on_one_thread(begin):
    stage = FakeStage("s", ("out",), streams="frames")
    actor = begin(stage)
    actor.next(ActorStarted)
    opened = actor.ask(opening(), Opened)
    assert opened.started <= opened.ended
    first, second = run(0), run(1)
    actor.actor.post(first)
    actor.actor.post(second)
    for work in (first, second):
        for piece in range(PIECES):
            emitted = actor.next(Emitted)
            assert (emitted.work, emitted.artifact) == (work, "frames")
            assert emitted.piece[:3] == ("a", work.sequence, piece)
        completed = actor.next(Completed)
        assert completed.work is work
        assert completed.outputs == {"out": ("s", "a", work.sequence, {"x": 1})}
    actor.ask(Release("s", "a", 0, 1), Released)
    actor.actor.stop()
    assert actor.next(ActorStopped).fault is None
    assert len(stage.threads) == 1
    assert threading.get_ident() not in stage.threads
    assert stage.open_states == []


def test_the_hook_runs_first_and_the_context_lasts_as_long_as_the_thread(begin):
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        seen.append((what, threading.get_ident()))

    class Entered(FakeStage):
        @contextmanager
        def entered(self):
            note("enter")
            yield
            note("exit")

        def open(self, start: object) -> object:
            note("open")
            return super().open(start)

    actor = begin(Entered("s"), threads_hook=lambda: note("hook"))
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    actor.actor.stop()
    actor.next(ActorStopped)
    assert [what for what, _ in seen] == ["hook", "enter", "open", "exit"]
    assert len({thread for _, thread in seen}) == 1


def test_a_fault_leaves_the_state_as_it_was_and_the_actor_alive(begin):
    def meanwhile(session: str, sequence: int) -> None:
        if sequence == 0 and not told:
            told.append(sequence)
            raise ValueError("once")

    told: list[int] = []
    actor = begin(FakeStage("s", ("out",), meanwhile=meanwhile))
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    failed = actor.ask(run(0), Failed)
    assert str(failed.fault) == "once"
    lines = traceback.extract_tb(failed.fault.__traceback__)
    assert lines[-1].name == "meanwhile", "its traceback leads to the handler's line"
    assert actor.ask(run(0), Completed).outputs["out"][2] == 0


@pytest.mark.parametrize("returned", [None, ({"out": 1},), (["out"], None), 3])
def test_an_executor_that_returns_nonsense_is_a_fault(begin, returned):
    stage = FakeStage("s", ("out",))
    stage.run = lambda state, inputs, emit: returned
    actor = begin(stage)
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    assert isinstance(actor.ask(run(0), Failed).fault, TypeError | ValueError)


def test_work_for_a_session_without_state_is_a_fault(begin):
    actor = begin(FakeStage("s", ("out",)))
    actor.next(ActorStarted)
    assert isinstance(actor.ask(run(0), Failed).fault, KeyError)
    assert isinstance(actor.ask(Release("s", "a", 0, 1), Failed).fault, KeyError)


def test_void_work_is_not_run_and_its_pieces_are_dropped(begin):
    inside, go_on = threading.Event(), threading.Event()

    class Streaming(FakeStage):
        def run(self, state, inputs, emit):
            emit("frames", "before")
            inside.set()
            assert go_on.wait(10)
            emit("frames", "after")
            return {}, state

    stage = Streaming("s")
    actor = begin(stage)
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    running, queued = run(0), run(1)
    actor.actor.post(running)
    actor.actor.post(queued)
    assert inside.wait(10)
    actor.actor.post(Abort("s", "a", 1, stamp=2))
    go_on.set()
    assert actor.next(Emitted).piece == "before"
    assert actor.next(Completed).work is running
    assert actor.next(Dropped).work is queued
    fresh = run(0, stamp=2)
    actor.actor.post(fresh)
    assert [actor.next(Emitted).piece for _ in range(2)] == ["before", "after"]
    actor.next(Completed)


def test_an_abort_that_comes_too_late_does_not_touch_a_later_session(begin):
    actor = begin(FakeStage("s", ("out",)))
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    actor.ask(Release("s", "a", 0, 1), Released)
    actor.ask(opening(stamp=7), Opened)
    actor.actor.post(Abort("s", "a", 1, stamp=2))
    actor.ask(run(0, stamp=7), Completed)


class Heavy:
    """Stands for a tensor."""


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_keeps_an_input_alive_once_its_run_is_over(begin, fails):
    def meanwhile(session: str, sequence: int) -> None:
        if fails:
            raise ValueError("with a traceback")

    actor = begin(FakeStage("s", meanwhile=meanwhile))
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    heavy = Heavy()
    alive = weakref.ref(heavy)
    work = run(0, {"x": heavy})
    answer = actor.ask(work, Failed if fails else Completed)
    actor.ask(run(1, {}), Failed if fails else Completed)
    del heavy
    gc.collect()
    assert alive() is None
    assert answer.work is work, "work and answer are still there, the input is not"


def test_an_actor_that_dies_says_why(begin):
    def meanwhile(session: str, sequence: int) -> None:
        raise SystemExit("out")

    actor = begin(FakeStage("s", meanwhile=meanwhile))
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    actor.actor.post(run(0))
    assert isinstance(actor.next(ActorStopped).fault, SystemExit)
    assert actor.actor.join(10)


def test_join_is_bounded(begin):
    go_on = threading.Event()
    actor = begin(FakeStage("s", meanwhile=lambda session, sequence: go_on.wait(10)))
    actor.next(ActorStarted)
    actor.ask(opening(), Opened)
    actor.actor.post(run(0))
    actor.actor.stop()
    assert not actor.actor.join(0.05), "it came back before the end"
    go_on.set()


def test_starting_twice_is_refused(begin):
    actor = begin(FakeStage("s"))
    with pytest.raises(RuntimeError):
        actor.actor.start(actor.events.put, time.monotonic)


def test_an_inline_actor_does_later_what_is_posted_meanwhile():
    order: list[str] = []
    stage = FakeStage("s", ("out",))
    actor = InlineStageActor("s", stage)

    def sink(event: ActorEvent) -> None:
        if isinstance(event, Completed):
            order.append(f"{event.work.sequence} begins to end")
            if event.work.sequence == 0:
                actor.post(run(1))
            order.append(f"{event.work.sequence} ends")

    actor.start(sink, time.monotonic)
    actor.post(opening())
    actor.post(run(0))
    assert order == ["0 begins to end", "0 ends", "1 begins to end", "1 ends"]
    actor.post(Release("s", "a", 0, 1))
    actor.stop()
    actor.stop()
    assert actor.join(0)
    assert stage.open_states == []
