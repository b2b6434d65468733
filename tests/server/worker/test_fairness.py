"""Several players on one worker."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping

from pipeline.service import World
from pipeline.streaming.messages import StageCompleted
from pipeline.testworlds.base import DrawnWorld, Sketch
from pipeline.testworlds.marker import paint
from server.worker.lease import Errand
from tests.fakes.rig import PATIENCE_SECONDS, WorkerRig, frame, message, new_frames
from tests.fakes.waiting import until

SATURATED = {"denoise_ms": 40, "decode_ms": 10, "fps": 64.0}  # two need 80 ms of every 62.5 ms


class Served:
    """What the exclusive stage does from now on, and how long sessions that want it wait.

    `waited` are, per session, the numbers of other grants between its wish and its own grant. A
    grant that it could not have used, since its last chunk was still being decoded, is not among
    them, but in `missed`: on a busy machine there are some.
    """

    def __init__(self, rig: WorkerRig) -> None:
        self.order: list[str] = []
        self.waited: dict[str, list[int]] = {}
        self.missed = 0
        self._waiting: Counter[str] = Counter()
        self._unready: set[str] = set()  # of those asked at this grant
        self._news = asyncio.Event()
        self._lease = lease = rig.worker.runtime.loaded.lease
        self._want, self._hand_on = lease.want, lease.hand_on
        lease.want, lease.hand_on = self._note_want, self._note_hand_on
        rig.worker.runtime.loaded.orchestrator.subscribe(self._note_end)

    async def chunks(self, count: int) -> list[str]:
        """The next so many."""
        start = len(self.order)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.order) < start + count:
                self._news.clear()
                await self._news.wait()
        return self.order[start:]

    def _note_end(self, event: StageCompleted) -> None:
        if event.stage == "denoise":
            self.order.append(event.session)
            self._news.set()

    def _note_hand_on(self) -> None:
        self._unready.clear()
        self._hand_on()

    def _note_want(self, session: str, errand: Errand) -> None:
        def ready() -> bool:
            if not (can := errand.ready()):
                self._unready.add(session)
            return can

        def granted() -> None:
            others = {name for name in "abc" if name != session and self._lease.wants(name)}
            self._waiting.update(others - self._unready)
            self.missed += len(others & self._unready)
            self.waited.setdefault(session, []).append(self._waiting.pop(session, 0))
            self._unready.clear()
            errand.granted()

        self._want(session, Errand(ready, granted))


async def test_players_who_saturate_a_worker_are_served_alike():
    async with WorkerRig("slow", **SATURATED) as rig:
        players = {name: await rig.play(name) for name in "abc"}
        for player in players.values():  # until their speed is known, they may wait by choice
            await message(player, "chunk", lambda m: m.index >= 8)
        served = Served(rig)
        order = await served.chunks(36)
        counts = [order.count(name) for name in "abc"]
        # Both ends of the count cut a round.
        assert max(counts) - min(counts) <= 2 + served.missed, (served.missed, order)
        for name in "abc":
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
    busy, go = threading.Event(), threading.Event()

    def denoise(index: int) -> None:
        if index > 0:
            busy.set()
            go.wait(60)

    def load(name: str, options: Mapping[str, object]) -> World:
        sketch = Sketch(name, "Held up", "A test picture whose second chunk waits.", paint)
        return DrawnWorld(sketch, {"denoise": denoise})

    async with WorkerRig(load=load) as rig:
        await rig.play("a")
        lease = rig.worker.runtime.loaded.lease
        await until(busy.is_set)
        b = await rig.play("b")
        await until(lambda: lease.wants("b"))
        assert "starting" not in rig.facts("b"), "its model state is still to be built"
        b.keys("KeyW")
        go.set()
        await rig.fact("running", "b")


async def test_the_seats_are_a_bound_here_too():
    async with WorkerRig(seats=1) as rig:
        player = await rig.play("a")
        refused = await rig.connect("b")
        assert (refused.type, refused.code) == ("failure", "worker_full")
        await frame(player)
        await rig.close("a")
        await rig.play("b")
