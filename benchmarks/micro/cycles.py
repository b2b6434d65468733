"""Open and close sessions a thousand times, kill workers at random, and count what is left.

Zero-compute world. Every cycle goes over HTTP; one in four plays (aiortc) until a frame is shown,
one in four brings an offer and never takes up the answer, the rest leave at once or just go silent.
Leftovers are counted against the same server after its first cycles: seats that are not free,
sessions, slots, tasks, and descriptors, threads and processes above what was there before.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil

from tests.e2e.scripted import Players, Session, players
from tests.e2e.server import ServerProcess
from tests.fakes.rtc_client import RtcPlayer

CYCLES, AT_ONCE, KILLS = 1000, 4, 8
SETTLE_SECONDS = 30.0


async def opened(group: Players) -> Session:
    """A session; waits while a killed worker is being replaced or every seat is taken."""
    while True:
        try:
            return await group.open()
        except ConnectionError as refusal:
            if not str(refusal).startswith(("429", "503")):
                raise
            await asyncio.sleep(0.2)


async def cycle(group: Players, kind: int) -> str:
    """One session, from POST to DELETE; says how it went."""
    session = await opened(group)
    try:
        async with asyncio.timeout(20):
            if kind == 0:
                await session.play(RtcPlayer(decode=False))
                await session.player.until(lambda: len(session.player.frames) > 2)
            elif kind == 1:
                await session.answer(await session.player.offer())
        return "done"
    except (ConnectionError, TimeoutError, httpx.HTTPError):
        return "cut short"  # its worker was killed
    finally:
        await session.leave()


def held(server: ServerProcess) -> dict[str, float]:
    """What the processes of the server hold now."""
    assert server.process is not None
    every = [psutil.Process(server.process.pid), *server.workers()]
    return {
        "descriptors": sum(process.num_fds() for process in every),
        "threads": sum(process.num_threads() for process in every),
        "processes": len(every),
        "tasks": server.metric("veldt_tasks", process="front")
        + server.metric("veldt_worker_tasks"),
        "slots": server.metric("veldt_worker_slots_used"),
        "sessions": server.metric("veldt_worker_sessions"),
        "seats": server.metric("veldt_seats_capacity") - server.metric("veldt_seats", state="free"),
    }


async def settled(server: ServerProcess, before: dict[str, float]) -> dict[str, float]:
    """What is left once closing has had its time."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        await asyncio.sleep(2)
        try:
            now = held(server)
        except KeyError:
            continue  # a worker that has just started has pushed no numbers yet
        left = {name: max(0.0, now[name] - before[name]) for name in now}
        if not any(left.values()) or time.monotonic() > deadline:
            return left


async def measure(cycles: int) -> dict[str, float]:
    """Run the cycles; about five minutes."""
    chance = random.Random(3)
    kills = set(chance.sample(range(40, cycles), min(KILLS, max(0, cycles - 40))))
    outcome: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(
            Path(folder) / "server.log",
            veldt_world="marker",
            veldt_world_options='{"fps": 32}',
            veldt_connect_seconds="5",
        ).start()
        try:
            async with players(server) as group:
                for number in range(12):
                    await cycle(group, number % 4)
                await asyncio.sleep(6)
                before = held(server)

                async def run(number: int) -> None:
                    if number in kills:
                        for worker in server.workers():
                            worker.kill()
                    how = await cycle(group, number % 4)
                    outcome[how] = outcome.get(how, 0) + 1

                numbers = iter(range(cycles))

                async def lane() -> None:
                    for number in numbers:
                        await run(number)
                        group.forget_closed()

                await asyncio.gather(*(lane() for _ in range(AT_ONCE)))
            left = await settled(server, before)
        finally:
            server.stop()
    print(f"{outcome} of {cycles} cycles, {len(kills)} workers killed; left over: {left}")
    return {"cycles_leak": sum(left.values()), "cycles_done": float(sum(outcome.values()))}


def figures() -> dict[str, float]:
    """Measure once."""
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else CYCLES
    return asyncio.run(measure(cycles))


def main() -> None:
    """Print for people, then one line for scripts."""
    print(json.dumps(figures()))


if __name__ == "__main__":
    main()
