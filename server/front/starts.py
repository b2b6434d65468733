"""From what a player asked for to what a world starts from, by its capabilities. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from server.front.errors import (
    UnknownImage,
    UnknownStartPoint,
    UnknownWorld,
    UnsupportedByWorld,
)
from server.protocol.http import CreateSession
from server.protocol.worker import StartChoice, WorldContent


def choose_world(body: CreateSession, worlds: Sequence[WorldContent]) -> WorldContent:
    """The world that was asked for, or the first one. `worlds` is not empty."""
    if body.world is None:
        return worlds[0]
    for world in worlds:
        if world.name == body.world:
            return world
    raise UnknownWorld(world.name for world in worlds)


def choose_start(body: CreateSession, world: WorldContent) -> StartChoice:
    """What the session begins from; without a choice the world's first start point.

    Raises:
        UnsupportedByWorld: For a prompt or an image where the world takes none.
        UnknownStartPoint: With the start points that there are.
        UnknownImage: Images are uploaded first.
    """
    if body.prompt is not None and not world.prompt:
        raise UnsupportedByWorld(world.name, "prompt")
    if body.image_id is not None:
        if not world.image:
            raise UnsupportedByWorld(world.name, "image_id")
        raise UnknownImage("no image with this id was uploaded", field="image_id")
    names = [point.name for point in world.start_points]
    if body.start_point is not None and body.start_point not in names:
        raise UnknownStartPoint(world.name, names)
    first = names[0] if names else None
    return StartChoice(start_point=body.start_point or first, prompt=body.prompt)
