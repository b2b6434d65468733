"""Receipts: in the frames for those who can read them, as messages for those who cannot."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.livekit_player import LiveKitPlayer

from .conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def told(player: LiveKitPlayer) -> dict[int, int]:
    """Receipts by frame id, as `frames` messages say them."""
    return {
        int(frame["frame_id"]): int(frame["receipt"])
        for message in player.of("frames")
        for frame in message["frames"]
    }


async def test_whoever_cannot_read_frames_is_told_what_each_of_them_shows(stage: Stage) -> None:
    player = await stage.player(frame_metadata=False)
    answer = await stage.transport.invite()
    watching = LiveKitPlayer()
    stage.players.append(watching)
    await watching.join(answer.details)
    stage.play()
    await player.until(lambda: len(player.frames) > 20 and len(told(player)) > 20)
    shown = {frame.frame_id: frame.receipt for frame in player.frames if frame.frame_id}
    await player.until(lambda: max(shown) in told(player))
    assert {number: told(player).get(number) for number in shown} == shown
    times = [frame["pts"] for message in player.of("frames") for frame in message["frames"]]
    assert len(set(times)) == len(times)
    await watching.until(lambda: len(watching.frames) > 5)
    assert not watching.of("frames"), "a spectator measures nothing"


async def test_whoever_can_read_frames_is_told_nothing(stage: Stage) -> None:
    cannot = await stage.player(frame_metadata=False)
    stage.play()
    await cannot.until(lambda: bool(cannot.of("frames")))
    can = await stage.player(take_over=True)
    await can.until(lambda: len(can.frames) > 10)
    await asyncio.sleep(0)
    assert all(frame.receipt for frame in can.frames[1:])
    assert not can.of("frames")
