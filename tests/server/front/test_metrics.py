from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.looplag import PERIOD_SECONDS, LoopLag
from server.protocol.worker import Sample, Stats
from tests.fakes.waiting import until

pytestmark = pytest.mark.anyio


async def numbers(door) -> dict[tuple[str, frozenset], float]:
    text = (await door.client.get("/metrics")).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, **labels: str):
    return name, frozenset(labels.items())


async def test_seats_sessions_and_ends_are_counted(open_door) -> None:
    async with open_door() as door:
        first = await door.create()
        await door.create()
        await door.client.post("/v1/sessions", json={})
        await door.connect(first)
        now = await numbers(door)
        assert now[key("veldt_seats", state="resident")] == 2
        assert now[key("veldt_seats", state="free")] == 0
        assert now[key("veldt_seats_capacity")] == 2
        assert now[key("veldt_sessions", state="connecting")] == 1
        assert now[key("veldt_sessions", state="admitted")] == 1
        assert now[key("veldt_sessions_created_total")] == 2
        assert now[key("veldt_sessions_refused_total", code="queue_full")] == 1
        assert now[key("veldt_worker_ready", worker="worker-0")] == 1
        await door.delete(first)
        now = await numbers(door)
        assert now[key("veldt_seats", state="free")] == 1
        assert now[key("veldt_sessions_ended_total", reason="left")] == 1


async def test_a_workers_samples_are_merged_with_its_id(open_door) -> None:
    async with open_door() as door:
        door.worker.emit(
            Stats(
                samples=(
                    Sample(name="veldt_chunks_total", labels={"stage": "denoise"}, value=7),
                    Sample(name="fps", value=24),
                    Sample(name="fps", value=25),  # twice the same: the first one
                    Sample(name="veldt_loop_lag_seconds", labels={"process": "worker"}, value=0.01),
                    Sample(name="not a name\n", value=1),
                    Sample(name="bad_label", labels={"a b": "c"}, value=1),
                    Sample(name="text", labels={"what": 'a"b\nc'}, value=1),
                )
            )
        )
        await door.settled()
        now = await numbers(door)
        assert now[key("veldt_chunks_total", stage="denoise", worker="worker-0")] == 7
        assert now[key("veldt_fps", worker="worker-0")] == 24
        assert now[key("veldt_loop_lag_seconds", process="worker", worker="worker-0")] == 0.01
        assert key("veldt_loop_lag_seconds", process="front", quantile="0.99") in now
        assert now[key("veldt_text", what='a"b\nc', worker="worker-0")] == 1
        assert not any("bad_label" in name for name, _ in now)
        door.worker.die()

        async def forgotten() -> bool:
            return not any(name == "veldt_fps" for name, _ in await numbers(door))

        await until(forgotten)


async def test_a_blocked_loop_shows_in_its_lag() -> None:
    lag = LoopLag()
    watching = asyncio.create_task(lag.run())
    for _ in range(3):
        await asyncio.sleep(PERIOD_SECONDS)
    assert lag.quantile(1.0) < 5
    import time

    time.sleep(PERIOD_SECONDS + 0.3)  # noqa: ASYNC251 - what is to be seen
    await asyncio.sleep(PERIOD_SECONDS)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert lag.quantile(1.0) >= 0.25
    assert LoopLag().quantile(0.99) == 0.0
