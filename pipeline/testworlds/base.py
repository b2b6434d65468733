"""A whole three-stage world whose pictures a painter draws; the test worlds are made from it.

encode (condition_request → condition) → denoise (condition, control → latent) → decode (latent →
frames). A "latent" here is what the painter needs to know of a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipeline.options import require
from pipeline.service import (
    BadStart,
    Control,
    ControlSnapshot,
    Emit,
    Idle,
    Progress,
    SessionPolicy,
    SessionStart,
    StageExecutor,
    StartPoint,
    WorldInfo,
)
from pipeline.streaming.spec import (
    ReleaseOn,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingStageSpec,
)

Picture = NDArray[np.uint8]
STAGES: Final = ("encode", "denoise", "decode")
CONTROLS: Final = (
    Control("KeyW", "Up", ("ArrowUp",)),
    Control("KeyA", "Left", ("ArrowLeft",)),
    Control("KeyS", "Down", ("ArrowDown",)),
    Control("KeyD", "Right", ("ArrowRight",)),
)
AXES: Final = ("forward", "strafe")


@dataclass(frozen=True)
class Format:
    """The shape of a drawn world's stream."""

    width: int = 256
    height: int = 160
    fps: float = 16.0
    frames_per_chunk: int = 4

    def __post_init__(self) -> None:
        """Refuse what cannot be streamed."""
        for option, size, least in (("width", self.width, 128), ("height", self.height, 64)):
            fits = least <= size <= 4096 and size % 16 == 0
            require(option, size, fits, f"a multiple of 16 from {least} to 4096")
        require("fps", self.fps, 0 < self.fps <= 240, "above 0 and at most 240")
        frames = self.frames_per_chunk
        require("frames_per_chunk", frames, 1 <= frames <= 64, "1 to 64")


@dataclass(frozen=True)
class Walk:
    """A session's state in denoise: where the player is, which key-downs were applied so far."""

    start_point: str
    x: float = 0.0  # in picture widths
    y: float = 0.0
    presses: int = 0
    prompt: str | None = None


@dataclass(frozen=True)
class DrawnChunk:
    """What the painter draws from: one chunk's control, and the walk before and after it."""

    index: int
    control: ControlSnapshot
    before: Walk
    after: Walk


class Painter(Protocol):
    """Draws one picture."""

    def __call__(self, shape: Format, chunk: DrawnChunk, frame: int) -> Picture:
        """Return frame `frame` (counted from the session's start) as uint8 [height, width, 3]."""
        ...


Work = Callable[[int], None]  # what a stage does besides, given the chunk index
SECONDS_ACROSS: Final = 2.0  # walking from one side of the picture to the other


def still(index: int) -> None:
    """Do nothing besides."""


def walked(walk: Walk, control: ControlSnapshot, seconds: float) -> Walk:
    """Return the walk after a chunk: held keys move for its length, a tap for an eighth second."""

    def push(control_key: Control) -> float:
        codes = (control_key.code, *control_key.aliases)
        taps = sum(control.presses.get(code, 0) for code in codes)
        if any(code in control.held for code in codes):
            return seconds
        return 0.125 * taps

    up, left, down, right = (push(key) for key in CONTROLS)
    ahead = up - down + seconds * control.axes.get("forward", 0.0)
    aside = right - left + seconds * control.axes.get("strafe", 0.0)
    return replace(
        walk,
        x=(walk.x + aside / SECONDS_ACROSS) % 1.0,
        y=(walk.y - ahead / SECONDS_ACROSS) % 1.0,
        presses=walk.presses + sum(control.presses.values()),
        prompt=walk.prompt if control.prompt is None else control.prompt,
    )


class DrawnStage:
    """One stage of a drawn world; `make` turns (state, inputs, emit) into (outputs, next state)."""

    def __init__(
        self,
        work: Work,
        make: Callable[[object, Mapping[str, object], Emit], tuple[Mapping[str, object], object]],
    ) -> None:
        """Do `work(index)` before each chunk."""
        self._work, self._make = work, make

    def entered(self) -> AbstractContextManager[object]:
        """Need nothing on the actor's thread."""
        return nullcontext()

    def open(self, start: object) -> object:
        """Pair what the policy gave with the chunk counter."""
        return 0, start

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        """Do one chunk."""
        assert isinstance(state, tuple)
        index, inner = state
        self._work(index)
        outputs, inner = self._make(inner, inputs, emit)
        return outputs, (index + 1, inner)

    def release(self, state: object) -> None:
        """Hold nothing that would have to be given back."""


@dataclass
class DrawnPolicy:
    """A drawn session: conditions are bare chunk numbers, controls go through as they are."""

    start: Walk
    idle: Idle

    def openings(self) -> Mapping[str, object]:
        """Start walking where the start point says."""
        return {"denoise": self.start}

    def conditions(self, index: int) -> Mapping[str, object]:
        """Ask for the condition of chunk `index`."""
        return {"condition_request": index}

    def bind(self, index: int, control: ControlSnapshot) -> Mapping[str, object]:
        """Hand the control through."""
        return {"control": control}

    def settled(self, index: int) -> bool:
        """Stand still as soon as there is no input."""
        return True


@dataclass(frozen=True)
class Sketch:
    """What makes one drawn world different from another."""

    name: str
    title: str
    about: str
    painter: Painter
    shape: Format = Format()
    idle: Idle = Idle.CONTINUE
    prompt: bool = False
    starts: tuple[tuple[str, str], ...] = (("first", "First"), ("second", "Second"))


