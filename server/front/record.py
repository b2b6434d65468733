"""One session as the front door knows it, and the streams that watch it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from admission.session import EndReason, SessionLife, State
from server.front.errors import TooManyRequests, UnknownSession
from server.front.quotas import Pace
from server.protocol.http import AdmittedEvent, EndedEvent, SessionEvent, SessionView, StateEvent
from server.protocol.worker import StartChoice

MAX_STREAMS: Final = 8  # event streams of one session
CONNECTS_AT_ONCE: Final = 20  # of one session, then CONNECTS_PER_SECOND: each costs its worker
CONNECTS_PER_SECOND: Final = 3.0  # 50 ms; a page that reloads again and again needs this many
MAX_UNREAD: Final = 64  # events that one stream may be behind


def new_session_id() -> str:
    """Not a secret, but not to be guessed either."""
    return secrets.token_hex(10)


class Watcher:
    """The events of one session for one stream. Behind by too much, it loses the oldest ones.

    That is harmless: each event tells a whole state, so the newest is enough.
    """

    def __init__(self, first: SessionEvent) -> None:
        self._unread: deque[SessionEvent] = deque([first], maxlen=MAX_UNREAD)
        self._news = asyncio.Event()
        self._news.set()

    def put(self, event: SessionEvent) -> None:
        """Something has happened."""
        self._unread.append(event)
        self._news.set()

    async def next(self) -> SessionEvent:
        """The next event, waiting for it."""
        await self._news.wait()
        event = self._unread.popleft()
        if not self._unread:
            self._news.clear()
        return event


class SessionRecord:
    """A session: who it is, what it starts from, where it runs, its life, and who watches."""

    def __init__(
        self,
        session: str,
        *,
        world: str,
        start: StartChoice,
        worker: str,
        life: SessionLife,
        address: str,
    ) -> None:
        self.id = session
        self._token = secrets.token_urlsafe(32)
        self._digest = _digest(self._token)
        self.world, self.start, self.worker = world, start, worker
        self.life = life
        self.address = address
        self.stage: str | None = None
        self.ended_at: float | None = None
        self.connects = 0  # `connect` requests on their way to the worker
        self.pace = Pace(CONNECTS_AT_ONCE, CONNECTS_PER_SECOND)  # of `connect`
        self.watches = 0  # and those of spectators
        self.settled = asyncio.Event()  # set while there are none
        self.settled.set()
        self.over = asyncio.Event()  # the session holds nothing any more
        self._watchers: set[Watcher] = set()

    def tell_secret(self) -> str:
        """The secret, for the one answer that tells it; only its digest is kept afterwards."""
        token, self._token = self._token, ""
        return token

    @property
    def ending(self) -> bool:
        """Whether it is over, or about to be."""
        return self.life.state is State.DRAINING or self.life.ended

    @contextmanager
    def connecting(self) -> Iterator[None]:
        """While a `connect` is on its way to the worker."""
        self.connects += 1
        self.settled.clear()
        try:
            yield
        finally:
            self.connects -= 1
            if not self.connects:
                self.settled.set()

    def knows(self, secret: str) -> bool:
        """Whether `secret` is this session's, in constant time."""
        return hmac.compare_digest(_digest(secret), self._digest)

    @property
    def watch_token(self) -> str:
        """What lets others watch, and nothing else; the same for the session's life."""
        return hmac.new(self._digest, b"watch", hashlib.sha256).hexdigest()

    def shows_itself_to(self, watch_token: str) -> bool:
        """Whether `watch_token` is this session's, in constant time."""
        return hmac.compare_digest(_digest(watch_token), _digest(self.watch_token))

    @property
    def streams(self) -> int:
        """Event streams that are open."""
        return len(self._watchers)

    def check_stream(self) -> None:
        """Raise `TooManyRequests` if there are as many streams as a session may have."""
        if len(self._watchers) >= MAX_STREAMS:
            raise TooManyRequests(
                f"a session has at most {MAX_STREAMS} event streams",
                session=self.id,
                retry_after=5.0,
            )

    @contextmanager
    def watched(self, now: float) -> Iterator[Watcher]:
        """Watch from the current state on."""
        watcher = Watcher(self.event(now))
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def tell(self, now: float) -> None:
        """Tell every stream what is the case now."""
        event = self.event(now)
        for watcher in self._watchers:
            watcher.put(event)

    def event(self, now: float) -> SessionEvent:
        """What is the case now, as an event."""
        if self.life.ended:
            reason = self.life.reason or EndReason.LEFT
            return EndedEvent(reason=reason, played_seconds=self._played(now))
        if self.life.state is State.ADMITTED:
            return AdmittedEvent(claim_seconds=self.claim_seconds(now) or 0.0)
        return StateEvent(state=self.life.state, stage=self.stage)

    def claim_seconds(self, now: float) -> float | None:
        """How long the seat is still kept for a player who has not come yet."""
        deadline = self.life.next_deadline()
        if self.life.state is not State.ADMITTED or deadline is None:
            return None
        return round(max(0.0, deadline - now), 3)

    def view(self, now: float) -> SessionView:
        """What `GET` answers."""
        return SessionView(
            session_id=self.id,
            world=self.world,
            start_point=self.start.start_point,
            status=self.life.state,
            reason=self.life.reason,
            stage=self.stage,
            claim_seconds=self.claim_seconds(now),
            played_seconds=self._played(now),
        )

    def _played(self, now: float) -> float:
        return round(self.life.played_seconds(now), 3)


