"""Frames on a byte stream between the front door and a worker: a length, then JSON. Pure.

4 bytes, big-endian: how many bytes follow.

>>> splitter = FrameSplitter()
>>> splitter.feed(pack_frame(b"one") + pack_frame(b"two")[:5])
[b'one']
>>> splitter.feed(b"wo")
[b'two']
"""

from __future__ import annotations

import struct
from typing import Final

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024  # a world with its start pictures stays far below
_LENGTH: Final = struct.Struct("!I")
LENGTH_BYTES: Final = _LENGTH.size


class FramingError(ValueError):
    """The stream cannot be read any further: something else has been written on it."""

    code = "framing_error"


def pack_frame(payload: bytes) -> bytes:
    """`payload` behind its length."""
    if len(payload) > MAX_FRAME_BYTES:
        raise FramingError(f"a frame of {len(payload)} bytes is longer than {MAX_FRAME_BYTES}")
    return _LENGTH.pack(len(payload)) + payload


def frame_length(header: bytes) -> int:
    """How many bytes follow the `LENGTH_BYTES` of `header`; `FramingError` if that cannot be."""
    (length,) = _LENGTH.unpack(header)
    if length > MAX_FRAME_BYTES:
        raise FramingError(f"a frame of {length} bytes is longer than {MAX_FRAME_BYTES}")
    return int(length)


class FrameSplitter:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, received: bytes) -> list[bytes]:
        """The frames that `received` completes, in order."""
        self._rest += received
        frames: list[bytes] = []
        start = 0
        while len(self._rest) - start >= LENGTH_BYTES:
            body = start + LENGTH_BYTES
            end = body + frame_length(bytes(self._rest[start:body]))
            if len(self._rest) < end:
                break
            frames.append(bytes(self._rest[body:end]))
            start = end
        del self._rest[:start]
        return frames
