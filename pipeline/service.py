"""What the author of a world writes, and all that the service knows of a world.

A world is a pipeline spec, one executor a stage, and one `SessionPolicy` a session. Scheduling,
leases, pacing and transports are the service's business; nothing here imports them. All values are
frozen; tensors pass through as opaque objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pipeline.streaming.spec import StreamingPipelineSpec

Progress = Callable[[str, float], None]  # (what is being done, share done in 0..1)
Emit = Callable[[str, object], None]  # (streaming artifact, piece); never blocks


class StageExecutor(Protocol):
    """The work of one stage. Every call comes from the one thread of the stage's actor.

    A session's state is whatever `open` returns; it is handed in and the next one handed back, so
    that the actor is its only owner. Executors hold weights, never sessions.
    """

    def entered(self) -> AbstractContextManager[object]:
        """A context that lasts as long as the actor's thread, such as `torch.inference_mode()`."""
        ...

    def open(self, start: object) -> object:
        """Build a session's state from what `SessionPolicy.openings` gave for this stage."""
        ...

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        """Do one sequence: its inputs by artifact → its non-streaming outputs, the next state.

        Pieces of streaming outputs leave through `emit` as soon as they are ready. Whatever is
        raised fails this session only.
        """
        ...

    def release(self, state: object) -> None:
        """Give back what the state holds.

        Called once for every state that `open` built; again only where it raised.
        """
        ...


class Idle(StrEnum):
    """When a chunk is wanted although the player does nothing."""

    CONTINUE = "continue"  # the world lives on by itself
    HOLD = "hold"  # the last frame stands until there is input
    SETTLE = "settle"  # until `SessionPolicy.settled`, then as HOLD


@dataclass(frozen=True)
class ControlSnapshot:
    """What the player does during one chunk, read at its grant and immutable from then on."""

    held: frozenset[str] = frozenset()  # KeyboardEvent.code
    presses: Mapping[str, int] = field(default_factory=dict)  # key-downs since the last chunk
    axes: Mapping[str, float] = field(default_factory=dict)  # forward, strafe, yaw, pitch: -1..1
    prompt: str | None = None  # the prompt in force, if the world takes one
    receipt: int = 0  # connection nonce << 32 | seq; 0 = none

    @property
    def active(self) -> bool:
        """Whether there is any input in it."""
        return bool(self.held or self.presses or any(self.axes.values()))


@dataclass(frozen=True)
class SessionStart:
    """What a session was asked to start from; checked against the world's capabilities before."""

    start_point: str | None = None
    prompt: str | None = None
    image: bytes | None = None
    seed: int = 0


class SessionPolicy(Protocol):
    """One session's translation between the service and the stages. Pure, quick, single-threaded.

    A reset makes a new policy from the same `SessionStart`.
    """

    idle: Idle

    def openings(self) -> Mapping[str, object]:
        """The `start` of every stage's `open`, by stage name; stages left out get None."""
        ...

    def conditions(self, index: int) -> Mapping[str, object]:
        """Artifacts of chunk `index` that do not depend on control: prefetched, two chunks ahead.

        Empty if the world has none.
        """
        ...

    def bind(self, index: int, control: ControlSnapshot) -> Mapping[str, object]:
        """The control artifacts of chunk `index`. Called once a chunk, in order, at its grant.

        Empty for a world without control artifacts (it then has to have conditions).
        """
        ...

    def settled(self, index: int) -> bool:
        """Whether after chunk `index` nothing moves any more without input (Idle.SETTLE)."""
        ...


@dataclass(frozen=True)
class StartPoint:
    """A place to begin, with its picture (PNG, as large as the world's frames)."""

    name: str
    title: str
    picture: bytes = field(repr=False)


@dataclass(frozen=True)
class Control:
    """One key of the legend: its `KeyboardEvent.code`, what it does, and other codes that do it."""

    code: str
    label: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorldInfo:
    """Capabilities and figures of a loaded world; `fps` is settled by its warm-up."""

    name: str
    title: str
    about: str  # one honest sentence for the player
    width: int
    height: int
    fps: float
    frames_per_chunk: int
    start_points: tuple[StartPoint, ...] = ()
    controls: tuple[Control, ...] = ()
    axes: tuple[str, ...] = ()
    prompt: bool = False
    image: bool = False
    chunk_compute_seconds: float = 0.0  # measured at warm-up; 0 = not measured

    @property
    def chunk_seconds(self) -> float:
        """How long one chunk plays."""
        return self.frames_per_chunk / self.fps


class World(Protocol):
    """One loaded model. `frames_artifact` pieces are uint8 RGB arrays [n, height, width, 3]."""

    spec: StreamingPipelineSpec
    exclusive_stage: str  # what the execution lease protects
    frames_artifact: str  # the terminal artifact that carries pictures

    @property
    def info(self) -> WorldInfo:
        """Capabilities; final once `warm_up` has returned."""
        ...

    def stages(self) -> Mapping[str, StageExecutor]:
        """One executor for each stage of the spec, in the order in which sessions open them."""
        ...

    def warm_up(self, progress: Progress) -> None:
        """Run the model until its speed is steady and settle `info`; blocks, before any session."""
        ...

    def policy(self, start: SessionStart) -> SessionPolicy:
        """The policy of a new session; raises `BadStart` for what the world cannot start from."""
        ...

    def close(self) -> None:
        """Give the weights back. Called once, after every session has been released."""
        ...


class BadStart(ValueError):
    """A session cannot start from what it was given."""

    code = "bad_start"

    def __init__(self, field_name: str, message: str) -> None:
        """Name the field and say in one sentence what is wrong with it."""
        super().__init__(message)
        self.field_name = field_name
