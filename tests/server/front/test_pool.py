from __future__ import annotations

import asyncio

import pytest

from server.front import pool as pool_module
from server.front.pool import WorkerPool, already_running
from server.protocol.worker import Loading, WorkerGone
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorker, starts

pytestmark = pytest.mark.anyio


class FakeListener:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def worker_ready(self, worker, ready) -> None:
        self.heard.append(f"{worker} ready")

    def worker_gone(self, worker) -> None:
        self.heard.append(f"{worker} gone")

    def session_fact(self, worker, fact) -> None:
        self.heard.append(f"{worker} {fact.fact}")

    def readiness_changed(self) -> None:
        pass


async def test_a_worker_that_dies_again_and_again_is_started_with_growing_pauses(
    monkeypatch,
) -> None:
    monkeypatch.setattr(pool_module, "LONGEST_PAUSE_SECONDS", 0.04)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(pool_module.asyncio, "sleep", noted)

    def dead() -> FakeWorker:
        worker = FakeWorker(ready=False)
        worker.die()
        return worker

    lives = [dead] * 5 + [FakeWorker]
    pool = WorkerPool([starts(*lives)], FakeListener(), first_pause_seconds=0.01)
    pool.begin()
    async with asyncio.timeout(5):
        while not pool.readiness().ready:
            await sleep(0)
    await pool.aclose()
    assert pauses[:5] == [0.01, 0.02, 0.04, 0.04, 0.04]
    assert pool.kept[0].restarts == 5


async def test_two_workers_are_ready_as_soon_as_one_is() -> None:
    first, second = FakeWorker("a", ready=False), FakeWorker("b", ready=False)
    listener = FakeListener()
    pool = WorkerPool([already_running(first), already_running(second)], listener)
    pool.begin()
    second.emit(Loading(stage="warming up", progress=0.7))
    await until(lambda: pool.readiness().stage == "warming up")
    first.become_ready()
    await until(lambda: pool.readiness().ready)
    assert pool.port("a") is first
    assert pool.port("b") is None
    first.die()
    await until(lambda: pool.port("a") is None)
    assert listener.heard == ["a ready", "a gone"]
    await pool.aclose()


async def test_a_worker_that_can_never_work_is_told_apart_from_one_that_died() -> None:
    def hopeless() -> FakeWorker:
        worker = FakeWorker(ready=False)
        worker.fatal("there is no world of this name")
        return worker

    pool = WorkerPool([starts(hopeless)], FakeListener(), first_pause_seconds=0.01)
    assert pool.fatal() is None
    pool.begin()
    await until(lambda: pool.fatal() is not None)
    assert pool.fatal().message == "there is no world of this name"
    await pool.aclose()

    once = [FakeWorker, hopeless]
    pool = WorkerPool([starts(*once)], FakeListener(), first_pause_seconds=0.01)
    pool.begin()
    await until(lambda: pool.readiness().ready)
    pool.kept[0].port.die()
    await until(lambda: pool.kept[0].restarts >= 2)
    assert pool.fatal() is None, "it has worked once: it is tried again"
    await pool.aclose()


async def test_a_running_port_is_given_once() -> None:
    start = already_running(FakeWorker())
    await start()
    with pytest.raises(WorkerGone):
        await start()


async def test_closing_during_a_pause_or_a_start_is_quick() -> None:
    never = asyncio.Event()

    async def slow():
        await never.wait()

    def dead() -> FakeWorker:
        worker = FakeWorker(ready=False)
        worker.die()
        return worker

    pool = WorkerPool([slow, starts(dead)], FakeListener(), first_pause_seconds=60)
    pool.begin()
    await until(lambda: pool.kept[1].restarts == 1)
    async with asyncio.timeout(5):
        await pool.aclose()
    assert all(kept.task.done() for kept in pool.kept)


async def test_a_fault_of_ours_in_one_event_does_not_end_the_listening(caplog) -> None:
    class FakeFaultyListener(FakeListener):
        def session_fact(self, worker, fact) -> None:
            super().session_fact(worker, fact)
            raise KeyError("bug")

    worker, listener = FakeWorker(), FakeFaultyListener()
    pool = WorkerPool([already_running(worker)], listener)
    pool.begin()
    worker.fact("s", "running")
    worker.fact("s", "lost")
    await until(lambda: len(listener.heard) == 3)
    assert pool.readiness().ready
    await pool.aclose()
    assert any(record.exc_info for record in caplog.records)
