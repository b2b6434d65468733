from __future__ import annotations

import asyncio

import pytest

from pipeline.streaming.waiting import Wakeups

pytestmark = pytest.mark.anyio


async def test_a_condition_that_holds_is_not_waited_for():
    wakeups = Wakeups()
    await wakeups.until("a", lambda: True)
    assert len(wakeups) == 0


async def test_only_those_of_the_key_look_again_and_only_if_it_holds_they_go_on():
    wakeups, holds = Wakeups(), False
    first = asyncio.create_task(wakeups.until("a", lambda: holds))
    other = asyncio.create_task(wakeups.until("b", lambda: holds))
    await asyncio.sleep(0)
    wakeups.wake("a")
    await asyncio.sleep(0)
    assert not first.done(), "a wake-up too many does no harm"
    holds = True
    wakeups.wake("a")
    await first
    assert not other.done()
    wakeups.wake("b")
    await other
    assert len(wakeups) == 0


async def test_everyone_who_waits_is_woken():
    wakeups, holds = Wakeups(), False
    waiting = [asyncio.create_task(wakeups.until("a", lambda: holds)) for _ in range(3)]
    await asyncio.sleep(0)
    assert len(wakeups) == 3
    holds = True
    wakeups.wake("a")
    await asyncio.gather(*waiting)


async def test_a_waiter_that_is_cancelled_leaves_nothing():
    wakeups = Wakeups()
    waiting = [asyncio.create_task(wakeups.until("a", lambda: False)) for _ in range(2)]
    await asyncio.sleep(0)
    for number, task in enumerate(waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(wakeups) == 1 - number