class DrawnWorld:
    """A `World` made of a sketch, with `work` for some of its stages."""

    exclusive_stage = "denoise"
    frames_artifact = "frames"

    def __init__(self, sketch: Sketch, work: Mapping[str, Work] | None = None) -> None:
        """Build the spec, and the start pictures with the painter itself."""
        self._sketch, self._work = sketch, dict(work or {})
        shape = sketch.shape
        self.spec = three_stage_spec(sketch.name, shape.frames_per_chunk)
        self._info = WorldInfo(
            name=sketch.name,
            title=sketch.title,
            about=sketch.about,
            width=shape.width,
            height=shape.height,
            fps=shape.fps,
            frames_per_chunk=shape.frames_per_chunk,
            start_points=tuple(
                StartPoint(name, title, self._poster(name)) for name, title in sketch.starts
            ),
            controls=CONTROLS,
            axes=AXES,
            prompt=sketch.prompt,
        )

    @property
    def info(self) -> WorldInfo:
        """Capabilities; nothing about them has to be measured."""
        return self._info

    def stages(self) -> Mapping[str, StageExecutor]:
        """Return the three stages in the order in which sessions open them."""
        makes = (self._encode, self._denoise, self._decode)
        return {
            stage: DrawnStage(self._work.get(stage, still), make)
            for stage, make in zip(STAGES, makes, strict=True)
        }

    def warm_up(self, progress: Progress) -> None:
        """Have nothing to warm up."""
        progress("warming up", 1.0)

    def policy(self, start: SessionStart) -> SessionPolicy:
        """Return the policy of a new session, or raise `BadStart`."""
        names = [name for name, _ in self._sketch.starts]
        place = names[0] if start.start_point is None else start.start_point
        if place not in names:
            raise BadStart("start_point", f"This world has no start point {place!r}.")
        if start.image is not None:
            raise BadStart("image", "This world does not start from an image.")
        if start.prompt is not None and not self._sketch.prompt:
            raise BadStart("prompt", "This world takes no prompt.")
        return DrawnPolicy(self._start(place, start.prompt), self._sketch.idle)

    def close(self) -> None:
        """Hold nothing."""

    # ------------------------------------------------------------------ stages
    def _encode(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        return {"condition": inputs["condition_request"]}, state

    def _denoise(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        index, control = inputs["condition"], inputs["control"]
        assert isinstance(state, Walk)
        assert isinstance(index, int)
        assert isinstance(control, ControlSnapshot)
        after = walked(state, control, self._info.chunk_seconds)
        return {"latent": DrawnChunk(index, control, state, after)}, after

    def _decode(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        chunk, shape = inputs["latent"], self._sketch.shape
        assert isinstance(chunk, DrawnChunk)
        first = chunk.index * shape.frames_per_chunk
        for frame in range(first, first + shape.frames_per_chunk):
            emit("frames", self._sketch.painter(shape, chunk, frame)[None])
        return {}, state

    # ------------------------------------------------------------------ starts
    def _start(self, place: str, prompt: str | None) -> Walk:
        names = [name for name, _ in self._sketch.starts]
        return Walk(place, x=names.index(place) / len(names), prompt=prompt)

    def _poster(self, place: str) -> bytes:
        walk = self._start(place, None)
        chunk = DrawnChunk(0, ControlSnapshot(), walk, walk)
        file = BytesIO()
        Image.fromarray(self._sketch.painter(self._sketch.shape, chunk, 0)).save(file, "PNG")
        return file.getvalue()


def three_stage_spec(name: str, frames_per_chunk: int) -> StreamingPipelineSpec:
    """Return the spec of encode → denoise → decode with frames that leave one by one."""
    return StreamingPipelineSpec(
        name=name,
        stages=(
            StreamingStageSpec("encode", ("condition_request",), ("condition",)),
            StreamingStageSpec("denoise", ("condition", "control"), ("latent",)),
            StreamingStageSpec("decode", ("latent",), ("frames",)),
        ),
        edges=(
            StreamingEdgeSpec("condition_request", release_on=ReleaseOn.ADMIT),
            StreamingEdgeSpec("condition"),
            StreamingEdgeSpec("control", ControlSnapshot, release_on=ReleaseOn.ADMIT),
            StreamingEdgeSpec("latent", DrawnChunk),
            StreamingEdgeSpec("frames", np.ndarray, streaming=True, max_pieces=frames_per_chunk),
        ),
        latency_anchor_artifact="control",
    )


def stripes(shape: Format, chunk: DrawnChunk, frame: int, top: int = 0) -> Picture:
    """Return soft colour stripes that drift with the frames, and a dot where the player is."""
    height, width = shape.height - top, shape.width
    column = (np.arange(width) + 2 * frame) * (2 * math.pi / 64)
    row = np.arange(height)[:, None] * (2 * math.pi / 96)
    picture = np.empty((height, width, 3), np.uint8)
    for channel, turn in enumerate((0.0, 2.1, 4.2)):
        picture[..., channel] = 128 + 50 * np.sin(column + turn) + 50 * np.sin(row - turn)
    done = (frame % shape.frames_per_chunk + 1) / shape.frames_per_chunk
    dx = (chunk.after.x - chunk.before.x + 0.5) % 1 - 0.5
    dy = (chunk.after.y - chunk.before.y + 0.5) % 1 - 0.5
    x = int((chunk.before.x + done * dx) % 1 * (width - 12))
    y = int((chunk.before.y + done * dy) % 1 * (height - 12))
    picture[y : y + 12, x : x + 12] = 255
    return picture
