"""The worker's end of the pipe: two threads, so that neither side can block the event loop.

`Inbox` reads frames and hands them over; the end of its stream means that the front door is gone.
`Outbox` writes frames in order and holds a bounded number of them.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from pydantic import BaseModel

from server.protocol.framing import FrameSplitter, FramingError, pack_frame

READ_BYTES = 1 << 16
HELD_FRAMES = 4096  # a front door that does not read for this long is as good as gone


def write_all(fd: int, payload: bytes) -> None:
    """Write all of it; blocks."""
    rest = memoryview(payload)
    while rest:
        rest = rest[os.write(fd, rest) :]


class Inbox:
    """Frames from `fd`, in order."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._splitter = FrameSplitter()
        self._early: list[bytes] = []

    def first(self) -> bytes | None:
        """The first frame, waiting for it; None if the stream ends before. Before `start`."""
        while not self._early:
            received = os.read(self._fd, READ_BYTES)
            if not received:
                return None
            self._early += self._splitter.feed(received)
        return self._early.pop(0)

    def start(
        self,
        loop: asyncio.AbstractEventLoop,
        on_frame: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        """Call `on_frame` on `loop` for each frame from now on, and `on_end` once.

        `on_end` comes from the reading thread, since the loop may be stuck by then.
        """
        threading.Thread(
            target=self._read, args=(loop, on_frame, on_end), name="veldt-inbox", daemon=True
        ).start()

    def _read(
        self,
        loop: asyncio.AbstractEventLoop,
        on_frame: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        try:
            frames, self._early = self._early, []
            while True:
                for frame in frames:
                    loop.call_soon_threadsafe(on_frame, frame)
                received = os.read(self._fd, READ_BYTES)
                if not received:
                    return
                frames = self._splitter.feed(received)
        except (OSError, FramingError, RuntimeError):  # a closed fd or loop, or a broken stream
            return
        finally:
            on_end()


class Outbox:
    """Frames to `fd`, written in order by a thread of its own."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._waiting: queue.Queue[bytes | None] = queue.Queue(HELD_FRAMES)
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="veldt-outbox", daemon=True)
        self._thread.start()

    def put(self, message: BaseModel, *, droppable: bool = False) -> None:
        """Send a message. Never blocks: where nobody reads, a droppable one is left out."""
        if droppable and self._waiting.qsize() > HELD_FRAMES // 2:
            self.dropped += 1
            return
        try:
            self._waiting.put_nowait(pack_frame(message.model_dump_json().encode()))
        except queue.Full:
            self._on_broken()

    def flush(self, seconds: float) -> None:
        """Write what is waiting and end; waits at most so long."""
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _write(self) -> None:
        try:
            while (frame := self._waiting.get()) is not None:
                write_all(self._fd, frame)
        except OSError:  # nobody is at the other end any more
            self._on_broken()
