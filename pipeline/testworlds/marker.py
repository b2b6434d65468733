"""The marker world: every picture says which frame it is and what input it has applied.

Its compute is nothing to speak of. The picture's upper part holds a 16 × 6 grid of black and white
blocks (at least 8 pixels a side, so that they survive lossy video), read back by `read_marker`:
frame number (32 bits), sequence number of the applied receipt (32), key-downs applied so far
(16), held keys (8) and a checksum (8). Below it, stripes drift with the frames and a dot shows the
player.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.options import require
from pipeline.testworlds.base import (
    CONTROLS,
    DrawnChunk,
    DrawnWorld,
    Format,
    Picture,
    Sketch,
    stripes,
)

COLUMNS, ROWS = 16, 6
NAMED: Final = (*(control.code for control in CONTROLS), "KeyI", "KeyJ", "KeyK", "KeyL")


@dataclass(frozen=True)
class Marker:
    """What one picture says."""

    frame: int  # counted from the session's start or reset
    seq: int  # of the receipt whose control this frame shows; 0 = none
    presses: int  # key-downs applied so far, modulo 65,536
    held: frozenset[str]  # of the codes in `NAMED`

    def bits(self) -> NDArray[np.bool_]:
        """Return the block grid [ROWS, COLUMNS]; True is white."""
        body = (self.frame & 0xFFFFFFFF).to_bytes(4, "big") + (self.seq & 0xFFFFFFFF).to_bytes(
            4, "big"
        )
        body += (self.presses & 0xFFFF).to_bytes(2, "big")
        body += bytes([sum(1 << k for k, code in enumerate(NAMED) if code in self.held)])
        content = np.frombuffer(body + _checksum(body), np.uint8)
        return np.unpackbits(content).astype(np.bool_).reshape(ROWS, COLUMNS)


def _checksum(body: bytes) -> bytes:
    return bytes([zlib.crc32(body) & 0xFF])


def _block(width: int) -> int:
    return width // COLUMNS


def paint(shape: Format, chunk: DrawnChunk, frame: int) -> Picture:
    """Draw the block grid above the moving pattern."""
    held = frozenset(chunk.control.held).intersection(NAMED)
    marker = Marker(frame, chunk.control.receipt & 0xFFFFFFFF, chunk.after.presses, held)
    block = _block(shape.width)
    blocks = np.kron(marker.bits(), np.ones((block, block), np.bool_))
    picture = np.zeros((shape.height, shape.width, 3), np.uint8)
    picture[: len(blocks), : blocks.shape[1]] = np.where(blocks, 235, 20)[..., None]
    picture[len(blocks) :] = stripes(shape, chunk, frame, top=len(blocks))
    return picture


def read_marker(rgb: NDArray[np.uint8]) -> Marker | None:
    """Read a picture [height, width, 3] as it was painted, or None where it is not readable.

    Noise, blur and moderate quantisation do no harm: a block counts by the mean of its middle.
    """
    block = _block(rgb.shape[1])
    if block < 8 or rgb.shape[0] < ROWS * block:
        return None
    grey = rgb[: ROWS * block, : COLUMNS * block].mean(2)
    margin = block // 4
    cells = grey.reshape(ROWS, block, COLUMNS, block)
    level = cells[:, margin : block - margin, :, margin : block - margin].mean((1, 3))
    if np.abs(level - 128).min() < 32:
        return None
    content = np.packbits(level > 128).tobytes()
    body, checksum = content[:11], content[11:]
    if checksum != _checksum(body):
        return None
    held = frozenset(code for k, code in enumerate(NAMED) if body[10] >> k & 1)
    frame, seq, presses = (
        int.from_bytes(part, "big") for part in (body[:4], body[4:8], body[8:10])
    )
    return Marker(frame, seq, presses, held)


def make_world(
    fps: float = 16.0, width: int = 256, height: int = 160, frames_per_chunk: int = 4
) -> DrawnWorld:
    """Build the marker world."""
    shape = Format(width, height, fps, frames_per_chunk)
    tall = height >= ROWS * _block(width) + 32
    require("height", height, tall, f"at least {ROWS * _block(width) + 32} at this width")
    about = "A test picture: blocks say which frame it is and which input it shows."
    return DrawnWorld(Sketch("marker", "Marker", about, paint, shape))
