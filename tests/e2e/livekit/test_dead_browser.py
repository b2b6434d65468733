"""Row D1 of the reports: a browser that stops without a word holds its seat no longer than said."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import Browser, Page, Playwright

from tests.e2e.conftest import FLAGS, NO_MDNS
from tests.e2e.player import enter
from tests.e2e.server import ServerProcess
from tests.fakes.waiting import MARGIN_SECONDS

pytestmark = pytest.mark.timeout(180)
LOST_SECONDS, GRACE_SECONDS = 3.0, 2.0


@pytest.fixture(scope="session", params=["webrtc", "livekit"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def doomed(
    playwright: Playwright, chromium_path: str
) -> Iterator[tuple[Browser, list[psutil.Process]]]:
    """A browser of its own, and all its processes."""
    before = set(psutil.Process().children(recursive=True))
    browser = playwright.chromium.launch(
        executable_path=chromium_path, args=[*FLAGS, NO_MDNS], ignore_default_args=["--headless"]
    )
    processes = list(set(psutil.Process().children(recursive=True)) - before)
    yield browser, processes
    for process in processes:
        if process.is_running():
            process.kill()
    browser.close()


def test_a_browser_that_stops_and_dies_gives_its_seat_to_the_next(
    doomed: tuple[Browser, list[psutil.Process]],
    open_page: Callable[..., Page],
    make_server: Callable[..., ServerProcess],
) -> None:
    """D1: `kill -STOP`, then `kill -9`."""
    server = make_server(
        "--seats",
        "1",
        veldt_world="marker",
        veldt_lost_seconds=str(LOST_SECONDS),
        veldt_disconnect_grace_seconds=str(GRACE_SECONDS),
    )
    browser, _ = doomed
    page = browser.new_page()
    enter(page, server)
    session = json.loads(page.evaluate("() => sessionStorage.getItem('veldt.session')"))
    await_status(server, session, ("running",), MARGIN_SECONDS)
    assert server.post("/v1/sessions", {}).status_code == 429

    processes = everybody(doomed)
    stopped = time.monotonic()
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    lost = ("suspended", "expired")  # whoever looks late finds the grace over
    await_status(server, session, lost, LOST_SECONDS + MARGIN_SECONDS)
    for process in processes:
        process.send_signal(signal.SIGKILL)
    view = await_status(server, session, ("expired",), GRACE_SECONDS + MARGIN_SECONDS)
    assert view["reason"] == "disconnected"
    assert time.monotonic() - stopped < LOST_SECONDS + GRACE_SECONDS + MARGIN_SECONDS
    enter(open_page(), server)  # the seat is there: it is the only one
    while server.metric("veldt_worker_sessions", worker="worker-0") > 1:
        time.sleep(0.1)  # a worker pushes its numbers once a second


def everybody(doomed: tuple[Browser, list[psutil.Process]]) -> list[psutil.Process]:
    """The browser's processes, those that were born since included."""
    _, processes = doomed
    born = [child for process in processes for child in process.children(recursive=True)]
    processes += [child for child in set(born) if child not in processes]
    return processes


def session_of(server: ServerProcess, session: dict[str, Any]) -> dict[str, Any]:
    """What the service says of it."""
    bearer = {"Authorization": f"Bearer {session['token']}"}
    url = f"{server.url}/v1/sessions/{session['id']}"
    return dict(httpx.get(url, headers=bearer, timeout=10).json())


def await_status(
    server: ServerProcess, session: dict[str, Any], wanted: tuple[str, ...], seconds: float
) -> dict[str, Any]:
    """Wait until the session is there."""
    deadline = time.monotonic() + seconds
    while (view := session_of(server, session))["status"] not in wanted:
        assert time.monotonic() < deadline, f"{view['status']}, not one of {wanted}"
        time.sleep(0.1)
    return view
