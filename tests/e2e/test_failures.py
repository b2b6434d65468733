"""Things break for real: processes are killed, and the page says what happened."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import httpx
import psutil
from playwright.sync_api import Page, expect

from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, wait_for
from tests.e2e.server import ServerProcess


def test_killed_worker_ends_its_sessions_with_a_reason_and_is_replaced(
    page: Page, make_server: Callable[..., ServerProcess]
) -> None:
    server = make_server()
    enter(page, server)
    [worker] = server.workers()
    worker.kill()
    wait_for(page, "ended")
    expect(page.get_by_test_id("reason")).to_contain_text("has stopped")
    assert httpx.get(f"{server.url}/healthz", timeout=15).status_code == 200
    expect(page.get_by_test_id("awaited")).to_have_text("It is ready again.", timeout=90_000)
    page.get_by_test_id("play-again").click()
    wait_for(page, "playing")
    assert len(grab_frames(page, 10)) == 10
    assert server.workers() != [worker]


def test_killed_front_door_leaves_no_worker(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server("--world", "marker")
    assert server.process is not None
    workers = server.workers()
    assert workers
    os.kill(server.process.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []


def test_sigterm_with_open_event_streams_is_done_within_its_bound(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server("--world", "marker")
    assert server.process is not None
    created = server.post("/v1/sessions", {}).json()
    workers = server.workers()
    with httpx.stream(
        "GET",
        f"{server.url}/v1/sessions/{created['session_id']}/events",
        headers={"Authorization": f"Bearer {created['session_token']}"},
        timeout=30,
    ) as events:
        lines = events.iter_lines()
        next(lines)
        started = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        rest = "\n".join(lines)
    server.process.wait(12)
    assert time.monotonic() - started < 12
    assert '"shutdown"' in rest
    assert server.process.returncode == 0
    assert psutil.wait_procs(workers, timeout=2)[1] == []
