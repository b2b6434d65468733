from __future__ import annotations

from fractions import Fraction

import av
import numpy as np
import pytest

from pipeline.registry import load_world
from pipeline.service import ControlSnapshot
from pipeline.testworlds.marker import Marker, read_marker
from tests.fakes.player import FakePlayer


def played(chunks: int = 3, **options: object) -> np.ndarray:
    controls = [
        ControlSnapshot(
            held=frozenset({"KeyW", "KeyL", "KeyQ"}) if index % 2 else frozenset(),
            presses={"KeyW": 1},
            receipt=(0xABCD << 32) | (index + 0x80000001),
        )
        for index in range(chunks)
    ]
    return FakePlayer(load_world("marker", options)).play(controls)


def expected(frame: int) -> Marker:
    index = frame // 4
    held = frozenset({"KeyW", "KeyL"}) if index % 2 else frozenset()
    return Marker(frame, index + 0x80000001, index + 1, held)


def test_every_frame_says_which_it_is_and_what_it_shows():
    assert [read_marker(frame) for frame in played()] == [expected(frame) for frame in range(12)]


@pytest.mark.parametrize(("width", "height"), [(128, 96), (256, 160), (640, 480), (832, 464)])
def test_any_size_can_be_read(width, height):
    film = played(1, width=width, height=height)
    assert film.shape == (4, height, width, 3)
    assert read_marker(film[3]) == expected(3)


@pytest.mark.parametrize("bit_rate", [250_000, 1_500_000])
def test_it_survives_vp8(bit_rate):
    film = played(6)
    encoder = av.CodecContext.create("libvpx", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 256, 160, "yuv420p"
    encoder.bit_rate, encoder.time_base = bit_rate, Fraction(1, 16)
    encoder.options = {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0"}
    decoder = av.CodecContext.create("vp8", "r")
    shown = []
    for number, picture in enumerate(film):
        frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format="yuv420p")
        frame.pts = number
        for packet in encoder.encode(frame):
            shown += [f.to_ndarray(format="rgb24") for f in decoder.decode(packet)]
    assert len(shown) == 24
    assert [read_marker(picture) for picture in shown] == [expected(k) for k in range(24)]


def test_what_is_no_marker_is_not_read_as_one():
    random = np.random.RandomState(0)
    noise = random.randint(0, 256, (200, 160, 256, 3)).astype(np.uint8)
    assert all(read_marker(picture) is None for picture in noise)
    spoilt = played(1)[0]
    spoilt[16:32, 48:64] = 255 - spoilt[16:32, 48:64]  # one block turned over
    assert read_marker(spoilt) is None
    assert read_marker(spoilt[:60, :100]) is None


def test_the_pattern_moves_from_frame_to_frame():
    film = played(2)
    below = film[:, 100:].astype(int)
    assert (np.abs(np.diff(below, axis=0)).mean((1, 2, 3)) > 1).all()
