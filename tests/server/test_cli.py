"""`veldt serve` as an operator meets it: a subprocess, its exit code, its words."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest
from typer.testing import CliRunner

from server.cli import app
from tests.fakes.waiting import MARGIN_SECONDS

ROOT = Path(__file__).parents[2]


def environment(**settings: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VELDT_", "LIVEKIT_"))}
    return {**clean, "OMP_NUM_THREADS": "1", **settings}


def run(*arguments: str, **settings: str) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "server.cli", *arguments],
        env=environment(**settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended, time.monotonic() - began


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        (["--port", "99999"], {}, "VELDT_PORT"),
        (["--fps", "25"], {}, "VELDT_TINY_FPS"),
        (["--world", "marker", "--fps", "24"], {}, "VELDT_TINY_FPS"),
        (["--host", "0.0.0.0"], {}, "VELDT_API_KEYS"),
        (["--host", "nowhere"], {}, "VELDT_HOST"),
        (["--seats", "0"], {}, "VELDT_MAX_SESSIONS_PER_WORKER"),
        ([], {"VELDT_PROT": "1"}, "did you mean VELDT_PORT?"),
        ([], {"VELDT_WORLD_OPTIONS": "{"}, "VELDT_WORLD_OPTIONS"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(monkeypatch, arguments, settings, says) -> None:
    for name, value in environment(**settings).items():
        monkeypatch.setenv(name, value)
    ended = CliRunner().invoke(app, ["serve", *arguments])
    assert ended.exit_code == 2
    assert says in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_taken_port_is_said_before_anything_is_loaded(family, host) -> None:
    """Row K1: by name, with its holder and the option, in less than five seconds."""
    with socket.socket(family) as taken:
        try:
            taken.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
        taken.listen()
        port = taken.getsockname()[1]
        before = workers_of_this_process()
        ended, seconds = run("serve", "--port", str(port))
    assert ended.returncode == 2
    assert f"port {port} is taken" in ended.stderr
    assert "--port" in ended.stderr
    if sys.platform == "linux":
        assert f"process {os.getpid()}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "worker" not in ended.stderr
    assert seconds < 5 + MARGIN_SECONDS
    assert workers_of_this_process() <= before, "a worker was left"


def workers_of_this_process() -> set[psutil.Process]:
    """Those of servers that other tests share are among them."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if "server.worker" in " ".join(child.cmdline()):
                found.add(child)
    return found


def test_a_world_that_does_not_exist_ends_it_with_a_sentence() -> None:
    ended, _ = run("serve", "--port", "0", "--world", "mars", VELDT_LOG_LEVEL="error")
    assert ended.returncode == 2
    assert "mars" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_weights_are_not_downloaded_before_their_licence_is_accepted(tmp_path) -> None:
    done, _ = run("fetch-weights", "--to", str(tmp_path / "weights"))
    assert done.returncode == 2
    assert "licence" in done.stderr.lower()
    assert "nothing was downloaded" in done.stderr
    assert not (tmp_path / "weights").exists()


def test_help_names_every_option() -> None:
    ended = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"})
    assert ended.exit_code == 0
    for option in ("--world", "--host", "--port", "--fps", "--seats"):
        assert option in ended.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_loads_prints_its_address_serves_and_stops_on_a_signal(tmp_path, number) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--world", "marker"],
            env=environment(VELDT_LOG_FORMAT="json"),
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 60
        while (found := re.search(r"play at (http://\S+)", log.read_text())) is None:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        url = found[1].rstrip("/")
        workers = psutil.Process(server.pid).children(recursive=True)
        assert workers
        assert httpx.get(f"{url}/readyz").status_code == 200
        second, _ = run("serve", "--port", url.rpartition(":")[2])  # row K1: two servers
        assert second.returncode == 2
        if sys.platform == "linux":
            assert f"(process {server.pid})" in second.stderr
        created = httpx.post(f"{url}/v1/sessions", json={}).json()
        token = created["session_token"]
        with httpx.stream(
            "GET",
            f"{url}/v1/sessions/{created['session_id']}/events",
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
        ) as events:
            lines = events.iter_lines()
            assert next(lines) == "event: admitted"
            began = time.monotonic()
            server.send_signal(number)
            rest = "\n".join(lines)
        assert server.wait(30) == 0
        assert time.monotonic() - began < 10 + MARGIN_SECONDS
        assert '"reason":"shutdown"' in rest
        assert psutil.wait_procs(workers, timeout=MARGIN_SECONDS)[1] == []
        written = log.read_text()
        assert token not in written
        assert created["session_id"] in written
        assert "Traceback" not in written
    finally:
        if server.poll() is None:
            server.kill()
            server.wait(5)


def test_a_killed_worker_is_replaced_and_the_front_door_lives(tmp_path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--world", "marker"],
            env=environment(),
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def wait_for(condition):
        deadline = time.monotonic() + 60
        while not (met := condition()):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        return met

    try:
        url = wait_for(lambda: re.search(r"play at (http://\S+)/", log.read_text()))[1]
        created = httpx.post(f"{url}/v1/sessions", json={}).json()
        auth = {"Authorization": f"Bearer {created['session_token']}"}
        [worker] = psutil.Process(server.pid).children()
        worker.kill()
        view = f"{url}/v1/sessions/{created['session_id']}"
        wait_for(lambda: httpx.get(view, headers=auth).json()["status"] == "failed")
        assert httpx.get(view, headers=auth).json()["reason"] == "worker_died"
        wait_for(lambda: httpx.get(f"{url}/readyz").status_code == 200)
        assert httpx.post(f"{url}/v1/sessions", json={}).status_code == 201
        [second] = psutil.Process(server.pid).children()
        assert second.pid != worker.pid
        server.kill()  # and with the front door its worker goes
        assert psutil.wait_procs([second], timeout=5 + MARGIN_SECONDS)[1] == []
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(5)
