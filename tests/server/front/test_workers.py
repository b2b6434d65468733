"""A worker that is a process: its start, its words, its death by every road."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from admission.session import EndReason
from server.front.workers import COMMAND, Patience, WorkerProcess
from server.protocol.worker import (
    Closed,
    CloseSession,
    Done,
    Fatal,
    Loading,
    Ping,
    Ready,
    WorkerConfig,
    WorkerGone,
)

pytestmark = pytest.mark.anyio

CHILD = (sys.executable, str(Path(__file__).parents[2] / "fakes" / "worker_child.py"))
CALM = Patience(ping_every=0.05, start=60, shutdown=15, dump=15, terminate=15)
CLOSE = CloseSession(session="s1", reason=EndReason.LEFT)


@asynccontextmanager
async def child(how: str, patience: Patience = CALM):
    """A worker, with all that it says kept."""
    worker = await WorkerProcess.start(
        WorkerConfig(world=how, seats=3), command=CHILD, patience=patience
    )
    heard: list = []
    arrived = asyncio.Event()

    async def listen() -> None:
        async for event in worker.events():
            heard.append(event)
            arrived.set()

    listening = asyncio.create_task(listen())

    async def wait_for(kind) -> object:
        async with asyncio.timeout(60):
            while not any(isinstance(event, kind) for event in heard):
                arrived.clear()
                await arrived.wait()
        return next(event for event in heard if isinstance(event, kind))

    try:
        yield worker, wait_for, listening
    finally:
        async with asyncio.timeout(60):
            await worker.aclose()
            await listening
    assert worker.exit_code is not None
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


async def test_a_worker_is_started_asked_and_ends_when_told() -> None:
    async with child("good") as (worker, wait_for, _):
        ready = await wait_for(Ready)
        assert ready.seats == 3
        assert ready.world.start_points[0].picture == b"\x89PNG pretend"
        assert isinstance(await wait_for(Loading), Loading)
        replies = await asyncio.gather(*(worker.call(Ping()) for _ in range(20)))
        assert replies == [Done()] * 20
        assert await worker.call(CLOSE) == Closed(session="s1", clean=True)
    assert worker.exit_code == 0
    with pytest.raises(WorkerGone):
        await worker.call(Ping())
    await worker.aclose()


async def test_its_words_are_in_our_log_and_its_threads_are_bounded(caplog) -> None:
    async with child("good") as (worker, wait_for, _):
        await wait_for(Ready)
        await worker.call(CLOSE)
    said = {record.getMessage(): vars(record) for record in caplog.records}
    assert said["child_says"]["levelname"] == "WARNING"
    assert said["child_says"]["session_id"] == "s1"
    assert said["environment"]["OMP_NUM_THREADS"] == "1"
    assert any(vars(r).get("line") == "plain words of a library" for r in caplog.records)


@pytest.mark.parametrize("how", ["fatal", "crash", "garbage"])
async def test_a_worker_that_cannot_start_is_gone_not_waited_for(how) -> None:
    async with child(how) as (worker, wait_for, listening):
        if how == "fatal":
            assert (await wait_for(Fatal)).message == "there is no such world"
        async with asyncio.timeout(30):
            await listening
        with pytest.raises(WorkerGone):
            await worker.call(Ping())
    assert worker.exit_code == {"fatal": 1, "crash": -signal.SIGKILL}.get(how, worker.exit_code)


async def test_a_worker_that_never_gets_ready_is_ended() -> None:
    async with child("never-ready", Patience(start=0.5, dump=0.2, terminate=0.3)) as (
        worker,
        _,
        listening,
    ):
        async with asyncio.timeout(30):
            await listening
        assert worker.exit_code is not None


@pytest.mark.parametrize("how", ["hung", "stubborn"])
async def test_a_hung_worker_dumps_its_stacks_and_is_killed(how, caplog) -> None:
    # Whoever obeys is given the time to; `dump` is how long its stacks have to reach the log.
    terminate = 0.3 if how == "stubborn" else 30
    patience = Patience(ping_every=0.05, hang=0.4, start=60, dump=1.5, terminate=terminate)
    async with child(how, patience) as (worker, wait_for, listening):
        await wait_for(Ready)
        async with asyncio.timeout(30):
            with pytest.raises(WorkerGone):
                await worker.call(CLOSE)
            await listening
    assert worker.exit_code == (-signal.SIGKILL if how == "stubborn" else -signal.SIGTERM)
    lines = [vars(record).get("line", "") for record in caplog.records]
    assert any("worker_child.py" in line for line in lines), "its stacks are in the log"
    assert any(record.getMessage() == "worker_hung" for record in caplog.records)


async def test_pending_calls_end_when_it_is_killed() -> None:
    async with child("hung", Patience(hang=60)) as (worker, wait_for, listening):
        await wait_for(Ready)
        calls = [asyncio.create_task(worker.call(CLOSE)) for _ in range(3)]
        await asyncio.sleep(0)
        os.kill(worker.pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            results = await asyncio.gather(*calls, return_exceptions=True)
            await listening
        assert all(isinstance(result, WorkerGone) for result in results)


async def test_a_call_that_is_cancelled_leaves_the_worker_usable() -> None:
    async with child("good") as (worker, wait_for, _):
        await wait_for(Ready)
        call = asyncio.create_task(worker.call(Ping()))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await worker.call(Ping()) == Done()


async def test_closing_a_hung_worker_takes_a_bounded_time() -> None:
    async with child("stubborn", Patience(hang=60, shutdown=0.2, dump=0.2, terminate=0.2)) as (
        worker,
        wait_for,
        _,
    ):
        await wait_for(Ready)
        async with asyncio.timeout(30):
            await asyncio.gather(worker.aclose(), worker.aclose())
    assert worker.exit_code == -signal.SIGKILL


async def test_a_worker_that_cannot_be_spawned_is_gone() -> None:
    with pytest.raises(WorkerGone):
        await WorkerProcess.start(WorkerConfig(), command=("/nowhere/python",))


def test_the_real_worker_is_the_default() -> None:
    assert (sys.executable, "-m", "server.worker") == COMMAND
