"""Outputs of one session's pipeline on their way to its publisher, converted off the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from pipeline.streaming.messages import StreamOutput
from server.media.i420 import rgb_to_i420
from server.worker.loaded import LoadedWorker, Picture


def convert(piece: NDArray[np.uint8]) -> list[Picture]:
    """Frames [n, height, width, 3] as I420, in order. Blocking."""
    return [rgb_to_i420(frame) for frame in piece]


async def feed(
    session: str,
    worker: LoadedWorker,
    on_pictures: Callable[[StreamOutput, list[Picture]], None],
    on_chunk: Callable[[StreamOutput], None],
) -> None:
    """Take outputs until the session is closed; raises `SessionFailed` when it cannot go on.

    An output's place is free again as soon as it is taken here, whatever the players do: frames
    that are here are bounded by the two chunks that may be under way.
    """
    loop = asyncio.get_running_loop()
    async for output in worker.orchestrator.outputs(session):
        if output.artifact != worker.world.frames_artifact:
            continue
        if output.value is not None:
            piece = cast(NDArray[np.uint8], output.value)
            on_pictures(output, await loop.run_in_executor(worker.converters, convert, piece))
        if output.last:
            on_chunk(output)
