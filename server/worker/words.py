"""The loaded world in the words of the wire."""

from __future__ import annotations

import base64

from pipeline.service import WorldInfo
from server.protocol.http import ControlView
from server.protocol.worker import StartPointContent, WorldContent


def world_content(info: WorldInfo) -> WorldContent:
    """What the front door may know of a world."""
    return WorldContent(
        name=info.name,
        title=info.title,
        about=info.about,
        width=info.width,
        height=info.height,
        fps=info.fps,
        frames_per_chunk=info.frames_per_chunk,
        start_points=tuple(
            StartPointContent(
                name=point.name, title=point.title, picture=base64.b64encode(point.picture)
            )
            for point in info.start_points
        ),
        controls=tuple(
            ControlView(code=control.code, label=control.label, aliases=control.aliases)
            for control in info.controls
        ),
        axes=info.axes,
        prompt=info.prompt,
        image=info.image,
    )
