import io
import math
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms, ImageDraw

from pipeline.lingbot.errors import BadImage
from pipeline.lingbot.image import decode_image, fit, resize
from pipeline.service import BadStart


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def quadrants(size: tuple[int, int] = (160, 120)) -> Image.Image:
    """Red, green / blue, yellow."""
    w, h = size
    image = Image.new("RGB", size, "red")
    draw = ImageDraw.Draw(image)
    draw.rectangle((w // 2, 0, w, h // 2 - 1), "lime")
    draw.rectangle((0, h // 2, w // 2 - 1, h), "blue")
    draw.rectangle((w // 2, h // 2, w, h), "yellow")
    return image


def corner_colours(image: torch.Tensor) -> list[list[int]]:
    h, w = image.shape[:2]
    at = [(h // 4, w // 4), (h // 4, 3 * w // 4), (3 * h // 4, w // 4), (3 * h // 4, 3 * w // 4)]
    return [image[y, x].tolist() for y, x in at]


RED, LIME, BLUE, YELLOW = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0]


def test_a_plain_picture_is_decoded_as_it_is() -> None:
    image = decode_image(saved(quadrants()))
    assert (image.shape, image.dtype) == ((120, 160, 3), torch.uint8)
    assert corner_colours(image) == [RED, LIME, BLUE, YELLOW]


@pytest.mark.parametrize(
    ("orientation", "turn"),
    [
        (1, None),
        (2, Image.Transpose.FLIP_LEFT_RIGHT),
        (3, Image.Transpose.ROTATE_180),
        (4, Image.Transpose.FLIP_TOP_BOTTOM),
        (5, Image.Transpose.TRANSPOSE),
        (6, Image.Transpose.ROTATE_90),
        (7, Image.Transpose.TRANSVERSE),
        (8, Image.Transpose.ROTATE_270),
    ],
)
def test_a_phone_photo_stands_upright_whatever_its_orientation(
    orientation: int, turn: Image.Transpose | None
) -> None:
    """The pixels are stored turned the other way; the tag (and a GPS position) say how."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif.get_ifd(0x8825)[1] = "N"
    stored = quadrants() if turn is None else quadrants().transpose(turn)
    image = decode_image(saved(stored, "JPEG", quality=95, exif=exif))
    assert image.shape == (120, 160, 3)
    for got, wanted in zip(corner_colours(image), [RED, LIME, BLUE, YELLOW], strict=True):
        assert max(abs(g - w) for g, w in zip(got, wanted, strict=True)) < 12


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("CMYK", "JPEG"),
        ("L", "JPEG"),
        ("L", "PNG"),
        ("1", "PNG"),
        ("P", "PNG"),
        ("P", "GIF"),
        ("LA", "PNG"),
        ("RGBA", "PNG"),
        ("RGBA", "WEBP"),
        ("I;16", "PNG"),
        ("LAB", "TIFF"),
        ("YCbCr", "JPEG"),
    ],
)
def test_every_common_mode_keeps_its_colours(mode: str, kind: str) -> None:
    ramp = Image.linear_gradient("L").resize((160, 120))
    grey_only = mode in ("L", "1", "LA", "I;16")
    wanted = ramp if grey_only else Image.merge("RGB", (ramp, ramp.rotate(180), ramp))
    if mode == "I;16":
        stored = Image.fromarray(np.asarray(ramp).astype(np.uint16) * 257)
    elif mode == "LAB":
        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        converted = ImageCms.profileToProfile(wanted, srgb, lab, outputMode="LAB")
        assert converted is not None
        stored = converted
    else:
        stored = wanted.quantize(256) if mode == "P" else wanted.convert(mode)
    options = {"quality": 95} if kind == "JPEG" else {"lossless": True} if kind == "WEBP" else {}
    image = decode_image(saved(stored, kind, **options)).float()
    reference = wanted.convert("1").convert("RGB") if mode == "1" else wanted.convert("RGB")
    error = (image - torch.from_numpy(np.array(reference)).float()).abs().mean()
    assert error < 12


def test_transparency_lies_over_white() -> None:
    clear = Image.new("RGBA", (100, 100), (255, 0, 0, 0))
    assert decode_image(saved(clear))[50, 50].tolist() == [255, 255, 255]
    half = Image.new("RGBA", (100, 100), (0, 0, 0, 128))
    assert decode_image(saved(half))[50, 50, 0].item() == pytest.approx(127, abs=1)


@pytest.mark.parametrize("size", [(704, 1280), (641, 385), (65, 255), (464, 832), (800, 200)])
def test_a_circle_stays_round_at_any_size_that_is_taken(size: tuple[int, int]) -> None:
    picture = Image.new("RGB", size, "white")
    radius, (w, h) = min(size) // 4, size
    box = (w // 2 - radius, h // 2 - radius, w // 2 + radius, h // 2 + radius)
    ImageDraw.Draw(picture).ellipse(box, fill="black")
    dark = fit(decode_image(saved(picture)), 464, 832).mean(0) < 0
    tall, wide = (dark.any(axis).sum().item() for axis in (1, 0))
    pixel = 832 / size[0]  # the drawing itself is right to a pixel of the source
    assert abs(tall - wide) <= 0.02 * max(tall, wide) + 2 * pixel
    area = dark.sum().item() / (math.pi * tall * wide / 4)
    assert area == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("size", [(1, 1), (1, 20000), (20000, 200), (63, 63), (64, 257)])
def test_sizes_outside_the_range_are_refused_with_the_range(size: tuple[int, int]) -> None:
    with pytest.raises(BadImage, match="at least 64 pixels and neither more than 4 times"):
        decode_image(saved(Image.new("L", size)))


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    def part(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    for side in (8_000, 30_000, 60_000):
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        bomb = (
            b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", b"") + part(b"IEND", b"")
        )
        with pytest.raises(BadImage, match="pixels"):
            decode_image(bomb)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_damaged_image_is_refused(kind: str) -> None:
    whole = saved(Image.effect_noise((160, 120), 60).convert("RGB"), kind)
    for end in (0, 3, 40, len(whole) // 2):
        with pytest.raises(BadImage):
            decode_image(whole[:end])


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x00" * 5000, b"GIF89a", b"\xff\xd8\xff"])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(BadImage) as caught:
        decode_image(data)
    assert isinstance(caught.value, BadStart)
    assert caught.value.field_name == "image"


def test_floating_point_images_are_refused_by_the_name_of_their_mode() -> None:
    with pytest.raises(BadImage, match="mode F"):
        decode_image(saved(Image.new("F", (100, 100)), "TIFF"))


def test_resizing_is_not_clamped() -> None:
    steps = torch.zeros(64, 64, 3, dtype=torch.uint8)
    steps[:, 32:] = 255
    resized = resize(steps, 96, 96)
    assert resized.max() > 1.0
    assert resized.min() < -1.0
