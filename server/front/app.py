"""How the front door is put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI

from server.front import health, problems, sessions, worlds
from server.front.guard import Guard
from server.front.hosts import HostRule
from server.front.livekit import livekit_sources
from server.front.pool import StartWorker, already_running
from server.front.service import SessionService
from server.front.static import PlayerPage
from server.protocol.base import PROTOCOL_VERSION
from server.protocol.worker import WorkerPort
from server.settings import Settings

LIFESPAN_SECONDS: Final = 3.0  # for sessions to end, where nobody has called `shutdown` before


def create_app(settings: Settings, workers: Sequence[StartWorker | WorkerPort]) -> FastAPI:
    """The front door as an ASGI application.

    Its lifespan starts the workers and ends them. `app.state.service` is its `SessionService`:
    call `shutdown` on it before the server stops, so that open event streams end.

    Args:
        settings: What the operator has chosen.
        workers: How to start each worker, again and again; or ports of workers that run already.
    """
    starts = [start if callable(start) else already_running(start) for start in workers]
    service = SessionService(settings, starts)
    service.metrics.watch(service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        lag = asyncio.create_task(service.metrics.lag.run())
        service.begin()
        try:
            yield
        finally:
            if not service.stopping:
                await service.shutdown(LIFESPAN_SECONDS)
            await service.aclose()
            lag.cancel()
            await asyncio.gather(lag, return_exceptions=True)

    app = FastAPI(
        title="veldt",
        version=str(PROTOCOL_VERSION),
        summary="Playable generated worlds.",
        docs_url=None,  # their scripts come from elsewhere, which the page's policy forbids
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service, app.state.settings = service, settings
    problems.install(app)
    for router in (sessions.router, worlds.router, health.router):
        app.include_router(router)
    app.mount("/", PlayerPage(settings.client_dir), name="page")
    app.add_middleware(
        Guard,
        hosts=HostRule.of(
            loopback=settings.loopback, names=(*settings.allowed_hosts, str(settings.host))
        ),
        origins=settings.allowed_origins,
        max_body_bytes=settings.max_body_bytes,
        connects_to=livekit_sources(settings.browser_livekit_url),
    )
    return app
