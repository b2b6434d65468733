"""Pictures for transports to carry."""

from __future__ import annotations

import numpy as np

from server.transports.base import I420Frame


def i420_frame(
    frame_id: int, receipt: int = 0, *, width: int = 256, height: int = 160, luma: int | None = None
) -> I420Frame:
    """A moving grey ramp, or one even grey where `luma` is given."""
    data = np.full((height * 3 // 2, width), 128, np.uint8)
    if luma is None:
        data[:height] = (
            np.arange(width)[None, :] + np.arange(height)[:, None] + 3 * frame_id
        ) % 220 + 16
    else:
        data[:height] = luma
    return I420Frame(data, width, height, frame_id, receipt)
