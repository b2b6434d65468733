"""The worker's own connection breaks: what its session hears, and how it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from livekit import rtc

from server.transports.base import LeaveReason
from tests.livekit_server import LiveKitServer

from .conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


def lost_then_joined(kinds: list[tuple[object, ...]], who: str) -> bool:
    return kinds[-2:] == [("left", who, LeaveReason.LOST), ("joined", who)]


@pytest.mark.parametrize(
    "scenario",
    [
        rtc.SimulateScenarioKind.SIMULATE_SIGNAL_RECONNECT,
        rtc.SimulateScenarioKind.SIMULATE_FULL_RECONNECT,
        rtc.SimulateScenarioKind.SIMULATE_NODE_FAILURE,
    ],
)
async def test_a_broken_connection_is_a_player_away_until_it_is_mended(
    stage: Stage, scenario: rtc.SimulateScenarioKind.ValueType
) -> None:
    player = await stage.player()
    stage.play()
    await player.until(lambda: len(player.frames) > 5)
    room = stage.transport._stay.room
    assert room is not None
    await room.simulate(scenario)
    await stage.sink.until(lambda sink: lost_then_joined(sink.kinds(), player.who), 30)
    seen = len(player.frames)
    await player.until(lambda: len(player.frames) > seen + 10, 20)


async def test_the_player_s_own_reconnect_keeps_its_name(stage: Stage) -> None:
    player = await stage.player()
    stage.play()
    await player.room.simulate_scenario(rtc.SimulateScenarioKind.SIMULATE_FULL_RECONNECT)
    await stage.sink.until(lambda sink: ("left", player.who, LeaveReason.LOST) in sink.kinds(), 30)
    seen = len(player.frames)
    await player.until(lambda: len(player.frames) > seen + 10, 30)
    speaking = asyncio.create_task(player.speak())
    await stage.sink.until(lambda sink: lost_then_joined(sink.kinds(), player.who))
    speaking.cancel()


async def test_a_restarted_server_is_joined_again(
    make_stage: Callable[..., Stage], tmp_path: Path
) -> None:
    server = LiveKitServer(tmp_path / "livekit").start()
    try:
        stage = make_stage(server)
        player = await stage.player()
        server.restart()
        await stage.sink.until(
            lambda sink: ("left", player.who, LeaveReason.LOST) in sink.kinds(), 20
        )
        again = await stage.player(take_over=True)
        stage.play()
        await again.until(lambda: len(again.frames) > 10)
        await stage.transport.aclose()
        assert await server.rooms() == {}
    finally:
        server.stop()
