"""`GET /v1/sessions/{id}/events`: the life of one session as a stream (text/event-stream).

The first event tells the current state, so that a reconnect misses nothing; `ended` is the last.
A comment line goes out at least every 15 s, so that proxies and the page know that it is alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.front.record import Watcher
from server.protocol.http import EndedEvent, SessionEvent

COMMENT_SECONDS: Final = 10.0
_HEADERS: Final = {
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # nginx passes it on at once
}


class EventStream(Response):
    """Streams what `watch` opens until the session is over or the client has gone."""

    media_type = "text/event-stream"

    def __init__(
        self,
        watch: Callable[[], AbstractContextManager[Watcher]],
        *,
        comment_seconds: float = COMMENT_SECONDS,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._watch, self._comment_seconds = watch, comment_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application: one reader that waits for goodbye, one writer."""
        with self._watch() as watcher:
            writing = asyncio.create_task(self._write(watcher, send))
            leaving = asyncio.create_task(_goodbye(receive))
            try:
                await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                writing.cancel()
                leaving.cancel()
                await asyncio.gather(writing, leaving, return_exceptions=True)
        if not writing.cancelled() and (error := writing.exception()) is not None:
            raise error

    async def _write(self, watcher: Watcher, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        ended = False
        while not ended:
            try:
                async with asyncio.timeout(self._comment_seconds):
                    event = await watcher.next()
            except TimeoutError:
                chunk = b": still here\n\n"
            else:
                chunk, ended = encode(event), isinstance(event, EndedEvent)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def encode(event: SessionEvent) -> bytes:
    """One event: its name, and its JSON on one line."""
    return f"event: {event.event}\ndata: {event.model_dump_json()}\n\n".encode()


async def _goodbye(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
