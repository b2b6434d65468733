"""The compose files, played: Docker's addresses and ports, the real LiveKit, a player outside.

Each container has 1 MB of shared memory: nothing here needs more, so compose sets no `shm_size`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.composed import ROOT, SET_UP
from tests.docker.composition import CONTAINERS, Composition, image_health, visit
from tests.docker.network import NODE_IP, PLAYER, DockerNetwork

NAME = "turn.example.org"
SETTINGS = {
    **SET_UP,
    "NODE_IP": NODE_IP,
    "VELDT_PUBLISH": "0.0.0.0",
    "VELDT_WORLD": "marker",
    "TURN_DOMAIN": NAME,
}
TURN = ("compose.yaml", "compose.turn.yaml")

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def composition(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composition]:
    """Up with `compose.yaml` alone; tests go on from there in their order."""
    if os.geteuid() != 0 and os.environ.get("CI") != "true":
        pytest.skip("network namespaces need root")
    with DockerNetwork(tmp_path_factory.mktemp("network"), CONTAINERS) as network:
        composition = Composition(network, "compose.yaml", **SETTINGS)
        composition.up()
        yield composition


def route(composition: Composition) -> str:
    """How the media of somebody who plays come."""
    visited = visit(composition.network)
    logs = [composition.network.log(name).read_text() for name in CONTAINERS]
    assert visited.returncode == 0, "\n".join([visited.stderr, *logs])
    said = json.loads(visited.stdout)
    assert said["page"] == 200
    return str(said["route"])


def test_a_player_in_the_network_plays(composition: Composition) -> None:
    assert composition.veldt is not None
    shared = os.statvfs(Path("/proc", str(composition.veldt.pid), "root", "dev", "shm"))
    assert shared.f_blocks * shared.f_frsize == 2**20
    assert route(composition) == "udp 7882"


def test_health_checks_are_not_content_with_nothing(composition: Composition) -> None:
    livekit = composition.services["livekit"]["healthcheck"]["test"][1:]
    for check in (livekit, [sys.executable, *image_health()[1:]]):
        argv = composition.network.argv(PLAYER, *check)
        assert subprocess.run(argv, capture_output=True, check=False).returncode != 0


def test_without_udp_the_picture_comes_over_tcp(composition: Composition) -> None:
    composition.network.refuse("udp", 7882)
    assert route(composition) == "tcp 7881"


def test_where_neither_passes_turn_brings_it(composition: Composition) -> None:
    composition.network.refuse("udp", 7882)
    composition.network.refuse("tcp", 7881)
    composition.change(*TURN, **SETTINGS)
    assert route(composition) == "udp 7882"  # which the player cannot reach: the relay does


@pytest.fixture(scope="module")
def with_tls(
    composition: Composition, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Composition, Path]:
    """The same with TURN over TLS, and the certificate of its name."""
    folder = tmp_path_factory.mktemp("certificates")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    named = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([*make, *named, *files], check=True, capture_output=True)
    tls = {**SETTINGS, "TURN_CERTIFICATES": str(folder)}
    composition.change(*TURN, "compose.turn-tls.yaml", **tls)
    return composition, folder / "fullchain.pem"


def of_the_player(composition: Composition, module: str, *words: str) -> str:
    """What a program on the player's machine prints."""
    argv = composition.network.argv(PLAYER, sys.executable, "-m", module, *words)
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr + composition.network.log("livekit").read_text()
    return done.stdout


def test_turn_shows_its_certificate_and_asks_for_credentials(
    with_tls: tuple[Composition, Path],
) -> None:
    composition, certificate = with_tls
    asked = of_the_player(composition, "tests.docker.allocate", NODE_IP, NAME, str(certificate))
    assert asked == "401 livekit\n"


def test_where_only_tls_passes_a_browser_plays_through_turn(
    with_tls: tuple[Composition, Path],
) -> None:
    composition, _ = with_tls
    chromium = subprocess.run(
        ["bash", str(ROOT / "tools/chromium.sh")], capture_output=True, text=True, check=True
    ).stdout.strip()
    for protocol, port in (("udp", 7882), ("tcp", 7881), ("udp", 3478)):
        composition.network.refuse(protocol, port)
    page = (chromium, f"http://{NODE_IP}:8000", NAME, NODE_IP)
    used = json.loads(of_the_player(composition, "tests.docker.browser", *page))
    assert used == [["tls", f"turns:{NAME}:443?transport=tcp"]]
