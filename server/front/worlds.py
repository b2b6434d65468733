"""`/v1/worlds`: what is played here, and pictures of where it begins."""

from __future__ import annotations

import hashlib

from fastapi import APIRouter, Request, Response

from server.front import errors
from server.front.access import ServiceDep, SettingsDep
from server.front.problems import responses
from server.protocol.http import StartPointView, Worlds, WorldView
from server.protocol.worker import WorldContent

router = APIRouter(prefix="/v1/worlds", tags=["worlds"])


@router.get("", response_model=Worlds)
async def list_worlds(service: ServiceDep, settings: SettingsDep) -> Worlds:
    """Every world with what it can do; empty until a worker has loaded one."""
    return Worlds(
        worlds=tuple(view_of(world) for world in service.worlds()),
        media_server=settings.browser_livekit_url,
    )


@router.get(
    "/{world}/start_points/{name}/picture",
    response_class=Response,
    responses={
        200: {"content": {"image/png": {}}, "description": "a PNG as large as the frames"},
        304: {"description": "you have it"},
        **responses(errors.UnknownPicture),
    },
)
async def start_picture(world: str, name: str, request: Request, service: ServiceDep) -> Response:
    """The first frame of a start point."""
    picture = service.start_point(world, name).picture
    etag = f'"{hashlib.sha256(picture).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(picture, media_type="image/png", headers=headers)


def view_of(world: WorldContent) -> WorldView:
    """Capabilities without the pictures themselves."""
    return WorldView(
        **world.model_dump(exclude={"start_points", "controls"}),
        controls=world.controls,
        start_points=tuple(
            StartPointView(
                name=point.name,
                title=point.title,
                picture=f"/v1/worlds/{world.name}/start_points/{point.name}/picture",
            )
            for point in world.start_points
        ),
    )
