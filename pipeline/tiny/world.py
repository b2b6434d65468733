"""The embedded world as the service sees it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.options import require
from pipeline.service import (
    BadStart,
    ControlSnapshot,
    Idle,
    Progress,
    SessionPolicy,
    SessionStart,
    StageExecutor,
    WorldInfo,
)
from pipeline.streaming.spec import (
    ReleaseOn,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingStageSpec,
)
from pipeline.tiny import camera
from pipeline.tiny.controls import AXES, CONTROLS, Steering
from pipeline.tiny.decoder import FastDecoder, multiplies_bfloat16
from pipeline.tiny.networks import FRAMES_PER_LATENT
from pipeline.tiny.renderer import Renderer
from pipeline.tiny.stages import DecodeStage, DenoiseStage, EncodeStage
from pipeline.tiny.starts import FIRST, STARTS, picture_of, start_points
from pipeline.tiny.states import Condition, ConditionRequest, DecodeState, DenoiseState, Latent
from pipeline.tiny.warm_up import CHUNKS, RATES, UNCOUNTED, Speed, Walker, best_rate
from pipeline.tiny.weights import PACKAGED, load_weights

ABOUT: Final = (
    "A small neural network renders one known place, a savanna at sunset, live on this machine's "
    "processor; it does not invent places."
)
SPEC: Final = StreamingPipelineSpec(
    name="tiny",
    stages=(
        StreamingStageSpec("encode", ("condition_request",), ("condition",)),
        StreamingStageSpec("denoise", ("condition", "control"), ("latent",)),
        StreamingStageSpec("decode", ("latent",), ("frames",)),
    ),
    edges=(
        StreamingEdgeSpec("condition_request", ConditionRequest, release_on=ReleaseOn.ADMIT),
        StreamingEdgeSpec("condition", Condition),
        StreamingEdgeSpec("control", Steering, release_on=ReleaseOn.ADMIT),
        StreamingEdgeSpec("latent", Latent),
        StreamingEdgeSpec("frames", np.ndarray, streaming=True, max_pieces=FRAMES_PER_LATENT),
    ),
    latency_anchor_artifact="control",
)


class TinyPolicy:
    """One session of the embedded world. The veldt lives on by itself: grass, birds, water."""

    idle = Idle.CONTINUE

    def __init__(self, denoise: DenoiseState, picture: NDArray[np.uint8]) -> None:
        """Begin at that state, and with that picture, which dissolves into the world."""
        self._denoise, self._picture = denoise, picture

    def openings(self) -> Mapping[str, object]:
        """Place the player; decode begins with nothing to dissolve."""
        return {"denoise": self._denoise, "decode": DecodeState(self._denoise.fps)}

    def conditions(self, index: int) -> Mapping[str, object]:
        """Ask for the start latent with chunk 0."""
        picture = self._picture if index == 0 else None
        return {"condition_request": ConditionRequest(picture)}

    def bind(self, index: int, control: ControlSnapshot) -> Mapping[str, object]:
        """Translate keys, taps and axes."""
        return {"control": Steering.of(control)}

    def settled(self, index: int) -> bool:
        """Never: the world moves on its own."""
        return False


class TinyWorld:
    """The loaded weights with their three stages."""

    spec = SPEC
    exclusive_stage = "denoise"
    frames_artifact = "frames"

    def __init__(
        self,
        weights: Path,
        fps: float | None,
        precision: torch.dtype,
        threads: tuple[int, int, int],
    ) -> None:
        """Load and check the weights; raises `BadWeights`."""
        veldt, self.provenance = load_weights(weights)
        self._fps = fps
        self._info = WorldInfo(
            name="tiny",
            title="The veldt",
            about=ABOUT,
            width=camera.WIDTH,
            height=camera.HEIGHT,
            fps=fps or RATES[-1],
            frames_per_chunk=FRAMES_PER_LATENT,
            start_points=start_points(),
            controls=CONTROLS,
            axes=AXES,
        )
        self._pictures = {
            point.name: picture_of(point.picture) for point in self._info.start_points
        }
        encode, denoise, decode = threads
        self._stages: dict[str, StageExecutor] = {
            "encode": EncodeStage(veldt.encoder, encode),
            "denoise": DenoiseStage(Renderer(veldt.scene), denoise),
            "decode": DecodeStage(FastDecoder(veldt.decoder, precision), decode),
        }

    @property
    def info(self) -> WorldInfo:
        """Capabilities; the frame rate is settled by `warm_up`."""
        return self._info

    def stages(self) -> Mapping[str, StageExecutor]:
        """Return the executors in the order in which sessions open them."""
        return dict(self._stages)

    def warm_up(self, progress: Progress) -> None:
        """Walk around until the speed is known, and settle the frame rate by it.

        Runs on a thread of its own, so that the caller's torch settings stay as they are.
        """
        walker = Walker(self._stages, self.policy(SessionStart()))
        seconds = []
        with ThreadPoolExecutor(1, "tiny-warm-up") as pool, ExitStack() as entered:
            pool.submit(entered.enter_context, self._stages["denoise"].entered()).result()
            try:
                for number in range(UNCOUNTED + CHUNKS):
                    progress("warming up", number / (UNCOUNTED + CHUNKS))
                    seconds.append(pool.submit(walker.chunk).result())
            finally:
                pool.submit(entered.close).result()
        walker.close()
        speed = Speed.of(seconds[UNCOUNTED:])
        fps = self._fps or best_rate(speed)
        self._info = replace(self._info, fps=fps, chunk_compute_seconds=speed.median_seconds)
        progress("warming up", 1.0)

    def policy(self, start: SessionStart) -> SessionPolicy:
        """Return the policy of a new session, or raise `BadStart`."""
        name = FIRST if start.start_point is None else start.start_point
        if name not in STARTS:
            raise BadStart("start_point", f"The veldt has no start point {name!r}.")
        if start.prompt is not None:
            raise BadStart("prompt", "The veldt takes no prompt: it is one known place.")
        picture = self._pictures[name] if start.image is None else picture_of(start.image)
        return TinyPolicy(DenoiseState(STARTS[name][1], self._info.fps), picture)

    def close(self) -> None:
        """Let the weights go."""
        self._stages.clear()


def make_world(
    fps: float | None = None,
    weights: str | None = None,
    decode_precision: str = "auto",
    encode_threads: int = 1,
    denoise_threads: int = 1,
    decode_threads: int = 1,
) -> TinyWorld:
    """Load the embedded world.

    Args:
        fps: frames per second; by default the highest of 32, 24 and 16 that warm-up allows.
        weights: a safetensors file written by `training.tiny`; by default the packaged one.
        decode_precision: "float32", "bfloat16", or "auto": what this processor is made for.
        encode_threads: torch threads of the stage, as the two below.
        denoise_threads: likewise.
        decode_threads: likewise.
    """
    if fps is not None:
        require("fps", fps, 8 <= fps <= 60, "8 to 60")
    threads = (encode_threads, denoise_threads, decode_threads)
    for stage, count in zip(("encode", "denoise", "decode"), threads, strict=True):
        require(f"{stage}_threads", count, 1 <= count <= 64, "1 to 64")
    precisions = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "auto": torch.bfloat16 if multiplies_bfloat16() else torch.float32,
    }
    known = decode_precision in precisions
    require("decode_precision", decode_precision, known, "auto, float32 or bfloat16")
    path = PACKAGED if weights is None else Path(weights)
    return TinyWorld(path, fps, precisions[decode_precision], threads)
