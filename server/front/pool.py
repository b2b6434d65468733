"""Workers that are kept alive: started, followed, and started again when they die."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from server.protocol.http import Readiness
from server.protocol.worker import (
    Fatal,
    Loading,
    Ready,
    Sample,
    SessionFact,
    Stats,
    WorkerGone,
    WorkerPort,
)

log = structlog.get_logger(__name__)

StartWorker = Callable[[], Awaitable[WorkerPort]]

FIRST_PAUSE_SECONDS: Final = 0.5  # before a dead worker is started again; doubles up to
LONGEST_PAUSE_SECONDS: Final = 30.0
STEADY_SECONDS: Final = 60.0  # a worker that was ready for this long starts over with the first
GOODBYE_SECONDS: Final = 10.0  # for `aclose` of a port, which has its own ladder


class PoolListener(Protocol):
    """What the owner of sessions wants to know of workers. Called on the loop; returns at once."""

    def worker_ready(self, worker: str, ready: Ready) -> None:
        """It takes sessions."""
        ...

    def worker_gone(self, worker: str) -> None:
        """It is dead; whatever ran on it is lost."""
        ...

    def session_fact(self, worker: str, fact: SessionFact) -> None:
        """Something has happened to a session on it."""
        ...

    def readiness_changed(self) -> None:
        """`WorkerPool.readiness` says something else now."""
        ...


def already_running(port: WorkerPort) -> StartWorker:
    """A worker that is there and cannot be had a second time: in-process workers of tests."""
    given = False

    async def start() -> WorkerPort:
        nonlocal given
        if given:
            raise WorkerGone("this worker cannot be started again")
        given = True
        return port

    return start


@dataclass
class KeptWorker:
    """One worker's place: whoever fills it now, and how that goes."""

    start: StartWorker
    port: WorkerPort | None = None
    ready: Ready | None = None  # of the worker that is there now
    stage: str = "starting the worker"
    progress: float | None = None
    fatal: Fatal | None = None  # why the last one could not work
    samples: tuple[Sample, ...] = ()
    draining: bool = False  # takes nobody new
    restarts: int = 0
    was_ready: bool = False  # ever
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class WorkerPool:
    """Every worker of this service."""

    def __init__(
        self,
        starts: Sequence[StartWorker],
        listener: PoolListener,
        *,
        first_pause_seconds: float | None = None,
    ) -> None:
        self._kept = [KeptWorker(start) for start in starts]
        self._listener = listener
        self._first_pause = first_pause_seconds or FIRST_PAUSE_SECONDS
        self.closing = False  # no worker is started again

    def begin(self) -> None:
        """Start them all."""
        for kept in self._kept:
            kept.task = asyncio.create_task(self._keep(kept))

    @property
    def kept(self) -> Sequence[KeptWorker]:
        """One for each worker, running or not."""
        return self._kept

    def port(self, worker: str) -> WorkerPort | None:
        """The way to a worker that is ready."""
        for kept in self._kept:
            if kept.port is not None and kept.ready is not None and kept.port.worker_id == worker:
                return kept.port
        return None

    def transport(self, worker: str) -> str:
        """How players reach a worker that is ready."""
        for kept in self._kept:
            if kept.port is not None and kept.ready is not None and kept.port.worker_id == worker:
                return kept.ready.transport
        raise WorkerGone(f"worker {worker} is gone")

    def readiness(self) -> Readiness:
        """Ready as soon as one is; else what the one that is furthest is doing."""
        if any(kept.ready is not None and not kept.draining for kept in self._kept):
            return Readiness(ready=True, stage="ready")
        if not self._kept:
            return Readiness(ready=False, stage="no worker is configured")
        furthest = max(self._kept, key=lambda kept: kept.progress or 0.0)
        return Readiness(ready=False, stage=furthest.stage, progress=furthest.progress)

    def fatal(self) -> Fatal | None:
        """Why no worker can ever work here: every one said so before it was ever ready."""
        faults = [kept.fatal for kept in self._kept if not kept.was_ready]
        if not faults or len(faults) < len(self._kept):
            return None
        return faults[0] if all(fault is not None for fault in faults) else None

    def drain(self, worker: str) -> None:
        """It takes nobody new from now on."""
        for kept in self._kept:
            if kept.port is not None and kept.port.worker_id == worker:
                kept.draining = True
                self._doing(kept, "draining the worker", None)

    async def recycle(self, worker: str) -> None:
        """End a worker that has no sessions any more; a fresh one takes its place."""
        port = self.port(worker)
        if port is not None:
            await port.aclose()

    async def aclose(self) -> None:
        """End them all, each within its own bound."""
        self.closing = True
        ports = [kept.port for kept in self._kept if kept.port is not None]
        await asyncio.gather(*(self._close(port) for port in ports))
        tasks = [kept.task for kept in self._kept if kept.task is not None]
        if tasks:
            # Their ports have ended, so that they end too; a pause between two starts is cut.
            _, late = await asyncio.wait(tasks, timeout=1.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def kill(self) -> None:
        """End them at once, without asking. Only child processes can be."""
        self.closing = True
        for kept in self._kept:
            kill = getattr(kept.port, "kill", None)
            if kill is not None:
                kill()

    async def _close(self, port: WorkerPort) -> None:
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await port.aclose()
        except TimeoutError:
            log.error("worker_did_not_end", worker=port.worker_id)

    async def _keep(self, kept: KeptWorker) -> None:
        pause = self._first_pause
        while True:
            began = time.monotonic()
            await self._life(kept)
            if self.closing or self.fatal() is not None:
                return  # where no worker can ever work, another one would only say so again
            if time.monotonic() - began >= STEADY_SECONDS:
                pause = self._first_pause
            kept.restarts += 1
            self._doing(kept, "restarting the worker", None)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _life(self, kept: KeptWorker) -> None:
        """One worker, from its start to its end."""
        try:
            port = await kept.start()
        except WorkerGone as error:
            log.error("worker_not_started", error=str(error))
            kept.fatal = Fatal(code=error.code, message=str(error))
            return
        kept.port = port
        if self.closing:
            await port.aclose()
        try:
            async for event in port.events():
                try:
                    self._heard(kept, port, event)
                except Exception:  # a bug of ours in one event: the next one is heard all the same
                    log.exception("worker_event_failed", worker=port.worker_id, kind=event.type)
        finally:
            was_ready, kept.port, kept.ready, kept.samples = kept.ready is not None, None, None, ()
            kept.draining = False
            if was_ready:
                self._listener.worker_gone(port.worker_id)

    def _heard(self, kept: KeptWorker, port: WorkerPort, event: object) -> None:
        match event:
            case SessionFact():
                self._listener.session_fact(port.worker_id, event)
            case Stats():
                kept.samples = event.samples
            case Loading():
                self._doing(kept, event.stage, event.progress)
            case Ready():
                kept.ready, kept.was_ready, kept.fatal = event, True, None
                self._listener.worker_ready(port.worker_id, event)
                self._doing(kept, "ready", None)
            case Fatal():
                log.error("worker_fatal", code=event.code, error=event.message)
                kept.fatal = event
                self._doing(kept, event.message, None)

    def _doing(self, kept: KeptWorker, stage: str, progress: float | None) -> None:
        kept.stage, kept.progress = stage, progress
        self._listener.readiness_changed()
