"""The worker as a process of its own, started by the front door.

Its standard streams carry frames: configuration and requests in, replies and events out. Whatever
prints goes to stderr. It never outlives the front door: the end of its input ends it within
`EXIT_SECONDS`, and on Linux the kernel kills it when the front door dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import logging
import os
import signal
import sys
import threading
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

from server.protocol.worker import (
    Done,
    EventEnvelope,
    Failure,
    Fatal,
    Loading,
    Ping,
    ReplyEnvelope,
    RequestEnvelope,
    Shutdown,
    Stats,
    WorkerConfig,
    WorkerEvent,
)
from server.worker.garbage import Garbage
from server.worker.loglines import LogLines
from server.worker.wire import Inbox, Outbox

if TYPE_CHECKING:
    from server.worker.runtime import WorkerRuntime

EXIT_SECONDS = 2.0  # from the end of the input to the end of the process, whatever hangs
GOODBYE_SECONDS = 1.0  # for closing, where there is no other bound or nothing works any more
SIGTERM_SECONDS = 5.0
PR_SET_PDEATHSIG = 1

log = logging.getLogger(__name__)


class ExitCode(IntEnum):
    """How the process ended."""

    DONE = 0
    NOT_LOADED = 1
    BAD_CONFIG = 2
    FATAL = 3  # a stage hangs or an actor is dead
    ORPHANED = 4  # the front door is gone


def main() -> NoReturn:
    """Run until told to shut down; never returns, so that no stuck thread can hold the process."""
    wire_in, wire_out = claim_standard_streams()
    die_with_parent()
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the front door's: it drains us
    inbox = Inbox(wire_in)
    first = inbox.first()
    if first is None:
        leave(ExitCode.ORPHANED)
    outbox = Outbox(wire_out, on_broken=orphaned)
    code: int = ExitCode.BAD_CONFIG
    try:
        config = WorkerConfig.model_validate_json(first)
    except ValueError as fault:
        message = f"the worker's configuration cannot be read: {fault}"
        outbox.put(EventEnvelope(event=Fatal(code="bad_config", message=message)))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LogLines())
        logging.basicConfig(level=config.log_level.upper(), handlers=[handler])
        logging.getLogger("aioice").setLevel(logging.WARNING)  # it tells every pair it checks
        loop = (
            asyncio.new_event_loop()
        )  # never closed: closing waits for threads, and they may hang
        code = loop.run_until_complete(Process(config, inbox, outbox).run())
    outbox.flush(EXIT_SECONDS)
    leave(code)


def claim_standard_streams() -> tuple[int, int]:
    """Take fd 0 and 1 for frames; from then on stdin is empty and prints go to stderr."""
    wire_in, wire_out = os.dup(0), os.dup(1)  # not inherited by anything this process starts
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return wire_in, wire_out


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it is gone (Linux only)."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def orphaned() -> None:
    """The front door is gone: be gone soon too, even if the event loop is stuck."""
    timer = threading.Timer(EXIT_SECONDS, leave, (ExitCode.ORPHANED,))
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End now, threads or not."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


class Process:
    """The worker's life on its event loop: load, answer, end."""

    def __init__(self, config: WorkerConfig, inbox: Inbox, outbox: Outbox) -> None:
        self._config = config
        self._inbox = inbox
        self._outbox = outbox
        self._runtime: WorkerRuntime | None = None
        self._ending: asyncio.Future[ExitCode] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._end_by = 0.0  # on the loop's clock, once it is told to end

    async def run(self) -> ExitCode:
        """Serve until something ends it; says how."""
        loop = asyncio.get_running_loop()
        self._ending = loop.create_future()
        self._inbox.start(loop, self._on_frame, self._on_end)
        with contextlib.suppress(NotImplementedError):  # no signal handlers in Windows' loop
            loop.add_signal_handler(signal.SIGTERM, self._on_sigterm)
        self._emit(Loading(stage="starting the worker"))
        try:
            runtime = await asyncio.to_thread(self._make_runtime)
        except Exception as fault:
            log.exception("the worker cannot be made")
            self._emit(Fatal(code="bad_config", message=f"the worker cannot start: {fault}"[:500]))
            return ExitCode.BAD_CONFIG
        self._runtime = runtime
        loading = asyncio.create_task(runtime.start())
        failing = asyncio.create_task(runtime.fatal.wait())
        waiting: set[asyncio.Future[Any]] = {self._ending, failing}
        try:
            await asyncio.wait({loading, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done() and not loading.result() and not self._ending.done():
                return ExitCode.NOT_LOADED
            Garbage.settle()
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            code = self._ending.result() if self._ending.done() else ExitCode.FATAL
            with contextlib.suppress(TimeoutError):  # what hangs then ends with the process
                async with asyncio.timeout(self._closing_seconds(code)):
                    await runtime.aclose(self._closing_seconds(code))
            return code
        finally:
            loading.cancel()
            failing.cancel()

    def _closing_seconds(self, code: ExitCode) -> float:
        """How long closing may take; where nothing works any more, players still hear a goodbye."""
        if code is not ExitCode.DONE:
            return GOODBYE_SECONDS
        return max(GOODBYE_SECONDS, self._end_by - asyncio.get_running_loop().time())

    def _make_runtime(self) -> WorkerRuntime:
        """Import what is heavy, off the loop."""
        from server.transports.factory import TransportSettings, make_transport
        from server.transports.impairment import Impairment
        from server.transports.livekit.address import LiveKitAddress
        from server.worker.runtime import WorkerRuntime

        config = self._config
        fields = {
            name: getattr(config.transport_settings, name)
            for name in type(config.transport_settings).model_fields
        }
        if (impair := config.transport_settings.impair) is not None:
            fields["impair"] = Impairment(**impair.model_dump())
        if (livekit := config.transport_settings.livekit) is not None:
            fields["livekit"] = LiveKitAddress(**livekit.model_dump())
        settings = TransportSettings(**fields)
        return WorkerRuntime(
            config,
            lambda session, sink: make_transport(config.transport, session, sink, settings),
            self._emit,
        )

    def _emit(self, event: WorkerEvent) -> None:
        self._outbox.put(EventEnvelope(event=event), droppable=isinstance(event, Stats | Loading))

    def _on_frame(self, frame: bytes) -> None:
        envelope = RequestEnvelope.model_validate_json(frame)
        task = asyncio.create_task(self._answer(envelope))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _answer(self, envelope: RequestEnvelope) -> None:
        if isinstance(envelope.request, Shutdown):
            self._end_by = asyncio.get_running_loop().time() + envelope.request.seconds
        if isinstance(envelope.request, Ping):
            reply: object = Done()
        elif self._runtime is None:
            reply = Failure(code="not_ready", message="the worker is still starting")
        else:
            reply = await self._runtime.handle(envelope.request)
        self._outbox.put(ReplyEnvelope.model_validate({"id": envelope.id, "reply": reply}))
        if isinstance(envelope.request, Shutdown):
            self._end(ExitCode.DONE)

    def _on_end(self) -> None:
        orphaned()
        assert self._ending is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: this process is ending
            self._ending.get_loop().call_soon_threadsafe(self._end, ExitCode.ORPHANED)

    def _on_sigterm(self) -> None:
        self._end_by = asyncio.get_running_loop().time() + SIGTERM_SECONDS
        self._end(ExitCode.DONE)

    def _end(self, code: ExitCode) -> None:
        assert self._ending is not None
        if not self._ending.done():
            self._ending.set_result(code)
