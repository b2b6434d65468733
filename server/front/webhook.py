"""`POST /v1/livekit/webhook`: LiveKit says that something has happened in a room."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from fastapi import APIRouter, Request, Response

from server.front import errors
from server.front.access import SettingsDep
from server.front.errors import BadSignature
from server.front.livekit import RoomKeeper
from server.front.problems import responses

PATH: Final = "/v1/livekit/webhook"
CLOCK_SECONDS: Final = 60.0  # that two clocks may differ

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


def check_webhook(authorization: str, body: bytes, key: str, secret: str) -> None:
    """Raise `BadSignature` unless LiveKit has signed exactly this body, not long ago."""
    import jwt  # comes with the extra `livekit`

    try:
        claims = jwt.decode(
            authorization.removeprefix("Bearer ").strip(),
            secret,
            algorithms=["HS256"],
            issuer=key,
            leeway=CLOCK_SECONDS,
            options={"require": ["exp", "iss", "sha256"]},
        )
    except jwt.InvalidTokenError:
        raise BadSignature("this was not signed with this service's LiveKit key") from None
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    if not hmac.compare_digest(str(claims["sha256"]), digest):
        raise BadSignature("the signature is of another body")
