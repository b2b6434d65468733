"""Who asks: the session's secret, an API key, the admin key. Each a dependency of routes.

All are coroutine functions: FastAPI sends a plain one to a thread, five for each request.
"""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr

from server.front.errors import AdminKeyRequired, ApiKeyRequired, SecretRequired
from server.front.service import SessionService
from server.settings import Settings

_bearer = HTTPBearer(auto_error=False, description="A session_token, an API key or the admin key.")
_api_key = APIKeyHeader(name="X-API-Key", auto_error=False)

BearerDep = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def service_of(request: Request) -> SessionService:
    """The service of this application."""
    service: SessionService = request.app.state.service
    return service


async def settings_of(request: Request) -> Settings:
    """The settings of this application."""
    settings: Settings = request.app.state.settings
    return settings


ServiceDep = Annotated[SessionService, Depends(service_of)]
SettingsDep = Annotated[Settings, Depends(settings_of)]


async def session_secret(bearer: BearerDep) -> str:
    """The session's secret; whether it is the right one is the service's business."""
    if bearer is None:
        raise SecretRequired
    return bearer.credentials


async def is_admin(bearer: BearerDep, settings: SettingsDep) -> bool:
    """Whether the admin key was sent."""
    keys = () if settings.admin_key is None else (settings.admin_key,)
    return bearer is not None and _is_one_of(bearer.credentials, keys)


async def admin(sent: Annotated[bool, Depends(is_admin)], settings: SettingsDep) -> None:
    """Refuse everybody but an operator."""
    if not sent:
        raise AdminKeyRequired(settings.admin_key is not None)


async def may_create(
    bearer: BearerDep, key: Annotated[str | None, Depends(_api_key)], settings: SettingsDep
) -> None:
    """Refuse those without an API key, where keys are set and play is not public."""
    if settings.public_play or not settings.api_keys:
        return
    sent = key or (bearer.credentials if bearer is not None else "")
    if not _is_one_of(sent, settings.api_keys):
        raise ApiKeyRequired


def _is_one_of(sent: str, keys: tuple[SecretStr, ...]) -> bool:
    """In constant time, whichever of them it is."""
    raw = sent.encode("utf-8", "surrogatepass")
    found = [hmac.compare_digest(raw, key.get_secret_value().encode()) for key in keys]
    return any(found)


SecretDep = Annotated[str, Depends(session_secret)]
IsAdminDep = Annotated[bool, Depends(is_admin)]
AdminDep = Depends(admin)
MayCreateDep = Depends(may_create)
