"""How the front door is put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI

from server.front import health, problems, sessions, webhook, worlds
from server.front.guard import Guard
from server.front.hosts import HostRule
from server.front.livekit import LiveKitRooms, RoomKeeper, livekit_sources
from server.front.pool import StartWorker, already_running
from server.front.service import SessionService
from server.front.static import PlayerPage
from server.protocol.base import PROTOCOL_VERSION
from server.protocol.worker import WorkerPort
from server.settings import Settings

WEBHOOK_TYPES: Final = frozenset({b"application/webhook+json", b"application/json"})
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
        keeper = _room_keeper(settings, service)
        if keeper is not None:
            app.state.rooms = keeper
            service.metrics.watch_rooms(keeper)
            keeper.begin()
        try:
            yield
        finally:
            if not service.stopping:
                await service.shutdown(LIFESPAN_SECONDS)
            await service.aclose()
            if keeper is not None:
                await keeper.aclose()
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
    if settings.transport == "livekit":
        app.include_router(webhook.router)
    app.mount("/", PlayerPage(settings.client_dir), name="page")
    app.add_middleware(
        Guard,
        hosts=HostRule.of(
            loopback=settings.loopback, names=(*settings.allowed_hosts, str(settings.host))
        ),
        origins=settings.allowed_origins,
        max_body_bytes=settings.max_body_bytes,
        connects_to=livekit_sources(settings.browser_livekit_url),
        special_types={webhook.PATH: WEBHOOK_TYPES},
    )
    return app


def _room_keeper(settings: Settings, service: SessionService) -> RoomKeeper | None:
    """Who cleans up at LiveKit, where it is used. Made on the loop."""
    if settings.transport != "livekit":
        return None
    keeper = RoomKeeper(
        LiveKitRooms(settings),
        settings.rooms,
        lambda: [record.id for record in service.live()],
        every_seconds=settings.reconcile_seconds,
        played=lambda: [record.id for record in service.live() if record.life.played],
        on_lost=service.doubt,
    )
    service.on_over(lambda record: keeper.hint())
    return keeper
