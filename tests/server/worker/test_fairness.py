"""Several players on one worker."""

from __future__ import annotations

import asyncio
from collections import Counter

from pipeline.streaming.messages import StageCompleted
from tests.fakes.rig import PATIENCE_SECONDS, WorkerRig, frame, message, new_frames

SATURATED = {"denoise_ms": 40, "decode_ms": 10, "fps": 64.0}  # two need 80 ms of every 62.5 ms


class Served:
    """What the exclusive stage does from now on, and how long sessions that want it wait.

    `waited` are, per session, the numbers of other chunks that ended while it stood in line; the
    one whose end was its own grant is not among them.
    """

    def __init__(self, rig: WorkerRig) -> None:
        self.order: list[str] = []
        self.waited: dict[str, list[int]] = {}
        self._waiting: Counter[str] = Counter()
        self._lease = rig.worker.runtime.loaded.lease
        self._news = asyncio.Event()
        rig.worker.runtime.loaded.orchestrator.subscribe(self._note)

    async def chunks(self, count: int) -> list[str]:
        """The next so many."""
        start = len(self.order)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.order) < start + count:
                self._news.clear()
                await self._news.wait()
        return self.order[start:]

    def _note(self, event: StageCompleted) -> None:
        if event.stage != "denoise":
            return
        self.order.append(event.session)
        self.waited.setdefault(event.session, []).append(self._waiting.pop(event.session, 0))
        self._waiting.update(name for name in "abc" if self._lease.wants(name))
        self._waiting[event.session] = 0  # what it wants now, it has not waited for yet
        self._news.set()


async def test_players_who_saturate_a_worker_are_served_alike():
    async with WorkerRig("slow", **SATURATED) as rig:
        players = {name: await rig.play(name) for name in "abc"}
        for player in players.values():  # until their speed is known, they may wait by choice
            await message(player, "chunk", lambda m: m.index >= 8)
        served = Served(rig)
        order = await served.chunks(36)
        for name in "abc":
            assert order.count(name) in (11, 12, 13), order  # both ends of the count cut a round
            assert max(served.waited[name]) <= len(players) - 1, (name, served.waited, order)
        lease = await message(players["a"], "lease", lambda m: m.players == 3)
        assert 0 <= lease.position <= 3


async def test_a_press_while_waiting_for_the_lease_is_in_the_very_next_chunk():
    async with WorkerRig("slow", **SATURATED) as rig:
        a, b = await rig.play("a"), await rig.play("b")
        await new_frames(a, 8)
        await new_frames(b, 8)
        loaded, session = rig.worker.runtime.loaded, rig.worker.runtime.session("b")
        pressed: list[tuple[int, int]] = []

        def press_while_waiting(_: object) -> None:
            if loaded.lease.wants("b") and loaded.lease.holder == "a" and len(pressed) < 4:
                pressed.append((int(session.figures["chunks_granted"]), b.keys("KeyW")))

        loaded.orchestrator.subscribe(press_while_waiting)
        shown: dict[int, int] = {}
        while len(pressed) < 4 or pressed[-1][0] not in shown:
            chunk = await message(b, "chunk")
            shown[chunk.index] = chunk.receipt & 0xFFFFFFFF
        for granted, seq in pressed:
            assert shown[granted - 1] < seq <= shown[granted], (pressed, shown)


async def test_an_idle_session_costs_the_others_nothing():
    async with WorkerRig("prompt", fps=64.0) as rig:
        idle, active = await rig.play("a"), await rig.play("b")
        await message(idle, "chunk")
        await message(active, "chunk")
        for number in range(1, 9):
            active.keys(presses={"KeyW": number})
            chunk = await message(active, "chunk")
            assert chunk.index == number
        assert rig.worker.runtime.session("a").figures["chunks_granted"] == 1
        assert not rig.worker.runtime.loaded.lease.wants("a")


async def test_joining_and_resetting_leave_the_other_player_running():
    async with WorkerRig("slow", denoise_ms=20, decode_ms=10, fps=64.0) as rig:
        a = await rig.play("a")
        await new_frames(a, 8)
        b = await rig.play("b")
        served = Served(rig)
        await served.chunks(8)
        for _ in range(3):
            b.command({"type": "reset"})
            assert "a" in await served.chunks(8)
        assert max(served.waited["a"]) <= 1, "whoever wants waits for one chunk of the other"


async def test_keys_pressed_while_the_world_warms_up_do_not_lose_the_place_in_line():
    async with WorkerRig("slow", denoise_ms=800, decode_ms=10) as rig:
        a = await rig.play("a")
        lease = rig.worker.runtime.loaded.lease
        await message(a, "chunk")  # decoded: its next one is denoised for 800 ms
        b = await rig.play("b")
        while not lease.wants("b"):
            await frame(a, lambda _: True)
        assert "starting" not in rig.facts("b"), "its model state is still to be built"
        b.keys("KeyW")
        await rig.fact("running", "b")


async def test_the_seats_are_a_bound_here_too():
    async with WorkerRig(seats=1) as rig:
        player = await rig.play("a")
        refused = await rig.connect("b")
        assert (refused.type, refused.code) == ("failure", "worker_full")
        await frame(player)
        await rig.close("a")
        await rig.play("b")
