"""One player: greeting, picture, frames, receipts, and the same again from the same input."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from statistics import median

import pytest

from server.transports.base import LeaveReason
from server.transports.memory import MemoryPlayer
from tests.fakes.markers import marker_of
from tests.fakes.rig import PATIENCE_SECONDS, WorkerRig, frame, message, new_frames


async def test_a_player_gets_a_greeting_a_picture_and_frames():
    async with WorkerRig() as rig:
        player = await rig.play()
        greeting = next(m for m in player.messages if m.type == "hello")
        assert (greeting.world, greeting.session, greeting.epoch) == ("marker", "a", 0)
        poster = await frame(player, lambda f: True)
        assert (poster.frame_id, poster.receipt) == (1, 0)
        frames = await new_frames(player, 12)
        assert [one.frame_id for one in frames] == list(range(2, 14))
        assert [marker_of(one).frame for one in frames] == list(range(12))
        await rig.fact("running")
        facts = rig.facts()
        assert facts[0] == "connected"
        assert facts.index("starting") < facts.index("running")


async def test_a_key_is_answered_by_frames_that_carry_its_receipt_and_show_it():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        seq = player.keys("KeyW", presses={"KeyW": 1})
        while not marker_of(shown := await frame(player)).held:
            # a page repeats what is held, or it would expire
            player.keys("KeyW", presses={"KeyW": 1}, repeat=True)
        assert shown.receipt == player.nonce << 32 | seq
        assert marker_of(shown).seq == seq
        assert marker_of(shown).held == {"KeyW"}
        assert marker_of(shown).presses == 1
        chunk = await message(player, "chunk", lambda m: m.receipt == shown.receipt)
        assert chunk.frame_count == 4
        await rig.fact("active")


async def test_a_tap_is_applied_once_however_often_it_is_repeated():
    async with WorkerRig() as rig:
        player = await rig.play()
        player.keys(presses={"KeyA": 1}, copies=5)
        await frame(player, lambda f: f.receipt != 0)
        player.keys(presses={"KeyA": 2}, copies=3)
        last = await frame(player, lambda f: f.receipt & 0xFFFFFFFF == 2)
        assert marker_of(last).presses == 2
        assert [marker_of(one).presses for one in await new_frames(player, 8)] == [2] * 8


async def test_the_same_start_and_the_same_controls_give_identical_frames():
    async def played(rig: WorkerRig, session: str, taps: str) -> list[bytes]:
        """The prompt world stands still without input: each tap is exactly one chunk."""
        player = await rig.play(session)
        pictures: list[bytes] = []
        counts: dict[str, int] = {}
        for number, code in enumerate(taps, 1):
            counts[code] = counts.get(code, 0) + 1
            player.keys(presses={f"Key{code}": n for code, n in counts.items()})
            shown: dict[int, bytes] = {}
            while len(shown) < 4:
                one = await frame(player, lambda f, n=number: f.receipt & 0xFFFFFFFF == n)
                shown[one.frame_id] = one.data.tobytes()
            pictures += shown.values()
        return pictures

    async with WorkerRig("prompt", fps=60.0) as rig:
        first = await played(rig, "a", "WDWA")
        again = await played(rig, "b", "WDWA")
        other = await played(rig, "c", "WDAA")
    assert first == again
    assert first[:8] == other[:8]
    assert first[8] != other[8]


async def test_after_one_long_stall_frames_come_at_their_interval_again():
    """Within three chunks, as simulated time has it; here, as soon as the machine lets them."""
    async with WorkerRig("slow", denoise_ms=5, decode_ms=5, stall_at=6, stall_seconds=1.5) as rig:
        player = await rig.play()
        loop = asyncio.get_running_loop()
        came: dict[int, float] = {}
        gaps: list[float] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while max(gaps, default=0.0) < 1.2 or abs(median(gaps[-12:]) - 1 / 16) > 0.012:
                one = await frame(player)
                came.setdefault(one.frame_id, loop.time())
                gaps = [after - before for before, after in pairwise(came.values())]


async def test_a_world_at_half_speed_says_so_to_its_players():
    async with WorkerRig("slow", denoise_ms=125, decode_ms=5, fps=64.0) as rig:
        player = await rig.play()
        first = await message(player, "chunk")
        assert first.real_time_factor == 0, "nothing is known yet"
        later = await message(player, "chunk", lambda m: m.index >= 8)
        assert later.real_time_factor > 1.5


@pytest.mark.parametrize("wait", ["pause", "leave"])
async def test_time_that_a_session_waits_by_choice_is_no_slow_motion(wait: str):
    skipped = 0.0
    async with WorkerRig(fps=64.0, clock=lambda: time.monotonic() + skipped) as rig:
        player = await rig.play()
        await message(player, "chunk", lambda m: m.index >= 3)
        if wait == "pause":
            player.command({"type": "pause"})
            await rig.fact("paused")
            skipped = 600.0
            player.command({"type": "resume"})
        else:
            player.leave()
            await rig.fact("lost")
            skipped = 600.0
            player = await rig.play()
        chunk = await message(player, "chunk", lambda m: m.index >= 12)
        assert 0.9 < chunk.real_time_factor < 1000, "ten minutes are 9,600 chunks"


async def test_a_player_that_does_not_read_slows_nobody_down():
    async with WorkerRig(fps=64.0) as rig:
        frozen, other = await rig.play("a"), await rig.play("b")
        await frame(frozen)
        frozen.reads = False
        known = frozen.frames[-1].frame_id
        await new_frames(other, 40)
        assert rig.transports["a"].frames_dropped > 10
        frozen.reads = True
        latest = await frame(frozen, lambda f: f.frame_id > known)
        await new_frames(other, 1)
        assert latest.frame_id > known + 10, "frames waited for a player"


async def test_a_reconnect_finds_the_session_as_it_was():
    async with WorkerRig() as rig:
        player = await rig.play()
        player.keys("KeyD", presses={"KeyD": 1})
        before = await frame(player, lambda f: f.receipt != 0)
        player.vanish()
        await rig.fact("lost")
        granted = rig.worker.runtime.session("a").figures["chunks_granted"]
        again = await rig.play()
        assert again.nonce != player.nonce
        await rig.fact("connected", times=2)
        picture = again.frames[0]
        assert picture.frame_id >= before.frame_id, "the last picture comes at once"
        later = await frame(again, lambda f: f.frame_id > picture.frame_id)
        assert marker_of(later).presses == 1
        assert rig.worker.runtime.session("a").figures["chunks_granted"] >= granted
        after = await frame(again, lambda f: f.receipt == 0 or f.receipt >> 32 == again.nonce)
        assert marker_of(after).held == frozenset(), "nothing is held after a reconnect"
        assert rig.facts().count("starting") == 3, "the model state was built once, stage by stage"


async def test_nothing_is_generated_while_nobody_is_connected():
    async with WorkerRig(fps=64.0) as rig:
        player = await rig.play()
        await new_frames(player, 8)
        player.leave()
        await rig.fact("lost")
        session = rig.worker.runtime.session("a")
        granted = session.figures["chunks_granted"]
        await rig.stats()
        await rig.stats()
        assert session.figures["chunks_granted"] == granted
        assert not session.playing


async def test_a_second_tab_takes_over_only_when_it_says_so():
    async with WorkerRig() as rig:
        first = await rig.play()
        await frame(first)
        refused = await rig.connect()
        assert (refused.type, refused.code) == ("failure", "playing_elsewhere")
        await new_frames(first, 2)
        second = await rig.play(take_over=True)
        assert first.closed is LeaveReason.REPLACED
        seq = second.keys("KeyS")
        shown = await frame(second, lambda f: f.receipt >> 32 == second.nonce)
        assert shown.receipt & 0xFFFFFFFF == seq
        assert "lost" not in rig.facts(), "somebody was there all the time"


async def test_keys_of_the_tab_that_was_replaced_do_nothing():
    async with WorkerRig() as rig:
        first = await rig.play()
        second = await rig.play(take_over=True)
        thief = MemoryPlayer(nonce=first.nonce)
        thief._place = (
            second._place
        )  # its bytes on the new connection: only the nonce tells them apart
        thief.keys("KeyW")
        await new_frames(second, 4)
        assert all(f.receipt >> 32 != first.nonce for f in second.frames)
        assert rig.worker.runtime.session("a").figures["keys_foreign"] == 1