class Ledger:
    """All sessions that are known: the live ones, and for a while those that are over."""

    def __init__(self, keep_seconds: float, keep_count: int) -> None:
        self._keep_seconds, self._keep_count = keep_seconds, keep_count
        self._live: dict[str, SessionRecord] = {}
        self._ended: OrderedDict[str, SessionRecord] = OrderedDict()
        self._nobody = _digest(secrets.token_urlsafe(32))

    def add(self, record: SessionRecord) -> None:
        """A session begins."""
        self._live[record.id] = record

    def end(self, record: SessionRecord, now: float) -> None:
        """A session is over: it is kept for a while, so that its reason can be asked for."""
        self._live.pop(record.id, None)
        record.ended_at = now
        self._ended[record.id] = record
        self.prune(now)

    def prune(self, now: float) -> None:
        """Forget what has been over for too long, and what is too much."""
        while self._ended:
            oldest = next(iter(self._ended.values()))
            age = now - (oldest.ended_at or 0.0)
            if len(self._ended) <= self._keep_count and age <= self._keep_seconds:
                return
            del self._ended[oldest.id]

    def live(self) -> tuple[SessionRecord, ...]:
        """Every session that is not over."""
        return tuple(self._live.values())

    def all(self) -> tuple[SessionRecord, ...]:
        """Every session that is known."""
        return (*self._live.values(), *self._ended.values())

    def find(self, session: str) -> SessionRecord | None:
        """By id alone: for what the worker says."""
        return self._live.get(session) or self._ended.get(session)

    def known(self, session: str) -> SessionRecord:
        """By id alone, or `UnknownSession`."""
        record = self.find(session)
        if record is None:
            raise UnknownSession
        return record

    def watched(self, session: str, watch_token: str) -> SessionRecord:
        """By id and watch token; `UnknownSession` for either."""
        record = self.find(session)
        if record is None or not record.shows_itself_to(watch_token):
            raise UnknownSession
        return record

    def owned(self, session: str, secret: str) -> SessionRecord:
        """By id and secret; `UnknownSession` for either, after the same work."""
        record = self.find(session)
        if record is None:
            hmac.compare_digest(_digest(secret), self._nobody)
            raise UnknownSession
        if not record.knows(secret):
            raise UnknownSession
        return record


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
