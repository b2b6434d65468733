"""What players command, and what becomes of bad input."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from admission.session import EndReason, State
from server.transports.base import Identity, Topic
from tests.fakes.markers import marker_of
from tests.fakes.rig import WorkerRig, frame, message, new_frames


async def test_keys_before_the_hello_are_counted_and_ignored():
    async with WorkerRig() as rig:
        player = await rig.play(hello=False)
        player.keys("KeyW", presses={"KeyW": 1}, copies=3)
        await new_frames(player, 5)
        assert all(one.receipt == 0 for one in player.frames)
        assert rig.worker.runtime.session("a").figures["keys_before_hello"] == 3


async def test_a_hello_is_acknowledged_as_often_as_it_is_said():
    async with WorkerRig() as rig:
        player = await rig.play()
        for _ in range(3):
            said = player.hello()
            assert (await message(player, "ack")).id == said


async def test_a_hello_of_another_version_is_refused_in_words():
    async with WorkerRig() as rig:
        player = await rig.play(hello=False)
        said = player.command({"type": "hello", "nonce": 7, "version": 2})
        error = await message(player, "error")
        assert (error.code, error.id) == ("unsupported_version", said)
        player.command({"type": "pause"})
        assert (await message(player, "error")).code == "hello_first"


async def test_after_the_acknowledged_reset_no_older_frame_is_published():
    async with WorkerRig(fps=32.0) as rig:
        player = await rig.play()
        player.keys(presses={"KeyW": 3})
        await frame(player, lambda f: f.receipt != 0)
        await new_frames(player, 6)
        said = player.command({"type": "reset"})
        ack = player.messages[-1] if player.messages[-1].type == "ack" else None
        ack = ack or next(m for m in reversed(player.messages) if m.type == "ack")
        assert (ack.id, ack.epoch) == (said, 1)
        last_before = player.frames[-1].frame_id
        player.epoch = ack.epoch
        poster = await frame(player, lambda f: f.frame_id > last_before)
        assert poster.receipt == 0
        after = await frame(player, lambda f: f.frame_id > poster.frame_id)
        assert marker_of(after).frame == 0, "the new incarnation begins at its first frame"
        assert marker_of(after).presses == 0
        ids = [f.frame_id for f in player.frames]
        assert ids == sorted(ids), "no older picture follows a newer one"
        chunk = await message(player, "chunk", lambda m: m.epoch == 1)
        assert chunk.index == 0
        await rig.fact("running", times=2)


async def test_a_reset_while_paused_is_prepared_and_then_stands_until_resumed():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        player.command({"type": "pause"})
        await message(player, "state", lambda m: m.paused)
        player.command({"type": "reset"})
        await message(player, "state", lambda m: m.stage is not None and m.paused)
        ready = await message(player, "state", lambda m: m.stage is None)
        assert (ready.state, ready.paused) == (State.SUSPENDED, True)
        await rig.until(lambda: rig.said("starting")[-1].stage is None)
        player.command({"type": "resume"})
        await message(player, "state", lambda m: m.state is State.RUNNING)
        await frame(player, lambda f: f.frame_id > 1)


async def test_resets_that_come_faster_than_they_can_be_done_are_one():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        said = [player.command({"type": "reset"}) for _ in range(10)]
        acks = [await message(player, "ack", lambda m, i=i: m.id == i) for i in said]
        assert {ack.epoch for ack in acks} == {1}
        chunk = await message(player, "chunk", lambda m: m.epoch > 0)
        assert (chunk.epoch, chunk.index) == (1, 0)


async def test_presses_of_the_old_epoch_do_not_count_in_the_new_one():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        player.command({"type": "reset"})
        seq = player.keys(presses={"KeyW": 5})  # still with epoch 0
        shown = await frame(player, lambda f: f.receipt & 0xFFFFFFFF == seq)
        assert marker_of(shown).presses == 0


async def test_pause_lets_the_picture_stand_and_resume_goes_on():
    async with WorkerRig(fps=64.0) as rig:
        player = await rig.play()
        await new_frames(player, 6)
        player.command({"type": "pause"})
        await rig.fact("paused")
        state = await message(player, "state", lambda m: m.paused)
        assert state.state is State.SUSPENDED
        standing = player.frames[-1].frame_id
        repeated = [await frame(player, lambda f: True) for _ in range(3)]
        while repeated[0].frame_id < standing:
            repeated.append(await frame(player, lambda f: True))
            repeated.pop(0)
        assert {one.frame_id for one in repeated} == {standing}
        player.command({"type": "pause"})  # again: acknowledged, nothing changes
        player.command({"type": "resume"})
        await rig.fact("resumed")
        later = await frame(player, lambda f: f.frame_id > standing)
        assert later.frame_id == standing + 1, "the frames that were there are still shown"
        await new_frames(player, 12)
        assert rig.facts().count("paused") == 1


async def test_a_page_that_was_reloaded_while_paused_plays():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        player.command({"type": "pause"})
        player.leave()
        again = await rig.play()
        await new_frames(again, 5)
        assert rig.facts().count("resumed") == 1


async def test_stop_ends_the_session_and_says_so_to_everybody():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        said = player.command({"type": "stop"})
        assert (await message(player, "ack", lambda m: m.id == said)).epoch == 0
        ended = await rig.fact("ended")
        assert ended.reason is EndReason.STOPPED
        state = await message(player, "state", lambda m: m.reason is not None)
        assert (state.state, state.reason) == (State.CLOSED, EndReason.STOPPED)
        refused = await rig.connect()
        assert (refused.type, refused.code) == ("failure", "session_ended")
        assert (await rig.close()).clean
        await rig.play()


async def test_a_prompt_shows_in_the_next_chunk_of_a_world_that_takes_one():
    async with WorkerRig("prompt") as rig:
        player = await rig.play(prompt="a quiet lake")
        await message(player, "chunk")
        before = await frame(player)
        said = player.command({"type": "prompt", "text": "a storm"})
        await message(player, "ack", lambda m: m.id == said)
        chunk = await message(player, "chunk")
        assert chunk.index == 1, "a world that stands still makes one chunk for the new prompt"
        after = await frame(player, lambda f: f.frame_id > before.frame_id + 4)
        assert after.data.tobytes() != before.data.tobytes()


async def test_what_a_world_cannot_do_is_refused_and_changes_nothing():
    async with WorkerRig() as rig:
        player = await rig.play()
        said = player.command({"type": "prompt", "text": "rain"})
        error = await message(player, "error")
        assert (error.code, error.id) == ("unsupported_by_world", said)
        player.command({"type": "grant", "to": "somebody"})
        assert (await message(player, "error")).code == "not_granted"
        await new_frames(player, 4)


AXES = b'{"epoch":0,"nonce":1,"seq":1,"held":[],"axes":{"forward":%s}}'


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        (Topic.KEYS, b"\xff\xfe"),
        (Topic.KEYS, b"{}"),
        *((Topic.KEYS, AXES % number) for number in (b"NaN", b"Infinity", b"-Infinity", b"1e999")),
        (Topic.KEYS, b'{"epoch":0,"nonce":1,"seq":-1,"held":[]}'),
        (Topic.KEYS, b'{"epoch":0,"nonce":1,"seq":1,"held":["KeyW"],"more":1}'),
        (Topic.COMMAND, b'{"type":"dance","id":"1"}'),
        (Topic.COMMAND, b'{"type":"prompt","id":"1","text":"\\ud800"}'),
        (Topic.COMMAND, b"[" * 4000 + b"]" * 4000),
        (Topic.COMMAND, b'{"type":"hello","id":"1","nonce":' + b"9" * 5000 + b',"version":1}'),
        (Topic.COMMAND, b""),
    ],
)
async def test_bad_input_is_answered_to_its_sender_and_changes_nothing(topic, payload):
    """Row H2 on the data channels, and whatever else is no message."""
    async with WorkerRig() as rig:
        player = await rig.play()
        player.send(topic, payload)
        error = await message(player, "error")
        assert error.code == "bad_message"
        assert error.message
        await new_frames(player, 2)
        assert all(one.receipt == 0 for one in player.frames)


async def test_errors_are_coalesced_to_five_a_second():
    stands: float | None = None
    async with WorkerRig(clock=lambda: stands or time.monotonic()) as rig:
        player = await rig.play()
        session = rig.worker.runtime.session("a")
        stands = time.monotonic()
        for _ in range(100):
            session.received(player.who, Topic.COMMAND, b"nonsense")
        stands = None
        at_once = [m for m in player.messages if m.type == "error"]
        assert len(at_once) == 5
        later = await message(player, "error", lambda m: m.count > 1)
        assert later.count == 95


async def test_ten_thousand_messages_a_second_harm_nobody():
    async with WorkerRig(fps=64.0) as rig:
        player, other = await rig.play("a"), await rig.play("b")
        session = rig.worker.runtime.session("a")
        keys = {"epoch": 0, "nonce": player.nonce, "seq": 1, "held": ["KeyW"]}
        began = time.monotonic()
        for second in range(2):
            for number in range(10_000):
                keys["seq"] = 1 + number + 10_000 * second
                session.received(player.who, Topic.KEYS, json.dumps(keys).encode())
                if number % 100 == 0:
                    await asyncio.sleep(0)
            await new_frames(other, 8)
        assert session.figures["messages_dropped"] > 15_000
        seconds = time.monotonic() - began
        assert len([m for m in player.messages if m.type == "error"]) <= 5 * (seconds + 1)
        await new_frames(player, 8)


async def test_bytes_of_nobody_are_counted_and_ignored():
    async with WorkerRig() as rig:
        await rig.play()
        session = rig.worker.runtime.session("a")
        session.received(Identity(""), Topic.KEYS, b"{}")
        session.received(Identity("player-99"), Topic.COMMAND, b'{"type":"stop","id":"1"}')
        assert session.figures["messages_of_strangers"] == 2
        assert session.ended is None


async def test_a_start_that_the_world_does_not_know_is_refused_by_name():
    async with WorkerRig() as rig:
        for start, field in (
            ({"start_point": "atlantis"}, "start_point"),
            ({"prompt": "x"}, "prompt"),
        ):
            refused = await rig.connect(**start)
            assert (refused.type, refused.code, refused.field) == ("failure", "bad_start", field)
        assert rig.worker.runtime.session("a") is None


async def test_a_session_can_be_paused_reset_and_left_before_it_is_built():
    async with WorkerRig("slow", denoise_ms=10, decode_ms=10) as rig:
        player = await rig.play()
        for command in ("pause", "reset", "resume", "pause"):
            said = player.command({"type": command})
            assert (await message(player, "ack", lambda m, i=said: m.id == i)).epoch == 0
        player.leave()
        again = await rig.play()
        await new_frames(again, 4)
        assert rig.worker.runtime.session("a").ended is None
