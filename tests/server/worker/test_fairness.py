"""Several players on one worker."""

from __future__ import annotations

import asyncio
from collections import Counter

from server.protocol.status import Chunk
from server.transports.memory import MemoryPlayer
from tests.fakes.rig import PATIENCE_SECONDS, WorkerRig, frame, message, new_frames

SATURATED = {"denoise_ms": 40, "decode_ms": 10, "fps": 64.0}  # two need 80 ms of every 62.5 ms


class Served:
    """Chunks of several players in the order in which they were decoded."""

    def __init__(self, **players: MemoryPlayer) -> None:
        self.order: list[tuple[str, Chunk]] = []
        self._news = asyncio.Event()
        self._tasks = [asyncio.create_task(self._follow(n, p)) for n, p in players.items()]

    async def __aenter__(self) -> Served:
        await asyncio.sleep(0)  # every follower takes what its player has not read so far
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def chunks(self, count: int) -> list[tuple[str, Chunk]]:
        """The next so many, whoever they are of."""
        start = len(self.order)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.order) < start + count:
                self._news.clear()
                await self._news.wait()
        return self.order[start:]

    async def _follow(self, name: str, player: MemoryPlayer) -> None:
        while True:
            chunk = await player.next_message("chunk")
            assert isinstance(chunk, Chunk)
            self.order.append((name, chunk))
            self._news.set()


async def test_players_who_saturate_a_worker_are_served_alike():
    async with WorkerRig("slow", **SATURATED) as rig:
        players = {name: await rig.play(name) for name in "abc"}
        for player in players.values():
            await new_frames(player, 4)
        async with Served(**players) as served:
            order = await served.chunks(36)
        counts = Counter(dict.fromkeys("abc", 0))
        for name, _ in order:
            counts[name] += 1
            assert max(counts.values()) - min(counts.values()) <= 1, order
        lease = await message(players["a"], "lease", lambda m: m.players == 3)
        assert 0 <= lease.position <= 3


async def test_a_press_while_waiting_for_the_lease_is_in_the_very_next_chunk():
    async with WorkerRig("slow", **SATURATED) as rig:
        a, b = await rig.play("a"), await rig.play("b")
        await new_frames(a, 8)
        await new_frames(b, 8)
        lease, session = rig.worker.runtime.loaded.lease, rig.worker.runtime.session("b")
        for _ in range(4):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (lease.wants("b") and lease.holder == "a"):
                    await message(a, "chunk")
            granted = int(session.figures["chunks_granted"])
            seq = b.keys("KeyW")
            chunk = await message(b, "chunk", lambda m, n=granted: m.index >= n)
            assert chunk.index == granted
            assert chunk.receipt == b.nonce << 32 | seq


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
        async with Served(a=a, b=b) as served:
            await served.chunks(8)
            for _ in range(3):
                b.command({"type": "reset"})
                order = await served.chunks(8)
                assert sum(name == "a" for name, _ in order) >= 3, order


async def test_the_seats_are_a_bound_here_too():
    async with WorkerRig(seats=1) as rig:
        player = await rig.play("a")
        refused = await rig.connect("b")
        assert (refused.type, refused.code) == ("failure", "worker_full")
        await frame(player)
        await rig.close("a")
        await rig.play("b")
