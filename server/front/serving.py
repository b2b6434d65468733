"""Serving: the application on a socket that listens already, until a signal ends it.

The first SIGTERM or SIGINT drains within `shutdown_seconds`: sessions end with `shutdown`, event
streams close, the worker releases what it holds and exits. The second one ends everything at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Final

import structlog
import uvicorn

from server.front.app import create_app
from server.front.connections import Connection, accept_at_once
from server.front.pool import StartWorker
from server.front.service import SessionService
from server.front.workers import Patience, WorkerProcess
from server.protocol.http import Readiness
from server.protocol.worker import LiveKitConfig, TransportConfig, WorkerConfig, WorkerPort
from server.settings import Settings

log = structlog.get_logger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Shares of the shutdown bound; what is left is for the ladder of a worker that does not listen.
SESSIONS_SHARE: Final = 0.35
WORKER_SHARE: Final = 0.35
CONNECTIONS_SHARE: Final = 0.1
ROOM_MARGIN_SECONDS: Final = 30.0  # that LiveKit keeps an empty room beyond a session's own limits


def worker_config(settings: Settings, worker_id: str) -> WorkerConfig:
    """What a worker is told."""
    return WorkerConfig(
        worker_id=worker_id,
        world=settings.world,
        world_options=settings.options,
        transport=settings.transport,
        transport_settings=TransportConfig(
            bind_host=str(settings.host),
            media_addresses=settings.media_addresses,
            ice_servers=settings.ice_servers,
            connect_seconds=settings.connect_seconds,
            lost_seconds=settings.lost_seconds,
            bitrate=settings.bitrate,
            livekit=livekit_config(settings),
            impair=settings.test_impair_media,
        ),
        seats=settings.max_sessions_per_worker,
        stage_deadline_seconds=settings.stage_deadline_seconds,
        torch_threads=settings.torch_threads,
        log_level=settings.log_level,
    )


def livekit_config(settings: Settings) -> LiveKitConfig | None:
    """Where players are reached through LiveKit, if they are."""
    if settings.livekit_url is None:
        return None
    assert settings.livekit_api_key is not None
    assert settings.livekit_api_secret is not None
    coming = settings.claim_seconds + settings.connect_seconds
    return LiveKitConfig(
        url=settings.livekit_url,
        public_url=settings.browser_livekit_url or settings.livekit_url,
        api_key=settings.livekit_api_key,
        api_secret=settings.livekit_api_secret.get_secret_value(),
        room_prefix=settings.rooms,
        empty_seconds=math.ceil(coming + ROOM_MARGIN_SECONDS),
        departure_seconds=math.ceil(settings.disconnect_grace_seconds + ROOM_MARGIN_SECONDS),
    )


def worker_starter(settings: Settings, worker_id: str = "worker-0") -> StartWorker:
    """How to start (and start again) the worker process of `veldt serve`."""
    patience = Patience(
        hang=settings.worker_hang_seconds,
        start=settings.worker_start_seconds,
        shutdown=settings.shutdown_seconds * WORKER_SHARE,
    )

    async def start() -> WorkerPort:
        return await WorkerProcess.start(worker_config(settings, worker_id), patience=patience)

    return start


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are this module's business."""
        yield


async def serve(
    settings: Settings,
    listening: socket.socket,
    *,
    on_readiness: Callable[[Readiness], None] = lambda readiness: None,
    workers: Sequence[StartWorker | WorkerPort] | None = None,
) -> str | None:
    """Serve until a signal. Returns None, or in one sentence why no worker can ever work here.

    Args:
        settings: What the operator has chosen.
        listening: A socket that listens; it is closed at the end.
        on_readiness: Told of each step of the cold start, and of readiness.
        workers: Other workers than the one process that the settings describe.
    """
    app = create_app(settings, [worker_starter(settings)] if workers is None else workers)
    service: SessionService = app.state.service
    server = _Server(
        uvicorn.Config(
            app,
            loop="asyncio",
            http=Connection,
            backlog=accept_at_once(),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds * CONNECTIONS_SHARE)),
        )
    )
    stop = _Stop(server, service, settings.shutdown_seconds * SESSIONS_SHARE)
    hopeless: list[str] = []

    def readiness(state: Readiness) -> None:
        on_readiness(state)
        fatal = service.pool.fatal()
        if fatal is not None and not hopeless:
            hopeless.append(fatal.message)
            stop.begin()

    service.on_readiness(readiness)
    with stop.on_signals():
        await server.serve(sockets=[listening])
        await stop.finished()
    return hopeless[0] if hopeless else None


class _Stop:
    """The way out: first in good order, then at once."""

    def __init__(self, server: uvicorn.Server, service: SessionService, seconds: float) -> None:
        self._server, self._service, self._seconds = server, service, seconds
        self._draining: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Drain; a second time: end everything at once."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
            return
        self._draining.cancel()
        self._service.pool.kill()
        self._server.config.timeout_graceful_shutdown = 0
        self._server.should_exit = True

    async def finished(self) -> None:
        """Wait for the drain that `begin` has started."""
        if self._draining is not None:
            await asyncio.gather(self._draining, return_exceptions=True)

    async def _drain(self) -> None:
        log.info("stopping", seconds=self._seconds)
        try:
            await self._service.shutdown(self._seconds)
        finally:
            self._server.should_exit = True

    @contextlib.contextmanager
    def on_signals(self) -> Generator[None, None, None]:
        """Have the signals do this, and give them back afterwards."""
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(self.begin))
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
