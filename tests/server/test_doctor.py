from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server import doctor
from server.doctor import Finding, Health, examine
from server.settings import Settings
from tests.livekit_server import LiveKitServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]


@pytest.fixture(scope="module")
def livekit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKitServer]:
    server = LiveKitServer(tmp_path_factory.mktemp("livekit")).start()
    yield server
    server.stop()


async def findings(folder: Path, **settings: Any) -> dict[str, Finding]:
    (folder / "index.html").touch()
    chosen = {"port": 0, "world": "marker", "client_dir": folder, **settings}
    found = [finding async for finding in examine(Settings(**chosen))]
    assert len({finding.what for finding in found}) == len(found)
    return {finding.what: finding for finding in found}


def bad(found: dict[str, Finding]) -> list[str]:
    return [what for what, finding in found.items() if finding.health is Health.BAD]


async def test_all_is_well_where_pictures_and_messages_pass(
    tmp_path: Path, livekit: LiveKitServer
) -> None:
    found = await findings(tmp_path, **livekit.settings)
    assert bad(found) == []
    assert "udp 127.0.0.1" in found["livekit player"].words
    assert await livekit.rooms() == {}


async def test_without_livekit_nothing_of_it_is_asked(tmp_path: Path) -> None:
    found = await findings(tmp_path)
    assert [*found] == ["port", "page", "memory", "world", "transport"]
    assert bad(found) == []


async def test_what_is_wrong_here_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = await findings(tmp_path, port=taken.getsockname()[1], world="nowhere")
    assert bad(found) == ["port", "world"]
    assert "nowhere" in found["world"].words
    assert "make setup" in doctor.page(Settings(client_dir=tmp_path / "none")).words


async def test_a_wrong_key_a_silent_server_and_a_wrong_clock_are_told_apart(
    tmp_path: Path, livekit: LiveKitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {**livekit.settings, "livekit_api_secret": "x" * 40}
    assert bad(await findings(tmp_path, **wrong)) == ["livekit keys"]
    silent = LiveKitServer(tmp_path / "silent").settings
    assert bad(await findings(tmp_path, **silent)) == ["livekit server"]
    now = time.time
    monkeypatch.setattr(doctor.time, "time", lambda: now() + 100)
    found = await findings(tmp_path, **livekit.settings)
    assert bad(found) == ["clock"]
    assert "timedatectl" in found["clock"].words


async def test_a_loopback_address_for_browsers_elsewhere_is_refused() -> None:
    settings = Settings(
        host="0.0.0.0",
        public_play=True,
        livekit_url="ws://127.0.0.1:7880",
        livekit_api_key="key",
        livekit_api_secret="s" * 40,
    )
    finding = doctor.addresses(settings)
    assert finding.health is Health.BAD
    assert "LIVEKIT_PUBLIC_URL" in finding.words


async def test_little_memory_is_doubtful(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 4000000 kB\nMemAvailable: 500000 kB\n")
    assert doctor.memory(Settings(), meminfo).health is Health.DOUBTFUL
