"""One worker process: started, told its configuration, listened to, pinged, and ended for sure.

The child speaks frames (`server.protocol.framing`) on its stdin and stdout and logs on stderr.
Ending goes down a ladder, each step with its bound: a request, the end of its stdin, a dump of its
stacks, SIGTERM, SIGKILL. However it dies, pending calls raise `WorkerGone` and `events` ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import ValidationError

from server.front.output import forward_lines
from server.protocol.framing import LENGTH_BYTES, FramingError, frame_length, pack_frame
from server.protocol.worker import (
    Fatal,
    FromWorker,
    Loading,
    Ping,
    ReplyEnvelope,
    RequestEnvelope,
    Shutdown,
    WorkerConfig,
    WorkerEvent,
    WorkerGone,
    WorkerReply,
    WorkerRequest,
)

log = structlog.get_logger(__name__)

COMMAND: Final = (sys.executable, "-m", "server.worker")
# glibc keeps what it has once been given: a fresh mapping for each big tensor costs page faults.
ENVIRONMENT: Final[Mapping[str, str]] = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
    "OMP_NUM_THREADS": "1",
}
EXIT_SECONDS: Final = 2.5  # for a worker that has closed its stdout to be gone by itself
MAX_EVENTS: Final = 1024  # that the reader of `events` may be behind; then the pipe fills


@dataclass(frozen=True)
class Patience:
    """How long a worker may take for what, in seconds."""

    ping_every: float = 2.0
    hang: float = 15.0  # without an answer to a ping: hung
    start: float = 900.0  # until it is ready
    shutdown: float = 4.0  # to close its sessions and exit when asked
    dump: float = 0.3  # to write its stacks
    terminate: float = 1.5  # after SIGTERM


class WorkerProcess:
    """A `WorkerPort` whose worker is a child process of its own."""

    def __init__(self, worker_id: str, process: Process, patience: Patience) -> None:
        """Use `start`."""
        self._worker_id = worker_id
        self._process = process
        self._patience = patience
        self._log = log.bind(worker=worker_id, worker_pid=process.pid)
        self._next_id = 0
        self._pending: dict[int, asyncio.Future[WorkerReply]] = {}
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue(MAX_EVENTS)
        self._speaks = asyncio.Event()  # it has said something: its event loop runs
        self._ready = asyncio.Event()
        self._gone = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(
        cls,
        config: WorkerConfig,
        *,
        patience: Patience | None = None,
        command: Sequence[str] = COMMAND,
    ) -> WorkerProcess:
        """Spawn a worker and hand it `config`; its cold start is told by `events`.

        Raises:
            WorkerGone: It could not even be spawned.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**os.environ, **ENVIRONMENT},
                # Ctrl+C in a terminal reaches the whole foreground group; ending the worker is
                # the front door's business.
                process_group=0 if os.name == "posix" else None,
            )
        except OSError as error:
            raise WorkerGone(f"the worker could not be started: {error}") from error
        worker = cls(config.worker_id, process, patience or Patience())
        worker._begin(config)
        return worker

    def _begin(self, config: WorkerConfig) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(pack_frame(config.model_dump_json().encode()))
        assert self._process.stderr is not None
        output = asyncio.create_task(forward_lines(self._process.stderr, self._log))
        self._tasks = [
            asyncio.create_task(self._watch_health()),
            asyncio.create_task(self._read_until_gone(output)),
            output,
        ]
        self._log.info("worker_started")

    @property
    def worker_id(self) -> str:
        """Stable for the life of this worker."""
        return self._worker_id

    @property
    def pid(self) -> int:
        """Of the child."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Of the child once it is gone; negative = the signal that ended it."""
        return self._process.returncode

    async def call(self, request: WorkerRequest) -> WorkerReply:
        """Ask and wait for the reply; raises `WorkerGone` if the worker dies first."""
        stdin = self._process.stdin
        if self._gone.is_set() or stdin is None or stdin.is_closing():
            raise WorkerGone(f"worker {self._worker_id} is gone")
        self._next_id += 1
        number = self._next_id
        reply: asyncio.Future[WorkerReply] = asyncio.get_running_loop().create_future()
        self._pending[number] = reply
        try:
            envelope = RequestEnvelope(id=number, request=request)
            stdin.write(pack_frame(envelope.model_dump_json().encode()))
            try:
                await stdin.drain()
            except OSError:
                raise WorkerGone(f"worker {self._worker_id} is gone") from None
            return await reply
        finally:
            del self._pending[number]

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Everything the worker reports, in order; ends when the worker is gone. One reader."""
        while (event := await self._events.get()) is not None:
            yield event

    async def aclose(self) -> None:
        """Ask for shutdown, wait a bounded time, then kill. Idempotent."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace=self._patience.dump, ask=True))
        await asyncio.shield(self._ending)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def kill(self) -> None:
        """End it at once, without asking."""
        if self._process.returncode is None:
            self._process.kill()

    # ------------------------------------------------------------------ listening
    async def _read_until_gone(self, output: asyncio.Task[None]) -> None:
        try:
            await self._read()
        except (FramingError, ValidationError) as error:
            # Validation errors repeat what they were given; a title is enough to find the fault.
            self._log.error("worker_unreadable", error=type(error).__name__)
        finally:
            await self._bury(output)

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while True:
            try:
                header = await stdout.readexactly(LENGTH_BYTES)
                payload = await stdout.readexactly(frame_length(header))
            except (asyncio.IncompleteReadError, ConnectionError):
                return  # the end of its stdout is the end of the worker
            message = FromWorker.validate_json(payload)
            self._speaks.set()
            if not isinstance(message, ReplyEnvelope):
                if not isinstance(message.event, Loading | Fatal):
                    self._ready.set()
                await self._events.put(message.event)
            elif (reply := self._pending.get(message.id)) is not None and not reply.done():
                reply.set_result(message.reply)

    async def _bury(self, output: asyncio.Task[None]) -> None:
        """It has stopped speaking: make sure that it is dead, and say so."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace=EXIT_SECONDS))
        self._fail_pending()
        await self._process.wait()
        self._gone.set()
        self._fail_pending()
        self._log.info("worker_gone", exit_code=self._process.returncode)
        # Its last words: a traceback is on the pipe still. A grandchild may hold the pipe open.
        await asyncio.wait({output}, timeout=1.0)
        output.cancel()
        await self._events.put(None)

    def _fail_pending(self) -> None:
        for reply in list(self._pending.values()):
            if not reply.done():
                reply.set_exception(WorkerGone(f"worker {self._worker_id} is gone"))

    async def _watch_health(self) -> None:
        """A worker that is not ready in time, or whose event loop does not answer, is ended."""
        try:
            async with asyncio.timeout(self._patience.start):
                await self._first(self._ready)
        except TimeoutError:
            self._log.error("worker_start_too_slow", seconds=self._patience.start)
            self._hung()
            return
        while not self._gone.is_set():
            try:
                async with asyncio.timeout(self._patience.hang):
                    await self.call(Ping())
            except WorkerGone:
                return
            except TimeoutError:
                self._log.error("worker_hung", seconds=self._patience.hang)
                self._hung()
                return
            try:
                async with asyncio.timeout(self._patience.ping_every):
                    await self._gone.wait()
            except TimeoutError:
                continue

    async def _first(self, event: asyncio.Event) -> None:
        """Wait for `event`, or for the end."""
        waits = {asyncio.create_task(event.wait()), asyncio.create_task(self._gone.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    # ------------------------------------------------------------------ ending
    def _hung(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace=0.0))

    async def _end(self, *, grace: float, ask: bool = False) -> None:
        """The ladder. Returns when the process is dead and its exit code read.

        Args:
            grace: How long it may take to go by itself once its stdin is closed, in seconds.
            ask: Whether to send `Shutdown` before.
        """
        if ask and self._speaks.is_set() and await self._asked():
            return
        self._close_stdin()
        if await self._exited(grace):
            return
        await self._dump_stacks()
        for step, patience in (
            (self._process.terminate, self._patience.terminate),
            (self._process.kill, None),
        ):
            if self._process.returncode is not None:
                return
            self._log.warning("worker_ended_by_force", step=step.__name__)
            with suppress(ProcessLookupError):  # it has just gone
                step()
            if await self._exited(patience):
                return

    async def _asked(self) -> bool:
        """Whether it went when asked to."""
        seconds = self._patience.shutdown
        try:
            async with asyncio.timeout(seconds + 0.5):
                await self.call(Shutdown(seconds=seconds))
                self._close_stdin()
                await self._process.wait()
        except WorkerGone:
            return await self._exited(self._patience.dump)
        except TimeoutError:
            return False
        return True

    def _close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _dump_stacks(self) -> None:
        """Its stacks go to its stderr (faulthandler), and from there into our log."""
        if hasattr(signal, "SIGUSR1"):
            try:
                self._process.send_signal(signal.SIGUSR1)
            except ProcessLookupError:
                return
            await self._exited(self._patience.dump)

    async def _exited(self, seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            return False
        return True
