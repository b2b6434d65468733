"""Row K3: a normal user whose home, caches and working folder are read-only, and a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Page

from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, seen_key
from tests.e2e.server import ServerProcess
from tests.plain_user import ENVIRONMENT, FOREIGN, FULL, HOME, NOBODY, as_nobody

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="making such a user's machine takes root"
)


class NobodysServer(ServerProcess):
    """`veldt serve` of that user."""

    def command(self, *arguments: str) -> list[str]:
        return as_nobody(*arguments)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = NobodysServer(tmp_path / "server.log", **ENVIRONMENT).start()
    yield server
    server.stop()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VELDT_", "LIVEKIT_"))}
    return subprocess.run(
        as_nobody(*arguments, own_network=True),
        env={**clean, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_embedded_world_plays_where_nothing_can_be_written(
    page: Page, server: ServerProcess
) -> None:
    assert server.process is not None
    everybody = [psutil.Process(server.process.pid), *server.workers()]
    assert {process.uids().effective for process in everybody} == {NOBODY}
    assert {process.cwd() for process in everybody} == {HOME}
    enter(page, server)
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")
    assert len(grab_frames(page, 10)) == 10
    assert "Traceback" not in server.output()


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (HOME, "Read-only file system"),
        (FULL, "No space left on device"),
        (FOREIGN, "Permission denied"),
    ],
)
def test_a_download_that_cannot_be_stored_is_one_sentence(place: str, why: str) -> None:
    done = run("fetch-weights", "--accept-licence", "--to", f"{place}/weights")
    assert done.returncode == 2
    said = done.stderr.rstrip().splitlines()[-1]
    assert said == f"{place}/weights cannot be used ({why}); choose another directory with --to"
    assert "Traceback" not in done.stderr


def test_a_port_below_1024_is_refused_before_anything_is_loaded() -> None:
    """Row K1, the port that is forbidden to a normal user."""
    done = run("serve", "--port", "80")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [  # whoever loads says so here
        "veldt: port 80 is not allowed for this user (below 1024?); "
        "choose another one with --port or VELDT_PORT"
    ]
