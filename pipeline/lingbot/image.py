"""A start image, from the player's bytes to the picture the encoder sees. SPEC §2.3.

Pixels only: orientation is applied, transparency is laid over white, every mode becomes RGB, and
no metadata survives.
"""

from __future__ import annotations

import io
import warnings

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError
from torch import Tensor

from pipeline.lingbot.errors import BadImage

MAX_PIXELS = 50_000_000
MIN_SIDE = 64
MAX_ASPECT = 4.0
_SIXTEEN_BIT = ("I", "I;16", "I;16B", "I;16L", "I;16N")


def decode_image(data: bytes) -> Tensor:
    """Any common image file → upright RGB, uint8 [H, W, 3].

    Raises:
        BadImage: it is no image, is truncated, or its size or mode is outside what is allowed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as opened:
                _check_size(*opened.size)
                image = _rgb(ImageOps.exif_transpose(opened))
    except UnidentifiedImageError as fault:
        raise BadImage("The file is not an image that can be read") from fault
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as fault:
        raise BadImage(f"The image has more than {MAX_PIXELS} pixels") from fault
    except BadImage:
        raise
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError) as fault:
        raise BadImage("The image is damaged or incomplete") from fault
    return torch.from_numpy(np.array(image))


def resize(image: Tensor, height: int, width: int) -> Tensor:
    """The reference's rule, a stretch: uint8 [H, W, 3] → float32 [3, h, w], about −1..1.

    SPEC §8.7: bicubic without antialiasing, and not clamped afterwards.
    """
    pixels = (image.permute(2, 0, 1)[None].float() / 255 - 0.5) / 0.5
    return F.interpolate(pixels, (height, width), mode="bicubic", align_corners=False)[0]


def fit(image: Tensor, height: int, width: int) -> Tensor:
    """Crop to the aspect of height x width around the centre, then `resize`: circles stay round."""
    h, w = image.shape[:2]
    tall, wide = min(h, round(w * height / width)), min(w, round(h * width / height))
    top, left = (h - tall) // 2, (w - wide) // 2
    return resize(image[top : top + tall, left : left + wide], height, width)


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise BadImage(f"The image is {width}x{height}, more than {MAX_PIXELS} pixels")
    short, long = sorted((width, height))
    if short < MIN_SIDE or long > MAX_ASPECT * short:
        raise BadImage(
            f"The image is {width}x{height}; both sides must be at least {MIN_SIDE} pixels and "
            f"neither more than {MAX_ASPECT:g} times the other"
        )


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode in _SIXTEEN_BIT:  # Pillow's own conversion clips at 255
        wide = np.asarray(image, dtype=np.int64)
        image = Image.fromarray((wide.clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode == "F":
        raise BadImage("Images in mode F (floating point) cannot be used; save it as RGB")
    if image.mode == "LAB":
        image = _from_lab(image)
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), layered)
    return image.convert("RGB")


def _from_lab(image: Image.Image) -> Image.Image:
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
    assert converted is not None
    return converted
