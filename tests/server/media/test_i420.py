"""RGB to I420, against the formula of BT.601 written out."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from server.media.i420 import rgb_to_i420


def reference(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """BT.601 limited range; each chroma sample is the mean of its four pixels."""
    height, width, _ = rgb.shape
    r, g, b = (rgb[..., channel].astype(np.float64) / 255 for channel in range(3))
    y = 16 + 219 * (0.299 * r + 0.587 * g + 0.114 * b)
    u = 128 + 224 * (0.5 / (1 - 0.114)) * (b - (0.299 * r + 0.587 * g + 0.114 * b))
    v = 128 + 224 * (0.5 / (1 - 0.299)) * (r - (0.299 * r + 0.587 * g + 0.114 * b))
    halves = [p.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3)).ravel() for p in (u, v)]
    return np.concatenate([y.ravel(), *halves]).reshape(height * 3 // 2, width)


def noise(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(height * width).integers(
        0, 256, (height, width, 3), dtype=np.uint8
    )


@pytest.mark.parametrize("size", [(160, 256), (464, 832), (16, 16), (34, 18), (6, 130)])
def test_it_is_the_formula_within_one_step(size: tuple[int, int]):
    picture = noise(*size)
    planar = rgb_to_i420(picture)
    assert (planar.dtype, planar.shape) == (np.uint8, (size[0] * 3 // 2, size[1]))
    assert planar.flags.c_contiguous
    assert np.abs(planar - reference(picture)).max() <= 1.0


@pytest.mark.parametrize(
    ("colour", "yuv"),
    [
        ((0, 0, 0), (16, 128, 128)),
        ((255, 255, 255), (235, 128, 128)),
        ((255, 0, 0), (81, 90, 240)),
        ((0, 255, 0), (145, 54, 34)),
        ((0, 0, 255), (41, 240, 110)),
    ],
)
def test_pure_colours_have_the_values_of_the_standard(colour, yuv):
    planar = rgb_to_i420(np.full((16, 32, 3), colour, dtype=np.uint8))
    planes = (planar[:16], planar[16:20], planar[20:])
    for plane, expected in zip(planes, yuv, strict=True):
        assert np.abs(plane.astype(int) - expected).max() <= 1


def test_a_view_that_is_not_contiguous_converts_alike():
    picture = noise(40, 64)
    flipped = picture[::-1, ::-1]
    assert np.array_equal(rgb_to_i420(flipped), rgb_to_i420(flipped.copy()))


def test_the_result_is_its_own_and_the_picture_stays():
    picture = noise(16, 16)
    before = picture.copy()
    first = rgb_to_i420(picture)
    kept = first.copy()
    rgb_to_i420(noise(16, 16)[::-1])
    assert np.array_equal(picture, before)
    assert np.array_equal(first, kept)


def test_threads_convert_side_by_side():
    pictures = [noise(64 + 2 * index, 96) for index in range(4)]
    expected = [rgb_to_i420(picture) for picture in pictures]
    wrong: list[int] = []

    def convert(index: int) -> None:
        for _ in range(20):
            if not np.array_equal(rgb_to_i420(pictures[index]), expected[index]):
                wrong.append(index)

    threads = [threading.Thread(target=convert, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((15, 16, 3), np.uint8),
        np.zeros((16, 15, 3), np.uint8),
        np.zeros((0, 16, 3), np.uint8),
        np.zeros((16, 16, 4), np.uint8),
        np.zeros((16, 16), np.uint8),
        np.zeros((16, 16, 3), np.float32),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_what_has_no_i420_is_refused(bad):
    with pytest.raises(ValueError, match=r"expected|chroma"):
        rgb_to_i420(bad)
