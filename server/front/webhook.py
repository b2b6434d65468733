"""`POST /v1/livekit/webhook`: LiveKit says that something has happened in a room."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from server.front import errors
from server.front.access import SettingsDep
from server.front.livekit import RoomKeeper, check_webhook
from server.front.problems import responses

PATH: Final = "/v1/livekit/webhook"

router = APIRouter(tags=["operators"])


@router.post(
    PATH, status_code=204, response_class=Response, responses=responses(errors.BadSignature)
)
async def livekit_webhook(request: Request, settings: SettingsDep) -> Response:
    """A hint to look at the rooms sooner; what it says is not believed, only that it was signed."""
    assert settings.livekit_api_key is not None
    assert settings.livekit_api_secret is not None
    check_webhook(
        request.headers.get("authorization", ""),
        await request.body(),
        settings.livekit_api_key,
        settings.livekit_api_secret.get_secret_value(),
    )
    keeper: RoomKeeper = request.app.state.rooms
    keeper.hint()
    return Response(status_code=204)
