"""Worlds that fail, stages that hang, and that nothing is left of what ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from admission.session import EndReason, State
from server.protocol.worker import Fatal, Ping
from server.transports.settings import TransportSettings
from tests.fakes.rig import WorkerRig, frame, message, new_frames
from tests.fakes.waiting import until


@pytest.mark.parametrize("stage", ["encode", "denoise", "decode"])
async def test_a_failing_stage_ends_its_session_and_no_other(stage):
    async with WorkerRig("failing", stage=stage, at_chunk=6, fps=32.0) as rig:
        first = await rig.play("a")
        await new_frames(first, 4)
        second = await rig.play("b")
        ended = await rig.fact("ended", "a")
        assert ended.reason is EndReason.WORLD_FAILED
        assert "ToldToFail" in ended.detail
        state = await message(first, "state", lambda m: m.reason is not None)
        assert (state.state, state.reason) == (State.FAILED, EndReason.WORLD_FAILED)
        await new_frames(second, 4)
        assert (await rig.close("a")).clean
        third = await rig.play("c")
        await new_frames(third, 4)


async def test_a_session_that_cannot_be_built_ends_with_a_reason():
    async with WorkerRig("failing", stage="open") as rig:
        await rig.play()
        assert (await rig.fact("ended")).reason is EndReason.WORLD_FAILED
        assert (await rig.close()).clean
        assert rig.worker.runtime.loaded.orchestrator.diagnostics().sessions == 0


@pytest.mark.parametrize("stage", ["denoise", "decode"])
async def test_a_stage_that_hangs_ends_every_session_and_the_worker(stage):
    rig = WorkerRig(
        "failing", stage=stage, at_chunk=2, hang=True, hang_seconds=20.0, stage_deadline_seconds=0.6
    )
    async with rig:
        player = await rig.play("a")
        fatal = await rig.fatal()
        assert fatal.code == "stage_hangs"
        assert stage in fatal.message
        assert (await rig.fact("ended", "a")).reason is EndReason.WORLD_FAILED
        assert (await message(player, "state", lambda m: m.reason is not None)).reason
        assert rig.worker.runtime.fatal.is_set()
        assert (await rig.connect("b")).type == "failure"
        assert (await rig.worker.call(Ping())).type == "done"


async def test_a_world_that_cannot_be_loaded_is_named():
    async with WorkerRig("atlantis") as rig:
        (fatal,) = [e for e in rig.reported if isinstance(e, Fatal)] or [await rig.fatal()]
        assert fatal.code == "unknown_world"
        assert "atlantis" in fatal.message
        assert (await rig.connect()).type == "failure"


async def test_a_connection_that_never_comes_up_ends_a_new_session_with_a_reason():
    async with WorkerRig(transport=TransportSettings(connect_seconds=0.2)) as rig:
        assert (await rig.connect()).type == "connected"
        assert (await rig.fact("ended")).reason is EndReason.CONNECT_FAILED
        assert rig.worker.runtime.loaded.orchestrator.diagnostics().sessions == 0
        assert (await rig.close()).clean
        rig.transport_settings = None
        await rig.play()


async def test_closing_releases_everything_whatever_the_session_is_at():
    async with WorkerRig("slow", denoise_ms=10, decode_ms=10, fps=64.0, seats=2) as rig:
        await new_frames(await rig.play("warm"), 4)
        await rig.close("warm")
        loaded = rig.worker.runtime.loaded
        tasks, threads = len(asyncio.all_tasks()), threading.active_count()
        for number in range(30):
            player = await rig.play("a")
            if number % 3:
                await frame(player)
            if number % 4 == 1:
                player.command({"type": "reset"})
            if number % 4 == 2:
                player.command({"type": "pause"})
            if number % 5 == 4:
                player.command({"type": "stop"})
            if number % 7 == 6:
                player.vanish()
            assert (await rig.close("a")).clean
            diagnostics = loaded.orchestrator.diagnostics()
            assert (diagnostics.sessions, diagnostics.slots_used) == (0, 0)
            assert loaded.lease.holder is None
            assert not loaded.lease.wants("a")
            assert loaded.undecoded.count == 0
        assert diagnostics.slot_leaks == 0
        assert diagnostics.quarantined == ()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        # the second converter starts when needed
        await until(lambda: threading.active_count() <= threads + 1)


async def test_closing_tells_the_players_why():
    async with WorkerRig() as rig:
        player = await rig.play()
        await frame(player)
        await rig.close(reason=EndReason.TIME_LIMIT)
        last = [m for m in player.messages if m.type == "state"][-1]
        assert (last.state, last.reason) == (State.EXPIRED, EndReason.TIME_LIMIT)
        assert "ended" not in rig.facts(), "the front door knows it already"


async def test_closing_what_is_not_there_is_clean():
    async with WorkerRig() as rig:
        assert (await rig.close("nobody")).clean


async def test_no_thread_and_no_task_is_left_of_a_worker():
    before, tasks = set(threading.enumerate()), asyncio.all_tasks()
    async with WorkerRig(fps=64.0) as rig:
        await new_frames(await rig.play(), 4)
    # the loop's own executor keeps its threads for the next caller
    new = [t for t in set(threading.enumerate()) - before if not t.name.startswith("asyncio_")]
    for thread in new:
        thread.join(5)
    assert [thread for thread in new if thread.is_alive()] == []
    await until(lambda: asyncio.all_tasks() <= tasks)


async def test_the_numbers_are_pushed_every_second():
    async with WorkerRig(fps=64.0) as rig:
        await new_frames(await rig.play(), 8)
        stats = await rig.stats()
        assert stats["veldt_worker_sessions"] == 1
        assert stats["veldt_worker_sessions_by_state running"] == 1
        assert stats["veldt_worker_chunks_granted_total"] >= 2
        assert stats["veldt_worker_frames_sent_total"] >= 8
        assert stats["veldt_worker_stage_calls_total denoise run"] >= 2
        assert 0 <= stats["veldt_worker_loop_lag_p99_seconds"] < 5
        await rig.close()
        after = await rig.stats()
        assert after["veldt_worker_sessions"] == 0
        assert after["veldt_worker_frames_sent_total"] >= stats["veldt_worker_frames_sent_total"]
