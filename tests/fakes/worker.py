"""A `WorkerPort` that does what its script says: no model, no media, no process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

from admission.session import EndReason
from server.protocol.http import Connection, ControlView
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
    Sample,
    SessionFact,
    Shutdown,
    StartPointContent,
    Stats,
    WorkerEvent,
    WorkerGone,
    WorkerPort,
    WorkerReply,
    WorkerRequest,
    WorldContent,
)
from tests.fakes.waiting import until

PNG = b"\x89PNG\r\n\x1a\n not a picture, but bytes that come back as they are \xff\x00"


def world(name: str = "meadow", *, prompt: bool = False, image: bool = False) -> WorldContent:
    """A world's capabilities."""
    return WorldContent(
        name=name,
        title=name.title(),
        about="A world of the tests.",
        width=256,
        height=160,
        fps=24.0,
        frames_per_chunk=4,
        start_points=tuple(
            # The wire carries pictures as base64; model_construct takes the bytes themselves.
            StartPointContent.model_construct(name=point, title=point.title(), picture=PNG)
            for point in ("gate", "pond")
        ),
        controls=(ControlView(code="KeyW", label="walk", aliases=("ArrowUp",)),),
        axes=("forward",),
        prompt=prompt,
        image=image,
    )


class FakeWorker:
    """Scripted by its attributes, which may be changed at any time."""

    def __init__(
        self,
        worker_id: str = "worker-0",
        *,
        seats: int = 2,
        content: WorldContent | None = None,
        ready: bool = True,
    ) -> None:
        self._worker_id = worker_id
        self.ready_event = Ready(world=content or world(), transport="memory", seats=seats)
        self.refuse_connect: Failure | None = None
        self.plays = False  # a connect is followed by the facts of a session that runs
        self.connect_gate = asyncio.Event()  # cleared = connects hang
        self.connect_gate.set()
        self.close_gate = asyncio.Event()  # cleared = closes are acknowledged late
        self.close_gate.set()
        self.clean: Callable[[int], bool] = lambda attempt: True  # of the n-th close of a session
        self.requests: list[WorkerRequest] = []
        self.holds: set[str] = set()  # sessions that it has model state for
        self.closes: dict[str, int] = {}
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self._dead = asyncio.Event()
        self._listening = False
        if ready:
            self.become_ready()

    @property
    def worker_id(self) -> str:
        return self._worker_id

    def become_ready(self) -> None:
        self.emit(Loading(stage="loading weights", progress=0.5))
        self.emit(self.ready_event)

    def emit(self, event: WorkerEvent) -> None:
        self._events.put_nowait(event)

    def fact(
        self,
        session: str,
        fact: Literal[
            "connected", "starting", "running", "lost", "paused", "resumed", "active", "ended"
        ],
        *,
        stage: str | None = None,
        reason: EndReason | None = None,
    ) -> None:
        self.emit(SessionFact(session=session, fact=fact, stage=stage, reason=reason))

    def push_stats(self, **values: float) -> None:
        self.emit(Stats(samples=tuple(Sample(name=n, value=v) for n, v in values.items())))

    def fatal(self, message: str) -> None:
        self.emit(Fatal(code="unknown_world", message=message))
        self.die()

    def die(self) -> None:
        """As if killed."""
        if not self._dead.is_set():
            self._dead.set()
            self._events.put_nowait(None)

    async def call(self, request: WorkerRequest) -> WorkerReply:
        if self._dead.is_set():
            raise WorkerGone("dead")
        self.requests.append(request)
        answering = asyncio.create_task(self._answer(request))
        dying = asyncio.create_task(self._dead.wait())
        try:
            await asyncio.wait({answering, dying}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise WorkerGone("died")
            return answering.result()
        finally:
            for task in (answering, dying):
                task.cancel()
            await asyncio.gather(answering, dying, return_exceptions=True)

    async def _answer(self, request: WorkerRequest) -> WorkerReply:
        match request:
            case ConnectSession():
                return await self._connect(request)
            case CloseSession():
                await self.close_gate.wait()
                attempt = self.closes[request.session] = self.closes.get(request.session, 0) + 1
                clean = self.clean(attempt)
                if clean:
                    self.holds.discard(request.session)
                return Closed(session=request.session, clean=clean)
            case Shutdown():
                self.die()
                return Done()
            case Ping() | CheckRoom():
                return Done()

    async def _connect(self, request: ConnectSession) -> WorkerReply:
        await self.connect_gate.wait()
        if self.refuse_connect is not None:
            return self.refuse_connect
        self.holds.add(request.session)
        if self.plays:
            self.fact(request.session, "connected")
            self.fact(request.session, "starting", stage="preparing the picture")
            self.fact(request.session, "running")
        return Connected(connection=Connection(transport="memory", connect_seconds=30.0))

    async def events(self) -> AsyncIterator[WorkerEvent]:
        while True:
            self._listening = True
            event = await self._events.get()
            self._listening = False
            if event is None:
                return
            yield event

    async def heard(self) -> None:
        """Wait until the reader of `events` has dealt with all of them and waits for more."""
        await until(
            lambda: self._dead.is_set() or (self._listening and self._events.empty()),
        )

    async def aclose(self) -> None:
        self.die()


def starts(*lives: Callable[[], WorkerPort]) -> Callable[[], Any]:
    """A `StartWorker` that gives one life after the other, the last one again and again."""
    left = list(lives)

    async def start() -> WorkerPort:
        return (left.pop(0) if len(left) > 1 else left[0])()

    return start
