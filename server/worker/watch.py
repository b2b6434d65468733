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


class HangWatch:
    """Looks at the executors now and then, and says which invocation has been seen for too long.

    Time is counted in looks: a process that was stopped itself, or a laptop that slept, has not
    looked meanwhile and takes nothing for hung.
    """

    def __init__(
        self,
        executors: Mapping[str, WatchedExecutor],
        deadline_seconds: float,
        look_seconds: float,
    ) -> None:
        """`look_seconds` lie between two looks."""
        self._executors = executors
        self._deadline = deadline_seconds
        self._look = look_seconds
        self._seen: dict[str, tuple[Invocation, float]] = {}

    def look(self) -> Invocation | None:
        """An invocation that has been running for longer than it may."""
        for stage, executor in self._executors.items():
            current = executor.current
            if current is None:
                self._seen.pop(stage, None)
                continue
            before, seconds = self._seen.get(stage, (None, 0.0))
            seconds = seconds + self._look if before is current else 0.0
            if seconds > self._deadline:
                return current
            self._seen[stage] = (current, seconds)
        return None
