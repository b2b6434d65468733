"""A worker: loads one world, answers the front door, and keeps its sessions.

Everything runs on one event loop; the model runs in the threads of the pipeline's actors. Facts,
metrics and progress leave through `emit` as plain data.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from admission.load import WorkerLoad
from admission.session import EndReason
from pipeline.registry import load_world
from pipeline.service import BadStart, SessionStart, World
from pipeline.streaming.actors import LocalStageActor
from pipeline.streaming.errors import ActorDied, SessionFailed
from pipeline.streaming.messages import Outcome, StageCompleted
from pipeline.streaming.orchestrator import StreamingPipelineOrchestrator
from pipeline.streaming.trace import TraceRecorder
from server.looplag import LoopLag
from server.protocol.http import Connection
from server.protocol.worker import (
    CheckRoom,
    Closed,
    CloseSession,
    Connected,
    ConnectSession,
    Done,
    Failure,
    Fatal,
    Loading,
    Ping,
    Ready,
    Shutdown,
    Stats,
    WorkerConfig,
    WorkerEvent,
    WorkerReply,
    WorkerRequest,
)
from server.transports.base import TransportError
from server.worker.garbage import Garbage
from server.worker.lease import AsyncLease
from server.worker.loaded import LoadedWorker, MakeTransport
from server.worker.session import SessionRuntime
from server.worker.stats import Tally, worker_stats
from server.worker.watch import HangWatch, WatchedExecutor
from server.worker.words import world_content

STATS_SECONDS: Final = 1.0
LAG_PERIOD_SECONDS, LAG_KEPT = 0.02, 500  # the last ten seconds
CONVERTER_THREADS: Final = 2

log = logging.getLogger(__name__)
LoadWorld = Callable[[str, Mapping[str, object]], World]


class WorkerRuntime:
    """One worker. Make it on the loop that it will live on."""

    def __init__(
        self,
        config: WorkerConfig,
        make_transport: MakeTransport,
        emit: Callable[[WorkerEvent], None],
        *,
        load: LoadWorld = load_world,
        clock: Callable[[], float] = time.monotonic,
        trace: TraceRecorder | None = None,
    ) -> None:
        """Load nothing yet; `emit` must return at once. `trace` records what the pipeline does."""
        self.fatal = asyncio.Event()  # set once the worker cannot work any more
        self._config = config
        self._make_transport = make_transport
        self._emit = emit
        self._load = load
        self._clock = clock
        self._trace = trace
        self._lag = LoopLag(LAG_PERIOD_SECONDS, LAG_KEPT)
        self._loaded: LoadedWorker | None = None
        self._executors: dict[str, WatchedExecutor] = {}
        self._sessions: dict[str, SessionRuntime] = {}
        self._tally = Tally()
        self._garbage = Garbage()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    @property
    def loaded(self) -> LoadedWorker | None:
        """What the sessions share; None before `start` has ended and after `aclose`."""
        return self._loaded

    def session(self, name: str) -> SessionRuntime | None:
        """A session that is here."""
        return self._sessions.get(name)

    # ------------------------------------------------------------------ life
    async def start(self) -> bool:
        """Load and warm up; False where that failed, and `Fatal` says why."""
        self._tasks.append(asyncio.create_task(self._lag.run()))
        try:
            self._loaded = await self._make_ready()
        except Exception as fault:
            code = getattr(fault, "code", None)
            if code is None:  # not a fault that anybody has foreseen
                log.exception("the world cannot be loaded")
            self._die(
                code or "world_not_loaded",
                f"world {self._config.world!r} cannot be loaded: {fault}",
            )
            return False
        self._tasks.append(asyncio.create_task(self._every_second()))
        self._tasks.append(asyncio.create_task(self._watch()))
        self._emit(
            Ready(
                world=world_content(self._loaded.info),
                transport=self._config.transport,
                seats=self._config.seats,
            )
        )
        return True

    async def aclose(self, seconds: float = 5.0) -> None:
        """Close every session, then everything else; bounded. Idempotent."""
        self._closing = True
        try:
            async with asyncio.timeout(seconds):
                await self._close_sessions(EndReason.SHUTDOWN)
        except TimeoutError:
            log.error("sessions could not be closed within %s s", seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._garbage.cancel()
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.orchestrator.aclose()
            loaded.converters.shutdown(wait=False, cancel_futures=True)
            await asyncio.to_thread(loaded.world.close)

    async def handle(self, request: WorkerRequest) -> WorkerReply:
        """Do what the front door asks; never raises."""
        try:
            match request:
                case Ping():
                    return Done()
                case ConnectSession():
                    return await self._connect(request)
                case CloseSession():
                    return await self._close(request)
                case CheckRoom():
                    if (session := self._sessions.get(request.session)) is not None:
                        session.doubt()
                    return Done()
                case Shutdown():
                    self._closing = True
                    with suppress(TimeoutError):  # then the process ends with them
                        async with asyncio.timeout(request.seconds):
                            await self._close_sessions(EndReason.SHUTDOWN)
                    return Done()
        except Exception as fault:
            log.exception("a request failed: %s", type(request).__name__)
            return Failure(code="internal", message=f"{type(fault).__name__}: {fault}"[:300])

    # ------------------------------------------------------------------ loading
    async def _make_ready(self) -> LoadedWorker:
        loop = asyncio.get_running_loop()
        told: list[tuple[str, float]] = []

        def tell(what: str, share: float) -> None:
            if not self._closing:
                self._emit(Loading(stage=what, progress=share))

        def progress(what: str, share: float) -> None:  # called from the loading thread
            step = (what, round(share, 2))
            if not told or told[-1] != step:
                told[:] = [step]
                loop.call_soon_threadsafe(tell, *step)

        def load() -> World:
            options: dict[str, object] = {**self._config.world_options}
            world = self._load(self._config.world, options)
            self._set_threads()
            world.warm_up(progress)
            return world

        self._emit(Loading(stage="loading the world"))
        world = await asyncio.to_thread(load)
        clock = self._clock
        self._executors = {
            stage: WatchedExecutor(stage, executor, clock)
            for stage, executor in world.stages().items()
        }
        actors = {
            stage: LocalStageActor(stage, executor, threads_hook=self._set_threads)
            for stage, executor in self._executors.items()
        }
        orchestrator = StreamingPipelineOrchestrator(
            world.spec,
            actors,
            clock=clock,
            open_order=tuple(self._executors),
            trace=self._trace,
        )
        await orchestrator.start()
        orchestrator.subscribe(self._on_stage_completed)
        return LoadedWorker(
            world=world,
            info=world.info,
            orchestrator=orchestrator,
            lease=AsyncLease(),
            make_transport=self._make_transport,
            converters=ThreadPoolExecutor(CONVERTER_THREADS, "veldt-convert"),
            clock=clock,
            load=WorkerLoad(*(stage.name for stage in world.spec.stages)),
            playing=self._playing,
        )

    def _set_threads(self) -> None:
        """Give torch its share, on the thread that asks; a world without torch has none."""
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(self._config.torch_threads)

    # ------------------------------------------------------------------ requests
    async def _connect(self, request: ConnectSession) -> WorkerReply:
        if self._loaded is None or self._closing or self.fatal.is_set():
            return Failure(code="not_ready", message="the worker takes no sessions now")
        session = self._sessions.get(request.session)
        if session is None and request.watch:
            return Failure(code="nothing_to_watch", message="nobody plays this session yet")
        if session is None:
            if len(self._sessions) >= self._config.seats:
                return Failure(code="worker_full", message="every seat of the worker is taken")
            try:
                session = self._make_session(self._loaded, request)
            except BadStart as fault:
                return Failure(code=fault.code, message=str(fault), field=fault.field_name)
            self._sessions[request.session] = session
        elif session.ended is not None:
            return Failure(code="session_ended", message="this session is over")
        try:
            answer = await (session.watch() if request.watch else session.connect(request.body))
        except TransportError as fault:
            if session.unused and session.ended is None:
                await self._forget(session)
            return Failure(code=fault.code, message=str(fault))
        self._garbage.expected()  # a reconnect lets the connection before it go
        details = {"connect_seconds": request.connect_seconds, **answer.details}
        return Connected(
            connection=Connection.model_validate({"transport": answer.transport, **details})
        )

    def _make_session(self, loaded: LoadedWorker, request: ConnectSession) -> SessionRuntime:
        start = SessionStart(**request.start.model_dump())
        return SessionRuntime(
            request.session, start, loaded, self._emit, failed=self._on_session_failed
        )

    async def _close(self, request: CloseSession) -> WorkerReply:
        session = self._sessions.get(request.session)
        clean = True if session is None else await session.close(request.reason)
        if session is not None and clean:
            self._drop(session)
        return Closed(session=request.session, clean=clean)

    async def _forget(self, session: SessionRuntime) -> None:
        """A session that nobody ever came to holds nothing but its place here."""
        await session.close(EndReason.CONNECT_FAILED)
        self._drop(session)

    def _drop(self, session: SessionRuntime) -> None:
        if self._sessions.get(session.session) is session:
            del self._sessions[session.session]
            self._tally.gone(session)
        if self._loaded is not None:
            self._loaded.load.forget(session.session)
        self._garbage.expected()

    async def _close_sessions(self, reason: EndReason) -> None:
        sessions = tuple(self._sessions.values())
        for session, clean in zip(
            sessions, await asyncio.gather(*(each.close(reason) for each in sessions)), strict=True
        ):
            if clean:
                self._drop(session)

    # ------------------------------------------------------------------ what happens by itself
    def _playing(self) -> tuple[str, ...]:
        return tuple(name for name, session in self._sessions.items() if session.playing)

    def _on_stage_completed(self, event: StageCompleted) -> None:
        loaded = self._loaded
        session = self._sessions.get(event.session)
        if loaded is None:
            return
        if session is not None:
            if event.outcome is Outcome.DONE:
                loaded.load.measured(event.session, event.stage, event.ended - event.started)
            session.stage_completed(event)
        loaded.lease.hand_on()

    def _on_session_failed(self, fault: BaseException) -> None:
        cause = fault.cause if isinstance(fault, SessionFailed) else fault
        if isinstance(cause, ActorDied):
            self._die("actor_died", str(cause))

    async def _every_second(self) -> None:
        while True:
            await asyncio.sleep(STATS_SECONDS)
            assert self._loaded is not None
            for session in self._sessions.values():
                session.tick()
            self._emit(self._stats(self._loaded))

    def _stats(self, loaded: LoadedWorker) -> Stats:
        return worker_stats(
            loaded,
            self._sessions.values(),
            self._tally,
            self._executors,
            self._lag,
            self._config.seats,
        )

    async def _watch(self) -> None:
        """Find an invocation that hangs; its thread cannot be ended, so the worker is."""
        deadline = self._config.stage_deadline_seconds
        look = min(STATS_SECONDS, deadline / 4)
        watch = HangWatch(self._executors, deadline, look)
        while True:
            await asyncio.sleep(look)
            if (hung := watch.look()) is not None:
                self._die(
                    "stage_hangs",
                    f"stage {hung.stage!r} has not come back from {hung.what} for {deadline:g} s",
                )
                return

    def _die(self, code: str, message: str) -> None:
        """Nothing works here any more: end the sessions with a reason, and say so."""
        if self.fatal.is_set():
            return
        log.error("%s: %s", code, message)
        for session in tuple(self._sessions.values()):
            session.fail(message)
        self._emit(Fatal(code=code, message=message[:500]))
        self.fatal.set()
