"""From a world's RGB pictures to what a video encoder takes.

BT.601, limited range (Y 16..235, U and V 16..240): what VP8 carries and browsers assume. Chroma is
the mean of 2 by 2 pixels. swscale does it: measured on one core at 832 by 464, 1.0 ms against
12.5 ms for the same arithmetic in numpy, and it gives the interpreter lock back meanwhile.
"""

from __future__ import annotations

import threading

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter
from numpy.typing import NDArray

_thread = threading.local()  # a reformatter keeps its last conversion; it is not shared


def rgb_to_i420(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert uint8 RGB [h, w, 3] with even h and w to planar I420 [h * 3 / 2, w].

    May be called from any thread, several at once; meant for one beside the event loop.
    """
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3:
        raise ValueError(f"uint8 [h, w, 3] is expected, not {rgb.dtype} {list(rgb.shape)}")
    height, width, _ = rgb.shape
    if height % 2 or width % 2 or not rgb.size:
        raise ValueError(f"a picture of {width} by {height} has no 2 by 2 chroma")
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
    planar = _reformatter().reformat(
        frame,
        format="yuv420p",
        src_color_range=ColorRange.JPEG,
        dst_color_range=ColorRange.MPEG,
        dst_colorspace=Colorspace.ITU601,
        interpolation=Interpolation.AREA,
        threads=1,
    )
    return np.asarray(planar.to_ndarray(), dtype=np.uint8)


def _reformatter() -> VideoReformatter:
    """This thread's own."""
    reformatter: VideoReformatter | None = getattr(_thread, "reformatter", None)
    if reformatter is None:
        reformatter = _thread.reformatter = VideoReformatter()
    return reformatter
