"""Six places to begin, and the pictures that players bring themselves."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from pipeline.service import BadStart, StartPoint
from pipeline.tiny.camera import HEIGHT, WIDTH
from pipeline.tiny.motion import Player

FOLDER: Final = Path(__file__).parent / "starts"
STARTS: Final[dict[str, tuple[str, Player]]] = {
    "waterhole": ("The waterhole", Player(-1.1, 1.0, 0.50, -4.0)),
    "giraffes": ("Giraffes on the path", Player(5.8, 0.1, 0.14, 6.0)),
    "hut": ("The hut", Player(-0.9, -2.9, -2.30, 2.0)),
    "open-plain": ("The open plain", Player(-2.0, -2.2, 2.35, 6.0)),
    "facing-the-sun": ("Facing the sun", Player(1.2, -1.8, 0.62, 10.0)),
    "under-the-acacia": ("Under the acacia", Player(-6.6, 3.7, 1.00, 12.0)),
}
FIRST: Final = next(iter(STARTS))


def start_points() -> tuple[StartPoint, ...]:
    """Return the packaged start points with their PNGs."""
    return tuple(
        StartPoint(name, title, (FOLDER / f"{name}.png").read_bytes())
        for name, (title, _) in STARTS.items()
    )


def picture_of(content: bytes) -> NDArray[np.uint8]:
    """Return an encoded image as the eye sees it, upright, cut to the world's shape [H, W, 3]."""
    try:
        with Image.open(BytesIO(content)) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as fault:
        raise BadStart("image", f"The start image cannot be read: {fault}.") from None
    return np.asarray(ImageOps.fit(upright, (WIDTH, HEIGHT), Image.Resampling.LANCZOS))
