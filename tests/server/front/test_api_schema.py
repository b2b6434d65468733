"""What OpenAPI promises is tried with odd values: an answer is never a fault of ours."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from ipaddress import ip_address

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from server.front import create_app
from server.front.ports import listen
from server.settings import Settings
from tests.fakes.waiting import until
from tests.fakes.worker import FakeWorker, world

ADMIN = "operator-key-of-the-test"


@pytest.fixture(scope="module")
def address():
    """A front door in a thread of its own, with room for everybody."""
    listening = listen(ip_address("127.0.0.1"), 0)
    loop = asyncio.new_event_loop()
    started = threading.Event()
    servers: list[uvicorn.Server] = []

    async def run() -> None:
        worker = FakeWorker(seats=10_000, content=world(prompt=True))
        app = create_app(Settings(admin_key=ADMIN), [worker])
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, loop="asyncio", timeout_graceful_shutdown=1)
        )
        servers.append(server)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await until(lambda: server.started)
        started.set()
        await serving

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert started.wait(60)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    servers[0].should_exit = True
    thread.join(60)
    assert not thread.is_alive()
    loop.close()


def test_no_request_that_fits_the_schema_or_nearly_does_is_a_fault_of_ours(address) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/events"):
            continue  # the stream of a session that exists does not end by itself
        for mode in GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=4,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            def ask(case) -> None:
                answer = case.call(headers={"Authorization": f"Bearer {ADMIN}"}, timeout=30)
                assert answer.status_code < 500, answer.content
                if answer.status_code >= 400:
                    assert answer.headers["content-type"] == ["application/problem+json"]
                tried.add((case.method, case.path))

            with suppress(Unsatisfiable):  # nothing can be wrong about a request without input
                ask()
    assert len(tried) >= 10
