"""Plays a world without scheduler or transport: chunk after chunk, on the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from pipeline.service import ControlSnapshot, SessionStart, World


class FakePlayer:
    """One session of a world, played in the test's own thread.

    `between` may replace a stage's state after each chunk: (stage, state) → state.
    """

    def __init__(self, world: World, start: SessionStart | None = None) -> None:
        self.world = world
        self.policy = world.policy(start or SessionStart())
        self.stages = dict(world.stages())
        openings = self.policy.openings()
        self.states = {name: stage.open(openings.get(name)) for name, stage in self.stages.items()}
        self.index = 0
        self.pieces: list[int] = []  # frames in each piece of the last chunk

    def chunk(self, control: ControlSnapshot | None = None) -> NDArray[np.uint8]:
        """Play one chunk; return its frames [n, H, W, 3]."""
        values = dict(self.policy.conditions(self.index))
        values |= self.policy.bind(self.index, control or ControlSnapshot())
        pieces: list[NDArray[np.uint8]] = []

        def emit(artifact: str, piece: object) -> None:
            assert artifact == self.world.frames_artifact
            assert isinstance(piece, np.ndarray)
            pieces.append(piece)

        for spec in self.world.spec.stages:
            with ExitStack() as entered:
                entered.enter_context(self.stages[spec.name].entered())
                inputs = {artifact: values[artifact] for artifact in spec.inputs}
                outputs, self.states[spec.name] = self.stages[spec.name].run(
                    self.states[spec.name], inputs, emit
                )
            values |= outputs
        self.index += 1
        self.pieces = [len(piece) for piece in pieces]
        return np.concatenate(pieces)

    def play(
        self,
        controls: Sequence[ControlSnapshot],
        between: Callable[[str, object], object] | None = None,
    ) -> NDArray[np.uint8]:
        """Play chunks; return all frames."""
        films = []
        for control in controls:
            films.append(self.chunk(control))
            if between is not None:
                self.states = {name: between(name, state) for name, state in self.states.items()}
        return np.concatenate(films)

    def close(self) -> None:
        """Release every state."""
        for name, stage in self.stages.items():
            stage.release(self.states[name])


def holding(*codes: str) -> ControlSnapshot:
    """Hold keys for one chunk."""
    return ControlSnapshot(held=frozenset(codes))
