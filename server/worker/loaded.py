"""A loaded world and what its sessions share."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from admission.load import WorkerLoad
from pipeline.service import World, WorldInfo
from pipeline.streaming.orchestrator import StreamingPipelineOrchestrator
from pipeline.streaming.spec import StreamingPipelineSpec
from server.media.i420 import rgb_to_i420
from server.transports.base import MediaTransport, TransportSink
from server.worker.lease import AsyncLease

MakeTransport = Callable[[str, TransportSink], MediaTransport]
Picture = NDArray[np.uint8]


class Undecoded:
    """Chunks that have left the exclusive stage and are not decoded yet, over all sessions."""

    def __init__(self) -> None:
        self._chunks: set[tuple[str, int]] = set()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._chunks)

    def denoised(self, session: str, index: int) -> None:
        """A chunk has left the exclusive stage."""
        self._chunks.add((session, index))

    def decoded(self, session: str, index: int) -> None:
        """A chunk has left the stage that makes frames."""
        self._chunks.discard((session, index))

    def forget(self, session: str) -> None:
        """A session begins again or ends."""
        self._chunks = {chunk for chunk in self._chunks if chunk[0] != session}


@dataclass(frozen=True)
class LoadedWorker:
    """One loaded world, its pipeline, and the one turn-taking of its sessions."""

    world: World
    info: WorldInfo
    orchestrator: StreamingPipelineOrchestrator
    lease: AsyncLease
    make_transport: MakeTransport
    converters: ThreadPoolExecutor
    clock: Callable[[], float]
    load: WorkerLoad
    playing: Callable[[], Collection[str]]  # sessions that make chunks now
    undecoded: Undecoded = field(default_factory=Undecoded)
    posters: dict[str | None, Picture] = field(default_factory=dict)

    @property
    def exclusive_stage(self) -> str:
        """What the lease protects."""
        return self.world.exclusive_stage

    @property
    def frames_stage(self) -> str:
        """The stage that makes frames."""
        return producer_of(self.world.spec, self.world.frames_artifact)

    @property
    def entries(self) -> frozenset[str]:
        """Artifacts that come from outside the pipeline."""
        return entries_of(self.world.spec)

    def period(self, session: str) -> float:
        """Predicted seconds between two chunks of `session`, as many as play now."""
        return self.load.period(session, self.playing())

    def poster(self, start_point: str | None) -> Picture:
        """The picture of a start point as I420, or an even grey where there is none. Blocking."""
        if start_point not in self.posters:
            points = self.info.start_points
            named = next((point for point in points if point.name == start_point), None)
            if named is None and start_point is None and points:
                named = points[0]
            if named is None:
                rgb = np.full((self.info.height, self.info.width, 3), 24, np.uint8)
            else:
                picture = Image.open(io.BytesIO(named.picture)).convert("RGB")
                rgb = np.asarray(picture.resize((self.info.width, self.info.height)))
            self.posters[start_point] = rgb_to_i420(rgb)
        return self.posters[start_point]


def producer_of(spec: StreamingPipelineSpec, artifact: str) -> str:
    """The stage that makes `artifact`."""
    return next(stage.name for stage in spec.stages if artifact in stage.outputs)


def entries_of(spec: StreamingPipelineSpec) -> frozenset[str]:
    """Artifacts that some stage takes and none makes."""
    taken = {artifact for stage in spec.stages for artifact in stage.inputs}
    made = {artifact for stage in spec.stages for artifact in stage.outputs}
    return frozenset(taken - made)
