"""A worker in this process with players in memory: what a front door and some browsers would be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from admission.session import EndReason
from pipeline.service import World
from pipeline.streaming.trace import TraceRecorder
from server.protocol.http import Connect
from server.protocol.status import StatusMessage
from server.protocol.worker import (
    Closed,
    CloseSession,
    Connected,
    ConnectSession,
    Fatal,
    Ready,
    SessionFact,
    StartChoice,
    Stats,
    WorkerConfig,
    WorkerEvent,
    WorkerReply,
)
from server.transports.base import I420Frame, TransportSink
from server.transports.memory import MemoryPlayer, MemoryTransport
from server.transports.settings import TransportSettings
from server.worker.inprocess import InProcessWorker

PATIENCE_SECONDS = 20.0


class WorkerRig:
    """An `InProcessWorker`, what it has reported, and a way to send players to it."""

    def __init__(
        self,
        world: str = "marker",
        *,
        load: Callable[[str, Mapping[str, object]], World] | None = None,
        transport: TransportSettings | None = None,
        seats: int = 4,
        stage_deadline_seconds: float = 30.0,
        trace: TraceRecorder | None = None,
        clock: Callable[[], float] = time.monotonic,
        **options: object,
    ) -> None:
        self.transports: dict[str, MemoryTransport] = {}
        self.reported: list[WorkerEvent] = []
        self.transport_settings = transport  # of sessions that come from now on
        self._nonces = 0
        self._news = asyncio.Event()
        config = WorkerConfig(
            world=world,
            world_options=options,
            transport="memory",
            seats=seats,
            stage_deadline_seconds=stage_deadline_seconds,
        )
        extra = {} if load is None else {"load": load}
        self.worker = InProcessWorker(
            config, self._make_transport, trace=trace, clock=clock, **extra
        )
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> WorkerRig:
        self._reader = asyncio.create_task(self._read())
        await self.worker.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.worker.aclose()
        assert self._reader is not None
        await self._reader

    # ------------------------------------------------------------------ players
    async def connect(
        self, session: str = "a", *, take_over: bool = False, **start: object
    ) -> WorkerReply:
        """Ask as the front door does."""
        return await self.worker.call(
            ConnectSession(
                session=session,
                start=StartChoice.model_validate(start),
                body=Connect(take_over=take_over),
                connect_seconds=5.0,
            )
        )

    async def play(
        self, session: str = "a", *, take_over: bool = False, hello: bool = True, **start: object
    ) -> MemoryPlayer:
        """A player who has joined and, with `hello`, has the controls."""
        self._nonces += 1
        player = MemoryPlayer(nonce=self._nonces)
        reply = await self.connect(session, take_over=take_over, **start)
        assert isinstance(reply, Connected), reply
        assert reply.connection.url is not None
        player.join(reply.connection.url)
        if hello:
            player.hello()
            ack = await message(player, "ack")
            player.epoch = ack.epoch
        return player

    async def close(self, session: str = "a", reason: EndReason = EndReason.LEFT) -> Closed:
        """Close as the front door does."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            reply = await self.worker.call(CloseSession(session=session, reason=reason))
        assert isinstance(reply, Closed), reply
        return reply

    # ------------------------------------------------------------------ what was reported
    def facts(self, session: str = "a") -> list[str]:
        """Everything that was said of a session, in order."""
        return [
            e.fact for e in self.reported if isinstance(e, SessionFact) and e.session == session
        ]

    async def fact(self, fact: str, session: str = "a", *, times: int = 1) -> SessionFact:
        """The fact that was said for the `times`-th time; waits for it."""
        await self.until(lambda: len(self.said(fact, session)) >= times)
        return self.said(fact, session)[times - 1]

    def said(self, fact: str, session: str = "a") -> list[SessionFact]:
        """Every time that fact was said so far."""
        said = (e for e in self.reported if isinstance(e, SessionFact))
        return [e for e in said if e.session == session and e.fact == fact]

    async def fatal(self) -> Fatal:
        """What the worker died of; waits for it."""

        def found() -> list[Fatal]:
            return [e for e in self.reported if isinstance(e, Fatal)]

        await self.until(lambda: bool(found()))
        return found()[0]

    def ready(self) -> Ready:
        """What the worker said when it was warm."""
        return next(e for e in self.reported if isinstance(e, Ready))

    async def stats(self) -> dict[str, float]:
        """The next push: values by name, labels appended."""
        before = len(self.reported)
        await self.until(lambda: any(isinstance(e, Stats) for e in self.reported[before:]))
        stats = next(e for e in self.reported[before:] if isinstance(e, Stats))
        return {
            sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
            for sample in stats.samples
        }

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something that a report makes true."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not true():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            said = [event for event in self.reported if not isinstance(event, Stats)]
            raise TimeoutError(f"reported only {said[-20:]}") from None

    async def _read(self) -> None:
        async for event in self.worker.events():
            self.reported.append(event)
            self._news.set()

    def _make_transport(self, session: str, sink: TransportSink) -> MemoryTransport:
        self.transports[session] = MemoryTransport(session, sink, self.transport_settings)
        return self.transports[session]


async def message(
    player: MemoryPlayer, kind: str, true: Callable[[StatusMessage], bool] = lambda m: True
) -> StatusMessage:
    """The next message of that kind for which `true` holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await player.next_message(kind)
            if true(found):
                return found


async def frame(
    player: MemoryPlayer, true: Callable[[I420Frame], bool] = lambda f: f.frame_id > 1
) -> I420Frame:
    """The next frame for which `true` holds; by default, one that is not the start picture."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await player.next_frame()
            if true(found):
                return found


async def new_frames(player: MemoryPlayer, count: int) -> list[I420Frame]:
    """That many frames that are not repetitions, start pictures left out."""
    found: dict[int, I420Frame] = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(found) < count:
            one = await frame(player)
            found[one.frame_id] = one
    return list(found.values())
