from __future__ import annotations

import asyncio
import threading

import av
import numpy as np
import pytest

from server.media.receipts import CLOCK_RATE
from server.transports.base import I420Frame
from server.transports.vp8 import VideoOut, VideoPacket, Vp8Encoder, encoder_threads
from tests.fakes.frames import i420_frame

pytestmark = pytest.mark.anyio


def is_keyframe(vp8: bytes) -> bool:
    return not vp8[0] & 1  # RFC 6386 §9.1


def luma(decoder: av.VideoCodecContext, encoded: bytes, height: int) -> np.ndarray:
    (picture,) = decoder.decode(av.Packet(encoded))
    return picture.to_ndarray()[:height].astype(float)


def test_pictures_come_back_crisp() -> None:
    encoder, decoder = Vp8Encoder(3_000_000), av.CodecContext.create("libvpx", "r")
    for number in range(20):
        frame = i420_frame(number)
        shown = luma(decoder, encoder.encode(frame, number * 2812, False), frame.height)
        error = np.mean((shown - frame.data[: frame.height]) ** 2)
        assert error < 6.5, number  # 40 dB


def test_first_of_a_size_and_wanted_ones_are_key_frames() -> None:
    encoder = Vp8Encoder(3_000_000)
    kinds = [is_keyframe(encoder.encode(i420_frame(n), n * 2812, n == 3)) for n in range(6)]
    assert kinds == [True, False, False, True, False, False]
    assert is_keyframe(encoder.encode(i420_frame(7, width=320, height=192), 9 * 2812, False))


async def test_newest_picture_wins_and_pts_are_kept() -> None:
    sent: list[tuple[int, int | None]] = []
    both = asyncio.Event()

    def on_packet(frame: I420Frame, packet: VideoPacket) -> None:
        sent.append((frame.frame_id, packet.pts))
        if len(sent) == 2:
            both.set()

    out = VideoOut(3_000_000, on_packet, pytest.fail)
    for number in range(50):
        out.offer(i420_frame(number), 1000 + number)
    await asyncio.wait_for(both.wait(), 30)
    assert sent == [(0, 1000), (49, 1049)]
    assert out.replaced == 48
    await out.aclose()


async def test_key_frame_requests_are_answered_at_a_bounded_rate() -> None:
    encoded: list[bytes] = []
    done = asyncio.Event()

    def on_packet(frame: I420Frame, packet: VideoPacket) -> None:
        encoded.append(bytes(packet))
        done.set()

    out = VideoOut(3_000_000, on_packet, pytest.fail)
    for number in range(40):  # a second and a quarter at 32 fps, asked for each time
        out.want_keyframe()
        done.clear()
        out.offer(i420_frame(number), number * CLOCK_RATE // 32)
        await asyncio.wait_for(done.wait(), 30)
    assert 4 <= sum(map(is_keyframe, encoded)) <= 6
    await out.aclose()


async def test_fault_of_the_encoder_is_told_once() -> None:
    faults: list[BaseException] = []
    told = asyncio.Event()

    def on_fault(fault: BaseException) -> None:
        faults.append(fault)
        told.set()

    out = VideoOut(3_000_000, lambda *_: pytest.fail("nothing can come"), on_fault)
    bad = I420Frame(np.zeros((3, 5), np.uint8), 256, 160, 1, 0)
    out.offer(bad, 1)
    out.offer(bad, 2)
    await asyncio.wait_for(told.wait(), 30)
    out.offer(bad, 3)
    await out.aclose()
    assert len(faults) == 1


async def test_threads_are_shared_and_bounded() -> None:
    outs = [VideoOut(3_000_000, lambda *_: None, pytest.fail) for _ in range(8)]
    for out in outs:
        out.offer(i420_frame(0), 1)
    for out in outs:
        await out.aclose()
    names = [t.name for t in threading.enumerate() if t.name.startswith("veldt-encode")]
    assert 1 <= len(names) <= encoder_threads()._max_workers
