"""What the marker world wrote into a frame, read from what the encoder would get."""

from __future__ import annotations

import numpy as np

from pipeline.testworlds.marker import Marker, read_marker
from server.transports.base import I420Frame


def marker_of(frame: I420Frame) -> Marker:
    """The marker of a frame; it has to be readable."""
    luma = frame.data[: frame.height]
    marker = read_marker(np.repeat(luma[..., None], 3, axis=2))
    assert marker is not None, f"frame {frame.frame_id} shows no marker"
    return marker
