"""The marker world with three places and a prompt: what must survive a broken connection."""

from __future__ import annotations

from typing import Final

from pipeline.testworlds import marker
from pipeline.testworlds.base import DrawnChunk, DrawnWorld, Format, Picture, Sketch
from pipeline.testworlds.prompt import prompt_colour

STARTS: Final = (("near", "Near"), ("middle", "Middle"), ("far", "Far"))
STRIP: Final = 16  # rows at the bottom, in the colour of the prompt in force


def _paint(shape: Format, chunk: DrawnChunk, frame: int) -> Picture:
    picture = marker.paint(shape, chunk, frame)
    picture[-STRIP:] = prompt_colour(chunk.after.prompt)
    return picture


def make_world() -> DrawnWorld:
    """Build it."""
    about = "A test picture with a prompt."
    return DrawnWorld(Sketch("places", "Places", about, _paint, prompt=True, starts=STARTS))
