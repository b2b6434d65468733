"""All that can be done with sessions, by players and by operators.

What happens to sessions by themselves is in lives.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import structlog

from admission.residency import Admitted, Occupancy, Refused
from admission.session import Cause, EndReason, SessionLife, State
from server.front import errors
from server.front.lives import SessionLives
from server.front.metrics import FrontMetrics
from server.front.pool import StartWorker, WorkerPool
from server.front.record import SessionRecord, new_session_id
from server.front.starts import choose_start, choose_world
from server.protocol.http import (
    Connect,
    Connection,
    Created,
    CreateSession,
    Readiness,
    SessionView,
    SpectatorLink,
)
from server.protocol.worker import (
    CheckRoom,
    Connected,
    ConnectSession,
    Failure,
    StartPointContent,
    WorkerGone,
    WorkerReply,
    WorldContent,
)
from server.settings import Settings

log = structlog.get_logger(__name__)

CLOSE_ANSWER_SECONDS: Final = 2.0  # that DELETE, or a create in a full house, waits for a close
MAX_CONNECTS: Final = 4  # of one session at once
MAX_WATCHES: Final = 16  # spectators of one session that come at once


class SessionService:
    """Sessions, seats and workers of one front door."""

    def __init__(
        self,
        settings: Settings,
        workers: Sequence[StartWorker],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._lives = SessionLives(settings, workers, clock)
        self._ledger = self._lives.ledger

    # ------------------------------------------------------------------ its own life
    def begin(self) -> None:
        """Start the workers and watch the deadlines. Sessions are refused until one is ready."""
        self._lives.begin()

    @property
    def stopping(self) -> bool:
        """Whether `shutdown` has been called: nobody new is let in."""
        return self._lives.stopping

    async def shutdown(self, seconds: float) -> None:
        """End every session with `shutdown`, and wait for it, at most `seconds`. Idempotent."""
        self._lives.stopping = True
        live = self._ledger.live()
        for record in live:
            self._lives.end(record, EndReason.SHUTDOWN)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(record.over.wait() for record in live))

    async def aclose(self) -> None:
        """End the workers, and with them whatever is left. Idempotent."""
        self._lives.stopping = True
        await self._lives.aclose()

    # ------------------------------------------------------------------ for players
    async def create(self, body: CreateSession, address: str) -> Created:
        """Open a session: a seat is kept for it, nothing is built yet.

        Raises:
            BadStart: Its subclasses name the field and the choices.
            HouseFull, NoWorker, ShuttingDown, QuotaExceeded: With the time to ask again.
        """
        self._ledger.prune(self.now())
        try:
            return await self._create(body, address)
        except errors.FrontError as error:
            self.metrics.refused(error.code)
            raise

    async def _create(self, body: CreateSession, address: str) -> Created:
        self._refuse_while_stopping()
        if not self._lives.worlds:
            raise errors.NoWorker(f"not yet: {self.readiness().stage}", retry_after=5.0)
        world = choose_world(body, self.worlds())
        start = choose_start(body, world)
        quota, session = self._lives.quota, new_session_id()
        quota.take(address, self.now())
        try:
            worker = await self._seat(session)
        except BaseException:
            quota.give_back(address)
            raise
        now = self.now()
        record = SessionRecord(
            session,
            world=world.name,
            start=start,
            worker=worker,
            life=SessionLife(self._lives.limits, now),
            address=address,
        )
        self._lives.begin_session(record)
        return Created(
            session_id=session,
            session_token=record.tell_secret(),
            status=record.life.state,
            transport=self.pool.transport(worker),
            world=world.name,
            claim_seconds=record.claim_seconds(now),
        )

    async def _seat(self, session: str) -> str:
        """The worker on which `session` has a seat now.

        Where every seat is taken but one is being given back, that one is waited for, two seconds
        at most: leaving and coming again never meets a full house.
        """
        give_up = self.now() + CLOSE_ANSWER_SECONDS
        while True:
            answer = self._lives.admission.request(session)
            if isinstance(answer, Admitted):
                return answer.worker
            assert isinstance(answer, Refused)  # there is no queue
            if answer.reason == "no_worker":
                raise errors.NoWorker(
                    f"no worker is ready: {self.readiness().stage}", retry_after=answer.retry_after
                )
            closing = any(record.ending for record in self._ledger.live())
            left = give_up - self.now()
            if not closing or left <= 0:
                raise errors.HouseFull("every seat is taken", retry_after=answer.retry_after)
            self._lives.seat_news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._lives.seat_news.wait()
            self._refuse_while_stopping()

    async def connect(self, session: str, secret: str, body: Connect) -> Connection:
        """Let the player join: the answer to the offer. The first call claims the seat.

        Raises:
            UnknownSession, SessionEnded, TooManyRequests: As said.
            WorkerRefused: With the worker's code, such as `bad_offer` or `playing_elsewhere`.
            WorkerSlow, WorkerGone: The worker did not answer.
        """
        record = self._ledger.owned(session, secret)
        _refuse_ended(record)
        if record.connects >= MAX_CONNECTS:
            raise errors.TooManyRequests(
                "this session is being connected already", session=session, retry_after=1.0
            )
        if (seconds := record.pace.take(self.now())) > 0:
            raise errors.TooManyRequests(
                "this session is connected again and again", session=session, retry_after=seconds
            )
        if record.life.state is State.ADMITTED:
            self._lives.take(record, Cause.CLAIMED)
        with record.connecting():
            reply = await self._ask_to_connect(record, body)
        _refuse_ended(record)  # it may have ended meanwhile
        if isinstance(reply, Failure):
            log.info("connect_refused", session_id=session, code=reply.code)
            field = reply.field or ("sdp" if reply.code == "bad_offer" else None)
            raise errors.WorkerRefused(reply.code, reply.message, field, session)
        assert isinstance(reply, Connected), reply.type
        return reply.connection

    def invite(self, session: str, secret: str) -> SpectatorLink:
        """What lets others watch a session.

        Raises:
            UnknownSession, SessionEnded: As said.
            NoSpectators: Players are not reached through LiveKit.
        """
        record = self._ledger.owned(session, secret)
        _refuse_ended(record)
        self._refuse_spectators(record)
        return SpectatorLink(session_id=record.id, watch_token=record.watch_token)

    async def watch(self, session: str, watch_token: str) -> Connection:
        """Let a spectator join.

        Raises:
            UnknownSession, SessionEnded, TooManyRequests: As said.
            WorkerRefused: With the worker's code, such as `nothing_to_watch`.
            WorkerSlow, WorkerGone: The worker did not answer.
        """
        record = self._ledger.watched(session, watch_token)
        _refuse_ended(record)
        self._refuse_spectators(record)
        if record.watches >= MAX_WATCHES:
            raise errors.TooManyRequests(
                "too many people come to watch at this moment", session=session, retry_after=1.0
            )
        record.watches += 1
        try:
            reply = await self._ask_to_connect(record, Connect(), watch=True)
        finally:
            record.watches -= 1
        _refuse_ended(record)
        if isinstance(reply, Failure):
            raise errors.WorkerRefused(reply.code, reply.message, reply.field, session)
        assert isinstance(reply, Connected), reply.type
        return reply.connection

    def _refuse_spectators(self, record: SessionRecord) -> None:
        if self.pool.transport(record.worker) != "livekit":
            raise errors.NoSpectators(
                "spectators can only watch where players are reached through LiveKit",
                session=record.id,
            )

    async def _ask_to_connect(
        self, record: SessionRecord, body: Connect, *, watch: bool = False
    ) -> WorkerReply:
        request = ConnectSession(
            session=record.id,
            start=record.start,
            body=body,
            connect_seconds=self._settings.connect_seconds,
            watch=watch,
        )
        try:
            async with asyncio.timeout(self._settings.worker_call_seconds):
                return await self._lives.call(record.worker, request)
        except TimeoutError:
            raise errors.WorkerSlow(
                "the worker is busy; try again", session=record.id, retry_after=2.0
            ) from None

    async def delete(self, session: str, secret: str | None) -> SessionRecord:
        """End a session and wait up to 2 s for the worker to have released it.

        Args:
            session: Its id.
            secret: Its secret, or None for an operator.
        """
        if secret is not None:
            record, reason = self._ledger.owned(session, secret), EndReason.LEFT
        else:
            record, reason = self._ledger.known(session), EndReason.KICKED
        self._lives.end(record, reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_ANSWER_SECONDS):
                await record.over.wait()
        return record

    def owned(self, session: str, secret: str) -> SessionRecord:
        """A session by id and secret, or `UnknownSession`."""
        return self._ledger.owned(session, secret)

    def view(self, record: SessionRecord) -> SessionView:
        """What is the case with a session now."""
        return record.view(self.now())

    def now(self) -> float:
        """On the clock of all deadlines."""
        return self._lives.clock()

    # ------------------------------------------------------------------ for operators
    def sessions(self) -> tuple[SessionView, ...]:
        """Every session that is known, those that are over included."""
        now = self.now()
        self._ledger.prune(now)
        return tuple(record.view(now) for record in self._ledger.all())

    def live(self) -> tuple[SessionRecord, ...]:
        """Every session that is not over."""
        return self._ledger.live()

    async def doubt(self, session: str) -> None:
        """Nobody seems to be in a session's room: its worker finds out, and tells what is so."""
        record = self._lives.ledger.find(session)
        if record is not None and not record.ending:
            with suppress(WorkerGone):  # then the session is over
                await self._lives.call(record.worker, CheckRoom(session=session))

    def occupancy(self) -> Occupancy:
        """Seats by what they are."""
        return self._lives.admission.occupancy()

    def drain(self, worker: str) -> None:
        """Admit nobody to a worker any more; once it is empty, a fresh one takes its place."""
        if self.pool.port(worker) is None:
            raise errors.UnknownWorkerId("there is no worker with this id that is ready")
        self._lives.drain(worker)

    @property
    def pool(self) -> WorkerPool:
        """The workers."""
        return self._lives.pool

    @property
    def metrics(self) -> FrontMetrics:
        """What is counted."""
        return self._lives.metrics

    # ------------------------------------------------------------------ what is played here
    def worlds(self) -> tuple[WorldContent, ...]:
        """Every world that a worker has loaded; kept while it is being restarted."""
        return tuple(self._lives.worlds.values())

    def start_point(self, world: str, name: str) -> StartPointContent:
        """A start point with its picture, or `UnknownPicture`."""
        content = self._lives.worlds.get(world)
        for point in content.start_points if content else ():
            if point.name == name:
                return point
        raise errors.UnknownPicture("there is no such start point")

    def readiness(self) -> Readiness:
        """Whether a session can be played, else what is being done."""
        return self._lives.readiness()

    def on_readiness(self, listener: Callable[[Readiness], None]) -> None:
        """Tell `listener` now and whenever `readiness` may have changed."""
        self._lives.on_readiness(listener)

    def on_over(self, listener: Callable[[SessionRecord], None]) -> None:
        """Tell `listener` of each session that is over from now on."""
        self._lives.on_over = listener

    def _refuse_while_stopping(self) -> None:
        if self._lives.stopping:
            raise errors.ShuttingDown("the service is stopping", retry_after=10.0)


def _refuse_ended(record: SessionRecord) -> None:
    if record.ending:
        raise errors.SessionEnded(record.id, record.life.reason)
