"""Frames on their way out: paced by the clock, handed to the transport, never waited for.

`server.media.pacing.Pacer` says when; this shell wakes up then. No player can slow anything down
here: a transport takes a frame or drops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from server.media.pacing import IDLE_FPS, PacedFrame, Pacer
from server.transports.base import I420Frame, MediaTransport

Picture = NDArray[np.uint8]
POSTER = -1  # the chunk index of a start point's picture
POSTER_RECEIPT = 0


class Flow(Enum):
    """What goes out."""

    PLAYING = auto()
    HELD = auto()  # the picture stands; frames that are there wait
    OFF = auto()  # nobody is there


class Publisher:
    """One session's pictures; made off, switched by `flow`."""

    def __init__(
        self,
        transport: MediaTransport,
        pacer: Pacer[Picture],
        clock: Callable[[], float],
        on_new: Callable[[PacedFrame[Picture]], None],
    ) -> None:
        """`on_new` hears of each picture that is published for the first time."""
        self._transport = transport
        self._pacer = pacer
        self._clock = clock
        self._on_new = on_new
        self._flow = Flow.OFF
        self._last: I420Frame | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.sent = 0
        self.dropped = 0

    @property
    def pacer(self) -> Pacer[Picture]:
        """The clock of the pictures."""
        return self._pacer

    @property
    def flow(self) -> Flow:
        """What goes out."""
        return self._flow

    def push(
        self, pictures: Sequence[Picture], *, epoch: int, chunk: int, receipt: int, last: bool
    ) -> None:
        """Pictures of a chunk, in order; those of an older epoch are dropped."""
        self._pacer.push(
            pictures, epoch=epoch, chunk=chunk, receipt=receipt, now=self._clock(), last=last
        )
        self._arm()

    def begin(self, epoch: int, poster: Picture) -> None:
        """A new incarnation: nothing of an older one goes out from here on, not even again."""
        if epoch > self._pacer.epoch:
            self._pacer.reset(epoch)
            self._last = None
        self.push([poster], epoch=epoch, chunk=POSTER, receipt=POSTER_RECEIPT, last=True)

    def switch(self, flow: Flow) -> None:
        """Play, hold the picture, or send nothing."""
        if flow is not self._flow:
            self._flow = flow
            self._arm()

    def again(self) -> None:
        """Send the picture that stands, for somebody who has just come."""
        if self._last is not None:
            self._send(self._last)

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        self._disarm()
        self._last = None

    # ------------------------------------------------------------------ the clock
    def _arm(self) -> None:
        self._disarm()
        if self._closed or self._flow is Flow.OFF:
            return
        now = self._clock()
        if self._flow is Flow.HELD and self._last is not None:
            due: float | None = now + 1.0 / IDLE_FPS
        else:
            due = self._pacer.next_due(now)
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, due - now), self._wake)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        if self._flow is Flow.HELD and self._last is not None:
            self._send(self._last)
        else:
            self._publish_due()
        self._arm()

    def _publish_due(self) -> None:
        paced = self._pacer.pop_due(self._clock())
        if paced is None or paced.epoch < self._pacer.epoch:
            return
        data = paced.media
        self._last = I420Frame(
            data, data.shape[1], data.shape[0] * 2 // 3, paced.frame_id, paced.receipt
        )
        self._send(self._last)
        if not paced.repeated:
            self._on_new(paced)

    def _send(self, frame: I420Frame) -> None:
        if self._transport.send_frame(frame):
            self.sent += 1
        else:
            self.dropped += 1
