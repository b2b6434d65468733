"""Owners of stage state: what the orchestrator talks to, and the two that live in this process.

Only the actor touches a session's state; only its one thread calls the executor. Results, faults
and the actor's own end all leave as events, in order.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

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
    Work,
)

if TYPE_CHECKING:
    from pipeline.service import StageExecutor

Sink = Callable[[ActorEvent], None]
Clock = Callable[[], float]


class StageActor(Protocol):
    """The sole owner of one stage's state, for all sessions. No method blocks, but `join`."""

    @property
    def stage(self) -> str:
        """The stage it works for."""
        ...

    def start(self, sink: Sink, clock: Clock) -> None:
        """Begin; `sink` takes every event, from any thread, and does not block. Called once."""
        ...

    def post(self, work: Work) -> None:
        """Ask for something. Called from any thread; every work but `Abort` is answered."""
        ...

    def stop(self) -> None:
        """End after what has been posted; the last event is `ActorStopped`. May be called again."""
        ...

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the end; whether it has come."""
        ...


class Workplace:
    """A stage's states and executor, and what to answer to each work. Used by one thread."""

    def __init__(self, executor: StageExecutor, sink: Sink, clock: Clock) -> None:
        self._executor = executor
        self._sink = sink
        self._clock = clock
        self._states: dict[str, object] = {}
        self._fences: dict[str, int] = {}  # session → oldest stamp that is still wanted

    def abort(self, work: Abort) -> None:
        """From now on older stamps are void. The one method that other threads call."""
        if work.session in self._states:
            self._fences[work.session] = work.stamp

    def do(self, work: Work) -> None:
        """Carry out `work` and answer it."""
        started = self._clock()
        try:
            answer = self._answer(work, started)
        except Exception as fault:  # the boundary: this session fails, the actor lives
            _let_go(fault)
            answer = Failed(work, fault, started, self._clock())
        self._sink(answer)

    def _answer(self, work: Work, started: float) -> ActorEvent:
        if isinstance(work, Run):
            return self._run(work, started)
        if isinstance(work, Open):
            self._states[work.session] = self._executor.open(work.take_start())
            return Opened(work, started, self._clock())
        assert isinstance(work, Release), work
        self._executor.release(self._states[work.session])
        del self._states[work.session]  # a state whose release raised stays, to be tried again
        self._fences.pop(work.session, None)
        return Released(work, started, self._clock())

    def _run(self, work: Run, started: float) -> ActorEvent:
        session, stamp, fences = work.session, work.stamp, self._fences
        if fences.get(session, stamp) > stamp:
            return Dropped(work)

        def emit(artifact: str, piece: object) -> None:
            if fences.get(session, stamp) <= stamp:
                self._sink(Emitted(work, artifact, piece))

        outputs, state = self._executor.run(self._states[session], work.take_inputs(), emit)
        self._states[session] = state
        if not isinstance(outputs, Mapping):
            raise TypeError(f"outputs are a {type(outputs).__name__}, not a mapping by artifact")
        return Completed(work, outputs, started, self._clock())


def _let_go(fault: BaseException) -> None:
    """Keep the lines of a fault's traceback, not the values in its frames: they may be huge."""
    link: BaseException | None = fault
    while link is not None:
        traceback.clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__


_STOP: Final = object()


class LocalStageActor:
    """A stage on one thread of this process.

    `threads_hook` is called first on that thread: it sets what the thread may use of the machine
    (`torch.set_num_threads`). Then the executor's `entered()` context lasts until the end.
    """

    def __init__(
        self,
        stage: str,
        executor: StageExecutor,
        *,
        threads_hook: Callable[[], object] | None = None,
    ) -> None:
        self._stage = stage
        self._executor = executor
        self._threads_hook = threads_hook
        self._inbox: SimpleQueue[object] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._workplace: Workplace | None = None

    @property
    def stage(self) -> str:
        """The stage it works for."""
        return self._stage

    def start(self, sink: Sink, clock: Clock) -> None:
        """Start the thread. A second start raises RuntimeError."""
        if self._thread is not None:
            raise RuntimeError(f"the actor of {self._stage!r} was started before")
        self._workplace = workplace = Workplace(self._executor, sink, clock)
        # A handler that hangs must not keep the process alive once everything else has ended.
        self._thread = threading.Thread(
            target=self._live, args=(workplace, sink), name=f"stage-{self._stage}", daemon=True
        )
        self._thread.start()

    def post(self, work: Work) -> None:
        """Queue `work` for the thread; an `Abort` overtakes what is queued."""
        if isinstance(work, Abort):
            if self._workplace is not None:
                self._workplace.abort(work)
        else:
            self._inbox.put(work)

    def stop(self) -> None:
        """Let the thread end after what is queued."""
        self._inbox.put(_STOP)

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the thread to end."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _live(self, workplace: Workplace, sink: Sink) -> None:
        end = ActorStopped(self._stage)
        try:
            if self._threads_hook is not None:
                self._threads_hook()
            with self._executor.entered():
                sink(ActorStarted(self._stage))
                for work in iter(self._inbox.get, _STOP):
                    assert isinstance(work, Work)
                    workplace.do(work)
        except BaseException as fault:  # the thread ends either way; its owner is told why
            end = ActorStopped(self._stage, fault)
        sink(end)


class InlineStageActor:
    """A stage on whatever thread posts to it: for offline runs, simulations and measurements.

    What is posted while it works is done afterwards, so the stack stays as deep as the pipeline.
    """

    def __init__(self, stage: str, executor: StageExecutor) -> None:
        self._stage = stage
        self._executor = executor
        self._inbox: deque[Work] = deque()
        self._working = False
        self._stopped = False
        self._workplace: Workplace | None = None
        self._sink: Sink | None = None

    @property
    def stage(self) -> str:
        """The stage it works for."""
        return self._stage

    def start(self, sink: Sink, clock: Clock) -> None:
        """Be ready. The executor's `entered()` is left to the caller, whose thread it is."""
        self._workplace = Workplace(self._executor, sink, clock)
        self._sink = sink
        sink(ActorStarted(self._stage))

    def post(self, work: Work) -> None:
        """Do it now, or after what is being done now."""
        workplace = self._workplace
        assert workplace is not None, "post before start"
        if isinstance(work, Abort):
            workplace.abort(work)
            return
        self._inbox.append(work)
        if self._working:
            return
        self._working = True
        try:
            while self._inbox:
                workplace.do(self._inbox.popleft())
        finally:
            self._working = False

    def stop(self) -> None:
        """End."""
        if self._sink is not None and not self._stopped:
            self._stopped = True
            self._sink(ActorStopped(self._stage))

    def join(self, timeout: float) -> bool:
        """There is nothing to wait for."""
        return True
