"""The shell around the execution lease: it waits, and gives a turn back however it ends."""

from __future__ import annotations

import asyncio

from server.worker.lease import AsyncLease, Errand


class Chunks:
    """A session that takes turns and notes them in a shared list."""

    def __init__(self, name: str, lease: AsyncLease, order: list[str]) -> None:
        self.name, self.can = name, True
        self._lease, self._order = lease, order

    def want(self) -> None:
        self._lease.want(self.name, Errand(lambda: self.can, lambda: self._order.append(self.name)))


def chunks(names: str) -> tuple[AsyncLease, list[str], dict[str, Chunks]]:
    lease, order = AsyncLease(), []
    return lease, order, {name: Chunks(name, lease, order) for name in names}


def test_a_grant_is_used_at_once_and_the_next_one_after_its_release():
    lease, order, session = chunks("ab")
    session["a"].want()
    session["b"].want()
    session["a"].want()
    assert (order, lease.holder, lease.position("b")) == (["a"], "a", 1)
    lease.release("a")
    assert order == ["a", "b"]
    lease.release("b")
    assert order == ["a", "b", "a"]


def test_who_cannot_use_a_grant_keeps_its_place():
    lease, order, session = chunks("abc")
    session["a"].want()
    session["b"].can = False
    session["b"].want()
    session["c"].want()
    lease.release("a")
    assert order == ["a", "c"]
    session["b"].can = True
    lease.release("c")
    assert order == ["a", "c", "b"]


def test_a_holder_that_leaves_keeps_the_lease_until_it_is_gone():
    lease, order, session = chunks("ab")
    session["a"].want()
    session["b"].want()
    lease.leave("a")
    assert order == ["a"]
    lease.gone("a")
    assert order == ["a", "b"]


async def test_a_turn_comes_in_line_and_is_given_back_at_once():
    lease, order, session = chunks("ab")
    session["a"].want()
    waiting = asyncio.create_task(lease.wait_turn("c", lambda: True))
    await asyncio.sleep(0)
    session["b"].want()
    assert not waiting.done()
    lease.release("a")
    await waiting
    assert (order, lease.holder) == (["a", "b"], "b")


async def test_a_turn_that_is_not_waited_for_any_more_leaves_no_trace():
    lease, order, session = chunks("ab")
    session["a"].want()
    waiting = asyncio.create_task(lease.wait_turn("c", lambda: True))
    await asyncio.sleep(0)
    assert lease.position("c") == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert lease.position("c") is None
    session["b"].want()
    lease.release("a")
    assert order == ["a", "b"]


async def test_a_turn_that_came_and_was_cancelled_in_one_moment_is_free():
    lease, _, _ = chunks("")
    waiting = asyncio.create_task(lease.wait_turn("c", lambda: True))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert lease.holder is None
    assert not lease.wants("c")
