"""A worker that missed what happened in its room finds out once it is told to look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from server.protocol.rooms import room_name
from server.transports.base import Identity, LeaveReason
from server.transports.livekit.room import JoinedRoom
from server.transports.livekit.service import RoomService
from tests.fakes.waiting import until

from .conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
MakeStage = Callable[..., Stage]


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiveKit's client tells the worker of no departure, and of no end of its room."""
    for news in ("_departed", "_disconnected", "_reconnecting"):
        monkeypatch.setattr(JoinedRoom, news, lambda self, *_: None)


async def doubted(stage: Stage, found_out: Callable[[], bool]) -> None:
    """Have it look until it has found out, as the front door does: LiveKit may be behind."""

    async def look() -> bool:
        stage.transport.doubt()
        await asyncio.sleep(0.2)
        return found_out()

    await until(look)


@pytest.mark.usefixtures("deaf")
async def test_a_player_that_was_put_out_is_lost(make_stage: MakeStage) -> None:
    stage = make_stage(lost_seconds=600)
    player = await stage.player()
    async with RoomService(stage.address) as service:
        await service.remove(room_name(stage.address.room_prefix, stage.session), player.who)
    await player.until(lambda: player.gone is not None)
    assert stage.sink.kinds() == [("joined", player.who)]
    await doubted(stage, lambda: len(stage.sink.kinds()) > 1)
    assert stage.sink.kinds()[1:] == [("left", player.who, LeaveReason.LOST)]
    again = await stage.player()
    assert stage.sink.kinds()[-1] == ("joined", again.who)


@pytest.mark.usefixtures("deaf")
async def test_a_room_that_is_gone_is_made_again(make_stage: MakeStage) -> None:
    stage = make_stage(lost_seconds=600)
    player = await stage.player()
    name = room_name(stage.address.room_prefix, stage.session)
    async with RoomService(stage.address) as service:
        await service.delete(name)
        await player.until(lambda: player.gone is not None)
        await doubted(stage, lambda: ("left", player.who, LeaveReason.LOST) in stage.sink.kinds())

        async def there() -> bool:
            return Identity("worker") in await service.inside(name)

        await until(there, 15)
    again = await stage.player()
    stage.play()
    await again.until(lambda: len(again.frames) > 5)


async def test_a_doubt_without_a_reason_changes_nothing(stage: Stage) -> None:
    stage.transport.doubt()  # there is no room yet
    player = await stage.player()
    stage.transport.doubt()
    stage.play()
    await player.until(lambda: len(player.frames) > 10)
    await asyncio.sleep(0.5)
    assert stage.sink.kinds() == [("joined", player.who)]
