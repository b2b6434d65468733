from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.livekit.scripted import Players
from tests.e2e.server import ServerProcess
from tests.livekit_server import LiveKitServer


@pytest.fixture(scope="session")
def transport() -> str:
    return "livekit"


@pytest.fixture
def own_livekit(tmp_path: Path) -> Iterator[LiveKitServer]:
    """A LiveKit that a test may break."""
    server = LiveKitServer(tmp_path / "livekit").start()
    yield server
    server.stop()


@pytest.fixture
async def make_players() -> AsyncIterator[Callable[[ServerProcess], Players]]:
    """Players of a server; they leave at the end."""
    made: list[Players] = []

    def make(server: ServerProcess) -> Players:
        http = httpx.AsyncClient(base_url=server.url, timeout=30)
        made.append(Players(http))
        return made[-1]

    yield make
    for players in made:
        await players.aclose()
