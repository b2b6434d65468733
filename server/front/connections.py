"""One client's TCP connection: how long it may keep us waiting, and how many there may be.

uvicorn waits for ever for the head of a request and for a client that does not read its answer, and
takes any number of connections. A few hundred of those that say nothing would use up every file
descriptor: then nobody gets in, and no worker can be started in place of a dead one.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar, Final

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from server.front.errors import RequestRejected
from server.front.guard import SECURITY_HEADERS
from server.front.problems import response_of

log = structlog.get_logger(__name__)

HEAD_SECONDS: Final = 10.0  # from the first wait for a request to the end of its head
UNREAD_SECONDS: Final = 30.0  # that an answer may stand still because nobody reads it
MAX_CONNECTIONS: Final = 4096
TELL_EVERY_SECONDS: Final = 60.0
_OWN_FILES: Final = 32  # the listening socket, pipes of workers, files of the page


def accept_at_once() -> int:
    """How many connections are accepted in one go, all before the first one is looked at."""
    return min(512, max(16, _files_allowed() // 16))


def connection_limit() -> int:
    """How many connections there may be, so that descriptors are left for everything else."""
    # Those that are closed to make room keep theirs until the event loop's next turn.
    reserved = _OWN_FILES + 2 * accept_at_once()
    return min(MAX_CONNECTIONS, max(16, _files_allowed() - reserved))


def _files_allowed() -> int:
    try:
        import resource
    except ImportError:  # Windows: no such limit
        return 1 << 20
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


class Connection(H11Protocol):
    """uvicorn's protocol with bounds. Full, it closes whoever has been idle for longest."""

    head_seconds: ClassVar = HEAD_SECONDS
    unread_seconds: ClassVar = UNREAD_SECONDS
    _told_at: ClassVar = -TELL_EVERY_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As uvicorn makes it."""
        super().__init__(*args, **kwargs)
        self._idle_since = 0.0
        self._head_due: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is under way: it has sent none, a part of one, or had its answer."""
        return self.conn.their_state is h11.IDLE

    # ------------------------------------------------------------------ asyncio.Protocol
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is here; where there are too many, one has to go."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        self._watch_head()
        if len(self.connections) > connection_limit():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._head_due, self._unread):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        super().data_received(data)
        self._watch_head()

    def pause_writing(self) -> None:
        """It reads more slowly than it is answered, or not at all."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    # ------------------------------------------------------------------ uvicorn
    def on_response_complete(self) -> None:
        """It may send its next request."""
        self._idle_since = time.monotonic()
        if self.transport.get_write_buffer_size():
            self._expect_reading()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """It has sent no other request."""
        self._close()

    def send_400_response(self, msg: str) -> None:
        """What came is not HTTP: a problem like any other."""
        answer = response_of(
            RequestRejected("bad_request", "this is not a request that HTTP knows")
        )
        headers = [*answer.raw_headers, *SECURITY_HEADERS.items(), (b"connection", b"close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    # ------------------------------------------------------------------ bounds
    def _watch_head(self) -> None:
        if not self.idle:
            if self._head_due is not None:
                self._head_due.cancel()
                self._head_due = None
        elif self._head_due is None:
            self._head_due = self.loop.call_later(self.head_seconds, self._close)

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.conn.send(h11.ConnectionClosed())
            self.transport.close()

    def _expect_reading(self) -> None:
        if self._unread is None:
            self._unread = self.loop.call_later(self.unread_seconds, self._give_up)

    def _give_up(self) -> None:
        self._unread = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _make_room(self) -> None:
        now = time.monotonic()
        if now - Connection._told_at >= TELL_EVERY_SECONDS:
            Connection._told_at = now
            log.warning("too_many_connections", limit=connection_limit())
        idle = [c for c in self.connections if isinstance(c, Connection) and c.idle]
        longest = min(idle, key=lambda connection: connection._idle_since)
        self.connections.discard(longest)
        longest.transport.abort()
