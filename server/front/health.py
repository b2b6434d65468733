"""`/healthz`, `/readyz`, `/metrics`: for whoever runs it."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from server.front.access import ServiceDep
from server.protocol.http import Health, Readiness

router = APIRouter(tags=["operators"])


@router.get("/healthz", response_model=Health)
async def health() -> Health:
    """200 as long as the front door's event loop runs."""
    return Health()


@router.get(
    "/readyz",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "not yet; `stage` says why"}},
)
async def readiness(service: ServiceDep) -> Response:
    """200 when a session can be played, else 503 with what the cold start is doing."""
    state = service.readiness()
    return Response(
        state.model_dump_json(),
        status_code=200 if state.ready else 503,
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


@router.get("/metrics", response_class=Response)
async def metrics(service: ServiceDep) -> Response:
    """Prometheus metrics of the front door and its workers."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)
