"""The prompt world: a picture of its prompt, which stands still until there is input.

The background's colour and a row of blocks come from a hash of the prompt in force; its text stands
below. W, A, S and D move the dot.
"""

from __future__ import annotations

import hashlib
import textwrap
from typing import Final

import numpy as np
from PIL import Image, ImageDraw

from pipeline.service import Idle
from pipeline.testworlds.base import DrawnChunk, DrawnWorld, Format, Picture, Sketch

NO_PROMPT: Final = "no prompt"
STARTS: Final = (("blank", "Blank"), ("aside", "Aside"))
LINES, LETTERS = 4, 38


def prompt_colour(prompt: str | None) -> tuple[int, int, int]:
    """Return the background colour that stands for a prompt; far from white."""
    red, green, blue = hashlib.sha256((prompt or NO_PROMPT).encode(errors="replace")).digest()[:3]
    return 40 + red // 2, 40 + green // 2, 40 + blue // 2


def paint(shape: Format, chunk: DrawnChunk, frame: int) -> Picture:
    """Draw the prompt in force, and the dot where the player is."""
    walk = chunk.after
    prompt = walk.prompt or NO_PROMPT
    image = Image.new("RGB", (shape.width, shape.height), prompt_colour(walk.prompt))
    draw = ImageDraw.Draw(image)
    bits = np.unpackbits(
        np.frombuffer(hashlib.sha256(prompt.encode(errors="replace")).digest()[3:5], np.uint8)
    )
    block = shape.width // 16
    for k, bit in enumerate(bits):
        colour = (235, 235, 235) if bit else (20, 20, 20)
        draw.rectangle((k * block, 0, (k + 1) * block - 1, block - 1), fill=colour)
    plain = prompt.encode("latin-1", "replace").decode("latin-1")
    for line, text in enumerate(textwrap.wrap(plain, LETTERS)[:LINES]):
        draw.text((8, block + 8 + 14 * line), text, fill=(255, 255, 255))
    x, y = int(walk.x * (shape.width - 12)), int(walk.y * (shape.height - 12))
    draw.rectangle((x, y, x + 11, y + 11), fill=(255, 255, 255))
    return np.asarray(image)


def make_world(
    fps: float = 16.0, width: int = 256, height: int = 160, frames_per_chunk: int = 4
) -> DrawnWorld:
    """Build the prompt world."""
    return DrawnWorld(
        Sketch(
            name="prompt",
            title="Prompt",
            about="A test picture of its prompt.",
            painter=paint,
            shape=Format(width, height, fps, frames_per_chunk),
            idle=Idle.HOLD,
            prompt=True,
            starts=STARTS,
        )
    )
