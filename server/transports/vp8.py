"""Encodes one connection's pictures as VP8, off the event loop and in a bounded number of threads.

aiortc's own encoder is not used: it follows the receiver's bandwidth estimate, which begins low,
and it starts a new stream with a large key frame at each change of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from typing import TypeAlias, cast

import av
from av import VideoStream
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType

from server.media.receipts import CLOCK_RATE
from server.transports.base import I420Frame

VideoPacket: TypeAlias = "Packet[VideoStream]"

TIME_BASE = Fraction(1, CLOCK_RATE)
KEYFRAME_EVERY_TICKS = CLOCK_RATE // 4  # key frames on request come no faster than this


@cache
def encoder_threads() -> ThreadPoolExecutor:
    """The threads that all connections of this process share."""
    return ThreadPoolExecutor(max(1, min(4, (os.cpu_count() or 1) // 2)), "veldt-encode")


class Vp8Encoder:
    """libvpx set for real time: no look-ahead, constant bitrate, one thread, no denoiser."""

    def __init__(self, bitrate: int) -> None:
        self._bitrate = bitrate
        self._codec: VideoCodecContext | None = None

    def encode(self, frame: I420Frame, pts: int, keyframe: bool) -> bytes:
        """One picture in, its bytes out; the first one, and any of a new size, is a key frame."""
        codec = self._codec
        if codec is None or (codec.width, codec.height) != (frame.width, frame.height):
            codec = self._codec = self._new_codec(frame.width, frame.height)
            keyframe = True
        picture = av.VideoFrame.from_ndarray(frame.data, "yuv420p")
        picture.pts, picture.time_base = pts, TIME_BASE
        if keyframe:
            picture.pict_type = PictureType.I
        return b"".join(bytes(packet) for packet in codec.encode(picture))

    def _new_codec(self, width: int, height: int) -> VideoCodecContext:
        codec = av.CodecContext.create("libvpx", "w")
        codec.width, codec.height, codec.pix_fmt = width, height, "yuv420p"
        codec.time_base, codec.framerate = TIME_BASE, Fraction(30)
        codec.bit_rate, codec.gop_size = self._bitrate, 3000
        codec.qmin, codec.qmax, codec.thread_count = 2, 52, 1
        rate = str(self._bitrate)
        codec.options = {
            "deadline": "realtime",
            "cpu-used": "-6",
            "lag-in-frames": "0",
            "minrate": rate,
            "maxrate": rate,
            "bufsize": rate,  # one second
            "undershoot-pct": "100",
            "overshoot-pct": "15",
            "static-thresh": "1",
            "noise-sensitivity": "0",
        }
        return codec


class VideoOut:
    """The newest picture goes in, packets come out in order; at most one waits, one is encoded.

    `on_packet` is called on the event loop with the picture and its packet; `on_fault` once, where
    encoding raised.
    """

    def __init__(
        self,
        bitrate: int,
        on_packet: Callable[[I420Frame, VideoPacket], None],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._encoder = Vp8Encoder(bitrate)
        self._on_packet = on_packet
        self._on_fault = on_fault
        self._waiting: tuple[I420Frame, int] | None = None
        self._running: asyncio.Future[bytes] | None = None
        self._keyframe_wanted = False
        self._keyframe_pts = -KEYFRAME_EVERY_TICKS
        self._closed = False
        self.replaced = 0  # pictures that a newer one overtook

    def want_keyframe(self) -> None:
        """The far end cannot decode: begin anew with the next picture."""
        self._keyframe_wanted = True

    def offer(self, frame: I420Frame, pts: int) -> None:
        """Encode this picture next. `pts` is in 90 kHz ticks and grows."""
        if self._waiting is not None:
            self.replaced += 1
        self._waiting = (frame, pts)
        if self._running is None:
            self._next()

    async def aclose(self) -> None:
        """Drop what waits and let what runs end."""
        self._closed = True
        self._waiting = None
        if self._running is not None:
            await asyncio.wait([self._running])

    def _next(self) -> None:
        if self._waiting is None or self._closed:
            return
        (frame, pts), self._waiting = self._waiting, None
        keyframe = self._keyframe_wanted and pts - self._keyframe_pts >= KEYFRAME_EVERY_TICKS
        if keyframe:
            self._keyframe_wanted, self._keyframe_pts = False, pts
        self._running = asyncio.get_running_loop().run_in_executor(
            encoder_threads(), self._encoder.encode, frame, pts, keyframe
        )
        self._running.add_done_callback(lambda job: self._encoded(frame, pts, job))

    def _encoded(self, frame: I420Frame, pts: int, job: asyncio.Future[bytes]) -> None:
        self._running = None
        if self._closed:
            return
        if fault := job.exception():
            self._closed = True
            self._on_fault(fault)
            return
        if encoded := job.result():
            packet = cast(VideoPacket, Packet(encoded))
            packet.pts, packet.time_base = pts, TIME_BASE
            self._on_packet(frame, packet)
        self._next()
