"""A worker without a process of its own, behind the same port: for unit tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from pipeline.registry import load_world
from pipeline.streaming.trace import TraceRecorder
from server.protocol.worker import (
    Shutdown,
    WorkerConfig,
    WorkerEvent,
    WorkerGone,
    WorkerReply,
    WorkerRequest,
)
from server.worker.loaded import MakeTransport
from server.worker.runtime import LoadWorld, WorkerRuntime

CLOSE_SECONDS = 5.0


class InProcessWorker:
    """A `WorkerPort` around a `WorkerRuntime` on the caller's loop. `start` it before anything."""

    def __init__(
        self,
        config: WorkerConfig,
        make_transport: MakeTransport,
        *,
        load: LoadWorld = load_world,
        clock: Callable[[], float] = time.monotonic,
        trace: TraceRecorder | None = None,
    ) -> None:
        self._config = config
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self.runtime = WorkerRuntime(
            config, make_transport, self._events.put_nowait, load=load, clock=clock, trace=trace
        )
        self._closed = False

    @property
    def worker_id(self) -> str:
        """Stable for the life of this worker."""
        return self._config.worker_id

    async def start(self) -> bool:
        """Load the world; False where that failed (an event says why)."""
        return await self.runtime.start()

    async def call(self, request: WorkerRequest) -> WorkerReply:
        """Ask and wait for the reply; raises `WorkerGone` once closed."""
        if self._closed:
            raise WorkerGone("the worker is closed")
        return await self.runtime.handle(request)

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Everything the worker reports, in order; ends when the worker is closed. One reader."""
        while (event := await self._events.get()) is not None:
            yield event

    async def aclose(self) -> None:
        """Close every session and the world. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self.runtime.handle(Shutdown(seconds=CLOSE_SECONDS))
        await self.runtime.aclose(CLOSE_SECONDS)
        self._events.put_nowait(None)
