"""Giving seats back: only when the worker has acknowledged that it holds nothing any more.

A session whose release failed is over for its player, but its seat is quarantined: the close is
tried again with growing pauses, and after the third failure the worker is drained and replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import structlog

from admission.residency import Event, ResidentAdmission, SeatFreed, SeatQuarantined, WorkerEmptied
from admission.session import EndReason
from server.front.record import SessionRecord
from server.protocol.worker import Closed, CloseSession, WorkerGone, WorkerReply, WorkerRequest

log = structlog.get_logger(__name__)

PAUSES_SECONDS: Final = (1.0, 2.0)  # before the second and the third try
SETTLE_SECONDS: Final = 30.0  # for a `connect` that crossed the close


class CloseListener(Protocol):
    """Who owns the sessions. Called on the loop; returns at once."""

    def released(self, record: SessionRecord) -> None:
        """The session is over."""
        ...

    def seat_changed(self, worker: str) -> None:
        """A seat has come back, or is quarantined."""
        ...

    def worker_emptied(self, worker: str) -> None:
        """A draining worker has no session any more."""
        ...

    def worker_unclean(self, worker: str) -> None:
        """A session could not be released there, however often it was tried."""
        ...


class Closer:
    """The closes that are under way."""

    def __init__(
        self,
        call: Callable[[str, WorkerRequest], Awaitable[WorkerReply]],
        admission: ResidentAdmission,
        listener: CloseListener,
        close_seconds: float,
        *,
        pauses_seconds: Sequence[float] | None = None,
    ) -> None:
        self._call, self._admission, self._listener = call, admission, listener
        self._close_seconds, self._pauses = close_seconds, tuple(pauses_seconds or PAUSES_SECONDS)
        self._tasks: set[asyncio.Task[Any]] = set()

    def close(self, record: SessionRecord) -> None:
        """Have the worker release a session that is draining."""
        self.run(self._close(record))

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do `work` in a task that is ended with this."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def noticed(self, events: Sequence[Event]) -> None:
        """Tell the owner what a change of the seats has caused."""
        for event in events:
            match event:
                case SeatFreed(_, worker):
                    self._listener.seat_changed(worker)
                case WorkerEmptied(worker):
                    self._listener.worker_emptied(worker)
                case SeatQuarantined(session, worker, failures):
                    log.error("seat_quarantined", session_id=session, worker=worker, tries=failures)
                    self._listener.seat_changed(worker)

    async def aclose(self) -> None:
        """Give up what is still under way: the workers are gone."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("close_failed", exc_info=error)

    async def _close(self, record: SessionRecord) -> None:
        try:
            if not await self._try(record):
                self.noticed(self._admission.quarantine(record.id))
                # For its player the session is over; only its seat waits.
                self._listener.released(record)
                if not await self._try_again(record):
                    if self._admission.worker_of(record.id) is not None:
                        self._listener.worker_unclean(record.worker)
                    return
        except WorkerGone:
            return  # whoever watches the worker ends the session and takes the seats away
        self.noticed(self._admission.release(record.id))
        self._listener.released(record)

    async def _try_again(self, record: SessionRecord) -> bool:
        for pause in self._pauses:
            await asyncio.sleep(pause)
            if await self._try(record):
                return True
            self.noticed(self._admission.quarantine(record.id))
        return False

    async def _try(self, record: SessionRecord) -> bool:
        """Whether the worker says that the session holds nothing any more."""
        clean = await self._ask(record)
        if record.settled.is_set():
            return clean
        # A `connect` is on its way: it may have built the session again behind the close.
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await record.settled.wait()
        except TimeoutError:
            return False
        return await self._ask(record)

    async def _ask(self, record: SessionRecord) -> bool:
        reason = record.life.reason or EndReason.LEFT
        try:
            async with asyncio.timeout(self._close_seconds):
                reply = await self._call(
                    record.worker, CloseSession(session=record.id, reason=reason)
                )
        except TimeoutError:
            return False
        return isinstance(reply, Closed) and reply.clean
