"""A stage that only takes time: what the benchmarks of the scheduler put in place of a model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from pipeline.service import Emit


class EmulatedStage:
    """Takes `seconds` a sequence, without the processor, as a model on a GPU does."""

    def __init__(self, outputs: tuple[str, ...], seconds: float) -> None:
        self._outputs = outputs
        self._seconds = seconds

    def entered(self) -> AbstractContextManager[object]:
        """Nothing lasts."""
        return nullcontext()

    def open(self, start: object) -> object:
        """The state is the share of `seconds` that this session takes; 1 unless given."""
        return 1.0 if start is None else start

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        """Take the time."""
        assert isinstance(state, float)
        time.sleep(self._seconds * state)
        return dict.fromkeys(self._outputs, 0), state

    def release(self, state: object) -> None:
        """Nothing to give back."""
