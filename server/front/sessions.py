"""`/v1/sessions`: what a player does, and what an operator may do to players."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from server.front import errors
from server.front.access import (
    AdminDep,
    BearerDep,
    IsAdminDep,
    MayCreateDep,
    SecretDep,
    ServiceDep,
)
from server.front.events import EventStream
from server.front.problems import responses
from server.protocol.http import (
    Connect,
    Connection,
    Created,
    CreateSession,
    Sessions,
    SessionView,
    SpectatorLink,
    WorkerDraining,
)

router = APIRouter(prefix="/v1", tags=["sessions"])


@router.post(
    "/sessions",
    status_code=201,
    response_model=Created,
    dependencies=[MayCreateDep],
    responses=responses(
        errors.ApiKeyRequired,
        errors.BadStart,
        errors.HouseFull,
        errors.QuotaExceeded,
        errors.NoWorker,
        errors.ShuttingDown,
    ),
)
async def create_session(body: CreateSession, request: Request, service: ServiceDep) -> Created:
    """Open a session. Its seat is kept for `claim_seconds`, until the first `connect`."""
    return await service.create(body, request.client.host if request.client else "")


@router.get(
    "/sessions/{session_id}",
    response_model=SessionView,
    responses=responses(errors.SecretRequired, errors.UnknownSession),
)
async def get_session(session_id: str, secret: SecretDep, service: ServiceDep) -> SessionView:
    """What is the case with a session; for a while after its end too, with the reason."""
    return service.view(service.owned(session_id, secret))


@router.delete(
    "/sessions/{session_id}",
    status_code=204,
    response_class=Response,
    responses={
        202: {"model": SessionView, "description": "it is still being released"},
        **responses(errors.SecretRequired, errors.UnknownSession),
    },
)
async def delete_session(
    session_id: str, bearer: BearerDep, admin: IsAdminDep, service: ServiceDep
) -> Response:
    """End a session, as its player or as an operator; as often as you like.

    204 once the worker holds nothing of it any more; 202 if that takes longer than two seconds.
    """
    if bearer is None:
        raise errors.SecretRequired
    record = await service.delete(session_id, None if admin else bearer.credentials)
    if record.over.is_set():
        return Response(status_code=204)
    return Response(
        service.view(record).model_dump_json(), status_code=202, media_type="application/json"
    )


@router.get(
    "/sessions/{session_id}/events",
    response_class=Response,
    responses={
        200: {
            "description": "queued, admitted, state, ended",
            "content": {"text/event-stream": {}},
        },
        **responses(errors.SecretRequired, errors.UnknownSession, errors.TooManyRequests),
    },
)
async def session_events(session_id: str, secret: SecretDep, service: ServiceDep) -> Response:
    """The life of a session as it happens: first what is the case, last `ended`."""
    record = service.owned(session_id, secret)
    record.check_stream()
    return EventStream(lambda: record.watched(service.now()))


@router.post(
    "/sessions/{session_id}/connect",
    response_model=Connection,
    responses=responses(
        errors.SecretRequired,
        errors.UnknownSession,
        errors.SessionEnded,
        errors.TooManyRequests,
        errors.WorkerRefused,
        errors.WorkerSlow,
    ),
)
async def connect_session(
    session_id: str, body: Connect, secret: SecretDep, service: ServiceDep
) -> Connection:
    """Join a session: the first call claims its seat, later ones reconnect."""
    return await service.connect(session_id, secret, body)


@router.post(
    "/sessions/{session_id}/tokens",
    status_code=201,
    response_model=SpectatorLink,
    responses=responses(
        errors.SecretRequired, errors.UnknownSession, errors.SessionEnded, errors.NoSpectators
    ),
)
async def invite_spectators(
    session_id: str, secret: SecretDep, service: ServiceDep
) -> SpectatorLink:
    """What lets others watch a session, for a link; it does not let them control anything."""
    return service.invite(session_id, secret)


@router.post(
    "/sessions/{session_id}/watch",
    response_model=Connection,
    responses=responses(
        errors.SecretRequired,
        errors.UnknownSession,
        errors.SessionEnded,
        errors.NoSpectators,
        errors.TooManyRequests,
        errors.WorkerRefused,
        errors.WorkerSlow,
    ),
)
async def watch_session(session_id: str, watch_token: SecretDep, service: ServiceDep) -> Connection:
    """Join a session as a spectator, with the `watch_token` as bearer."""
    return await service.watch(session_id, watch_token)


@router.get(
    "/sessions",
    response_model=Sessions,
    dependencies=[AdminDep],
    responses=responses(errors.AdminKeyRequired),
    tags=["operators"],
)
async def list_sessions(service: ServiceDep) -> Sessions:
    """Every session that is known, those that ended a while ago included."""
    return Sessions(sessions=service.sessions())


@router.post(
    "/workers/{worker_id}/drain",
    status_code=202,
    response_model=WorkerDraining,
    dependencies=[AdminDep],
    responses=responses(errors.AdminKeyRequired, errors.UnknownWorkerId),
    tags=["operators"],
)
async def drain_worker(worker_id: str, service: ServiceDep) -> WorkerDraining:
    """Admit nobody to a worker any more; when its sessions are over a fresh one takes its place."""
    service.drain(worker_id)
    return WorkerDraining(worker_id=worker_id)
