from __future__ import annotations

import asyncio

from tests.fakes.rig import WorkerRig, frame, message, new_frames


async def test_a_player_gets_a_greeting_a_picture_and_frames():
    async with WorkerRig() as rig:
        player = await rig.play()
        greeting = next(m for m in player.messages if m.type == "hello")
        assert (greeting.world, greeting.session, greeting.epoch) == ("marker", "a", 0)
        poster = await frame(player, lambda f: True)
        assert (poster.frame_id, poster.receipt) == (1, 0)
        frames = await new_frames(player, 12)
        ids = [one.frame_id for one in frames]
        assert ids == list(range(2, 14))
        await rig.fact("running")
        facts = rig.facts()
        assert facts[0] == "connected"
        assert facts.index("starting") < facts.index("running")


async def test_a_key_is_answered_by_frames_that_carry_its_receipt():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        seq = player.keys("KeyW", presses={"KeyW": 1})
        shown = await frame(player, lambda f: f.receipt != 0)
        assert shown.receipt == player.nonce << 32 | seq
        chunk = await message(player, "chunk", lambda m: m.receipt == shown.receipt)
        assert chunk.frame_count == 4
        await rig.fact("active")
