"""Seats come back when the worker has said so: late, unclean, never, or with its death (row D3)."""

from __future__ import annotations

import asyncio

import pytest

from server.front import pool as pool_module
from server.protocol.worker import CloseSession, ConnectSession
from server.settings import Settings
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorker, starts

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("server.front.closing.PAUSES_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(pool_module, "FIRST_PAUSE_SECONDS", 0.01)


def seats(door) -> tuple[int, int, int]:
    now = door.service.occupancy()
    return now.free, now.resident, now.quarantined


async def ended(door, created) -> dict:
    async def over() -> bool:
        return (await door.view(created))["status"] in ("closed", "failed", "expired")

    await until(over)
    return await door.view(created)


async def test_a_seat_is_kept_until_the_close_is_acknowledged(open_door, monkeypatch) -> None:
    monkeypatch.setattr("server.front.service.CLOSE_ANSWER_SECONDS", 0.02)
    async with open_door() as door:
        created = await door.create()
        await door.connect(created)
        door.worker.close_gate.clear()
        await door.delete(created)
        assert seats(door) == (1, 1, 0)
        door.worker.close_gate.set()
        await ended(door, created)
        assert seats(door) == (2, 0, 0)


async def test_an_unclean_close_quarantines_the_seat_and_is_tried_again(
    open_door, monkeypatch
) -> None:
    monkeypatch.setattr("server.front.closing.PAUSES_SECONDS", (0.3, 0.01))
    async with open_door() as door:
        door.worker.clean = lambda attempt: attempt >= 3
        created = await door.create()
        await door.connect(created)
        assert (await door.delete(created)).status_code == 204
        assert seats(door) == (1, 0, 1)
        await until(lambda: seats(door) == (2, 0, 0))
        assert door.worker.closes[created["session_id"]] == 3
        assert door.service.readiness().ready


async def test_a_close_that_is_never_acknowledged_counts_as_unclean(open_door) -> None:
    async with open_door(Settings(worker_close_seconds=0.02)) as door:
        created = await door.create()
        await door.connect(created)
        door.worker.close_gate.clear()
        await door.delete(created)
        assert seats(door) == (1, 0, 1)
        door.worker.close_gate.set()
        await until(lambda: seats(door) == (2, 0, 0))


async def test_after_three_failures_the_worker_is_replaced_once_it_is_empty(open_door) -> None:
    first, second = FakeWorker(), FakeWorker()
    first.clean = lambda attempt: False
    first.plays = second.plays = True
    door_of = open_door(worker=first, workers=[starts(lambda: first, lambda: second)])
    async with door_of as door:
        stuck, playing = await door.create(), await door.create()
        await door.connect(stuck)
        await door.connect(playing)
        await door.delete(stuck)
        await until(lambda: not door.service.readiness().ready)
        assert seats(door) == (0, 1, 1)
        # It takes nobody new, but who plays plays on.
        assert (await door.view(playing))["status"] == "running"
        refused = await door.client.post("/v1/sessions", json={})
        assert refused.json()["code"] == "no_worker"
        await door.delete(playing)
        await until(lambda: door.service.readiness().ready)
        assert seats(door) == (2, 0, 0)
        again = await door.create()
        await door.connect(again)
        assert second.holds == {again["session_id"]}


async def test_a_killed_worker_ends_its_sessions_and_is_started_again(open_door) -> None:
    first, second = FakeWorker(), FakeWorker()
    first.plays = True
    door_of = open_door(worker=first, workers=[starts(lambda: first, lambda: second)])
    async with door_of as door:
        playing, admitted = await door.create(), await door.create()
        await door.connect(playing)
        first.die()
        for created in (playing, admitted):
            view = await ended(door, created)
            assert (view["status"], view["reason"]) == ("failed", "worker_died")
        assert (await door.client.get("/healthz")).status_code == 200
        worlds = (await door.client.get("/v1/worlds")).json()["worlds"]
        assert [world["name"] for world in worlds] == ["meadow"]
        await until(lambda: door.service.readiness().ready)
        assert seats(door) == (2, 0, 0)
        await door.connect(await door.create())
        assert second.holds


async def test_a_worker_that_dies_during_a_connect_is_a_problem(open_door) -> None:
    async with open_door() as door:
        created = await door.create()
        door.worker.connect_gate.clear()
        connecting = asyncio.create_task(door.connect(created))
        await door.asked(ConnectSession)
        door.worker.die()
        answer = await connecting
        assert answer.status_code in (410, 503)
        assert (await ended(door, created))["reason"] == "worker_died"


async def test_a_worker_that_dies_while_a_session_is_released_keeps_the_first_reason(
    open_door,
) -> None:
    async with open_door() as door:
        created = await door.create()
        await door.connect(created)
        door.worker.close_gate.clear()
        deleting = asyncio.create_task(door.delete(created))
        await door.asked(CloseSession)
        door.worker.die()
        assert (await deleting).status_code == 204
        assert (await door.view(created))["reason"] == "left"


async def test_a_drained_worker_is_replaced_when_its_last_session_is_over(open_door) -> None:
    key = "operator-key-of-the-test"
    first, second = FakeWorker(), FakeWorker()
    first.plays = True
    workers = [starts(lambda: first, lambda: second)]
    async with open_door(Settings(admin_key=key), first, workers) as door:
        created = await door.create()
        await door.connect(created)
        operator = {"Authorization": f"Bearer {key}"}
        answer = await door.client.post("/v1/workers/worker-0/drain", headers=operator)
        assert answer.status_code == 202
        unknown = await door.client.post("/v1/workers/nobody/drain", headers=operator)
        assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_worker")
        assert (await door.client.post("/v1/sessions", json={})).status_code == 503
        assert (await door.client.get("/readyz")).json()["stage"] == "draining the worker"
        await door.delete(created)
        await until(lambda: door.service.readiness().ready)
        await door.connect(await door.create())
        assert second.holds


async def test_seats_add_up_whatever_happens(open_door) -> None:
    """Row D3: thirty sessions that end in turn by everything that ends one; the 31st plays."""
    lives = [FakeWorker() for _ in range(12)]
    for life in lives:
        life.plays = True
    left = list(lives)
    settings = Settings(claim_seconds=0.05)
    workers = [starts(*[lambda: left.pop(0)] * 12)]
    async with open_door(settings, lives[0], workers) as door:

        def capacity_is_kept() -> bool:
            free, resident, quarantined = seats(door)
            return free + resident + quarantined == door.service.occupancy().capacity

        for number in range(30):
            await until(lambda: door.service.readiness().ready)
            created = await door.create()
            worker = lives[len(lives) - len(left) - 1]
            worker.clean = lambda attempt: True
            match number % 5:
                case 0:
                    await door.connect(created)
                    await door.delete(created)
                case 1:
                    await door.connect(created)
                    worker.die()
                case 2:
                    pass  # never claimed
                case 3:
                    await door.connect(created)
                    worker.fact(created["session_id"], "ended")
                case 4:
                    worker.clean = lambda attempt: attempt > 1
                    await door.connect(created)
                    await door.delete(created)
            await ended(door, created)
            assert capacity_is_kept()
        await until(lambda: seats(door) == (2, 0, 0))

        async def plays() -> bool:  # or has missed its claim, which is short here
            created = await door.create()
            if (await door.connect(created)).status_code != 200:
                await ended(door, created)
                return False
            await door.settled()
            return (await door.view(created))["status"] == "running"

        await until(plays)
