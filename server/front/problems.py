"""One mapping from every exception to an answer: `application/problem+json` (RFC 9457).

Nothing of a request is repeated in an answer except the names of fields, made harmless: a body may
hold NaN or lone surrogates, which an answer cannot carry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from admission.residency import UnknownWorker
from admission.session import IllegalTransition
from server.front import errors
from server.protocol.http import Problem
from server.protocol.worker import WorkerGone

log = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"

# By class; a subclass has the status of its nearest ancestor here.
STATUS: Final[Mapping[type[Exception], int]] = {
    errors.FrontError: 400,
    errors.UnknownSession: 404,
    errors.UnknownPicture: 404,
    errors.UnknownWorkerId: 404,
    errors.SecretRequired: 401,
    errors.ApiKeyRequired: 401,
    errors.AdminKeyRequired: 401,
    errors.BadSignature: 401,
    errors.NoSpectators: 409,
    errors.HouseFull: 429,
    errors.NoWorker: 503,
    errors.ShuttingDown: 503,
    errors.QuotaExceeded: 429,
    errors.TooManyRequests: 429,
    errors.BadStart: 422,
    errors.SessionEnded: 410,
    errors.WorkerRefused: 422,  # see REFUSED
    errors.WorkerSlow: 503,
    errors.RequestRejected: 400,  # see REJECTED
    UnknownWorker: 404,
    IllegalTransition: 409,
    WorkerGone: 503,
}
# What a worker's refusal is in HTTP, by its code; what is not here is the worker's own failure.
REFUSED: Final[Mapping[str, int]] = {
    "bad_offer": 422,
    "bad_start": 422,
    "unsupported_by_world": 422,
    "playing_elsewhere": 409,
    "no_spectators": 409,
    "too_many_spectators": 429,
    "nothing_to_watch": 409,
    "session_ended": 410,
    "unknown_session": 410,
    "unknown_world": 422,
    "not_ready": 503,
    "worker_full": 503,
    "connect_failed": 503,
    "transport_error": 503,
    "transport_closed": 503,
    "no_media_address": 503,
    "media_server_unreachable": 503,
}
# The guard's rules.
REJECTED: Final[Mapping[str, int]] = {
    "host_required": 400,
    "bad_request": 400,
    "host_not_allowed": 403,
    "origin_not_allowed": 403,
    "body_too_large": 413,
    "body_too_slow": 408,
    "unsupported_media_type": 415,
}
_HTTP_CODES: Final[Mapping[int, str]] = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "body_too_large",
    415: "unsupported_media_type",
}


def status_of(error: Exception) -> int:
    """The HTTP status of `error`; 500 for what is nobody's request but our own fault."""
    if isinstance(error, errors.WorkerRefused):
        return REFUSED.get(error.code, 502)
    if isinstance(error, errors.RequestRejected):
        return REJECTED[error.code]
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500


def problem_of(error: Exception) -> tuple[Problem, Mapping[str, str]]:
    """The body and the headers that `error` is answered with."""
    status = status_of(error)
    if status == 500:
        return internal_problem(), {}
    headers: dict[str, str] = {}
    retry_after = getattr(error, "retry_after", None)
    if retry_after is None and status == 503:
        retry_after = 2.0
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    problem = Problem(
        title=getattr(error, "title", HTTPStatus(status).phrase),
        status=status,
        code=getattr(error, "code", "error"),
        detail=harmless(getattr(error, "detail", str(error))),
        field=getattr(error, "field", None),
        session_id=getattr(error, "session", None),
    )
    return problem, headers


def internal_problem() -> Problem:
    """A bug of ours: nothing of it is told, all of it is logged."""
    return Problem(
        title="Something went wrong here",
        status=500,
        code="internal_error",
        detail="this is a fault of the service; its log has the details",
    )


def response_of(error: Exception) -> Response:
    """`problem_of` as a response."""
    problem, headers = problem_of(error)
    return problem_response(problem, headers)


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as a response."""
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def harmless(text: str, limit: int = 300) -> str:
    """`text` as something that any answer can carry: no lone surrogates, no control characters."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    clean = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in clean)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


async def _front_error(request: Request, error: Exception) -> Response:
    return response_of(error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    phrase = HTTPStatus(status).phrase
    problem = Problem(
        title=phrase,
        status=status,
        code=_HTTP_CODES.get(status, "bad_request" if status < 500 else "internal_error"),
        detail="the body is not JSON that can be read" if status == 400 else phrase.lower(),
    )
    return problem_response(problem, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(problem_of_invalid(error.errors()))


def problem_of_invalid(faults: Any) -> Problem:
    """The first fault of a body, parameter or header that pydantic refused: where and why."""
    fault = faults[0]
    where = [str(part) for part in fault.get("loc", ())]
    field = harmless(".".join(where[1:]), 100) or None
    kind = str(fault.get("type", "invalid"))
    if kind == "json_invalid":
        field = None
    return Problem(
        title="The request does not fit",
        status=422,
        code="invalid_request",
        detail=harmless(str(fault.get("msg", "invalid"))),
        field=field,
    )


def install(app: FastAPI) -> None:
    """Answer every exception that a route lets fly."""
    for kind in (errors.FrontError, UnknownWorker, IllegalTransition, WorkerGone):
        app.add_exception_handler(kind, _front_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)


def responses(*kinds: type[errors.FrontError]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI `responses` of a route that may answer with these."""
    listed: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        status = next(STATUS[base] for base in kind.__mro__ if base in STATUS)
        code = getattr(kind, "code", "")
        entry = listed.setdefault(status, {"model": Problem, "description": ""})
        entry["description"] = ", ".join(filter(None, (entry["description"], code)))
    return listed
