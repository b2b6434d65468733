from __future__ import annotations

import asyncio
import doctest

import pytest

import server.front
from server.front import deadlines as module
from server.front.deadlines import Deadlines
from tests.fakes.waiting import until

pytestmark = pytest.mark.anyio


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_the_nearest_deadline_is_kept_and_a_nearer_one_wakes_it() -> None:
    loop = asyncio.get_running_loop()
    at: list[float] = []
    seen: list[float] = []

    def due(now: float) -> None:
        seen.extend(moment for moment in at if moment <= now)
        at[:] = [moment for moment in at if moment > now]

    deadlines = Deadlines(lambda: min(at, default=None), due, loop.time)
    running = asyncio.create_task(deadlines.run())
    await asyncio.sleep(0.01)  # nothing is limited
    far, near = loop.time() + 600, loop.time() + 0.03
    at.append(far)
    deadlines.poke()
    await asyncio.sleep(0)
    at.append(near)
    deadlines.poke()
    await until(lambda: bool(seen))
    assert (seen, at) == ([near], [far])
    assert loop.time() >= near
    at[:] = [next_one := loop.time() + 0.03]
    deadlines.poke()
    await until(lambda: len(seen) == 2)
    assert seen == [near, next_one]
    assert loop.time() >= next_one
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_fault_with_one_deadline_does_not_end_the_others(monkeypatch, caplog) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    calls = 0

    def due(now: float) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyError("bug")

    clock = FakeClock()
    running = asyncio.create_task(Deadlines(lambda: 100.0, due, clock).run())
    await until(lambda: calls >= 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert any(record.exc_info for record in caplog.records)


def test_the_first_page_shows_what_is_true() -> None:
    assert doctest.testmod(server.front).failed == 0
