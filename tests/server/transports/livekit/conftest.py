from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from server.transports.base import ConnectAnswer, ConnectOffer
from server.transports.livekit.address import LiveKitAddress
from server.transports.livekit.transport import LiveKitTransport
from server.transports.settings import TransportSettings
from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.show import FakeShow
from tests.livekit_server import LiveKitServer


@pytest.fixture(scope="session")
def livekit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKitServer]:
    """The real server, shared."""
    server = LiveKitServer(tmp_path_factory.mktemp("livekit")).start()
    yield server
    server.stop()


class Stage(FakeShow):
    """One session on LiveKit, with its sink, players, and a source of moving pictures."""

    def __init__(self, server: LiveKitServer, session: str, **settings: Any) -> None:
        super().__init__()
        self.address = LiveKitAddress(
            server.url, server.url, server.key, server.secret, room_prefix="test"
        )
        self.session = session
        self.transport = LiveKitTransport(
            session, self.sink, TransportSettings(livekit=self.address, **settings)
        )
        self.players: list[LiveKitPlayer] = []

    async def connect(
        self, *, take_over: bool = False, frame_metadata: bool = True
    ) -> ConnectAnswer:
        offer = ConnectOffer(take_over=take_over, frame_metadata=frame_metadata)
        return await self.transport.connect(offer)

    async def player(
        self, *, take_over: bool = False, frame_metadata: bool = True, **options: Any
    ) -> LiveKitPlayer:
        """A player that is up."""
        answer = await self.connect(take_over=take_over, frame_metadata=frame_metadata)
        player = LiveKitPlayer(**options)
        self.players.append(player)
        before = len(self.sink.kinds())
        await player.join(answer.details)
        speaking = asyncio.create_task(player.speak())
        await self.sink.until(lambda sink: ("joined", player.who) in sink.kinds()[before:])
        speaking.cancel()
        return player

    async def aclose(self) -> None:
        self.stop()
        for player in self.players:
            await player.aclose()
        await super().aclose()


@pytest.fixture
async def make_stage(
    livekit: LiveKitServer, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(server: LiveKitServer | None = None, **settings: Any) -> Stage:
        name = f"{abs(hash(request.node.nodeid)) % 10**8}-{len(stages)}"
        stages.append(Stage(server or livekit, name, **settings))
        return stages[-1]

    yield make
    for stage in stages:
        await stage.aclose()


@pytest.fixture
async def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()
