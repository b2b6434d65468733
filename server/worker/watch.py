"""What runs in the stages right now, and for how long: a hanging invocation is found from outside.

A thread that is stuck in model code cannot be ended; all that can be done is to notice, tell the
players, and end the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from pipeline.service import Emit, StageExecutor


@dataclass(frozen=True)
class Invocation:
    """One call of an executor that has not returned yet."""

    stage: str
    what: str  # "open", "run" or "release"
    started: float


class WatchedExecutor:
    """A `StageExecutor` that notes when its calls begin and end. Adds no other behaviour."""

    def __init__(self, stage: str, executor: StageExecutor, clock: Callable[[], float]) -> None:
        self._stage = stage
        self._executor = executor
        self._clock = clock
        self.current: Invocation | None = None  # written by the actor's thread, read by the loop
        self.busy_seconds = 0.0
        self.calls: Counter[str] = Counter()

    def entered(self) -> AbstractContextManager[object]:
        """As the executor's."""
        return self._executor.entered()

    def open(self, start: object) -> object:
        """As the executor's."""
        with self._noted("open"):
            return self._executor.open(start)

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        """As the executor's."""
        with self._noted("run"):
            return self._executor.run(state, inputs, emit)

    def release(self, state: object) -> None:
        """As the executor's."""
        with self._noted("release"):
            self._executor.release(state)

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        started = self._clock()
        self.current = Invocation(self._stage, what, started)
        try:
            yield
        finally:
            self.current = None
            self.calls[what] += 1
            self.busy_seconds += self._clock() - started


def overdue(
    executors: Mapping[str, WatchedExecutor], now: float, deadline_seconds: float
) -> Invocation | None:
    """An invocation that has been running for longer than it may."""
    for executor in executors.values():
        invocation = executor.current
        if invocation is not None and now - invocation.started > deadline_seconds:
            return invocation
    return None
