"""What can be proved of docker/ without a Docker engine."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from server.settings import variables
from tests.livekit_server import TOOL, livekit_binary

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
# Of compose-spec/compose-go v2.9.0 (Apache-2.0).
SCHEMA = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(DOCKER / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_compose_file_is_one() -> None:
    jsonschema_rs.Draft7Validator(SCHEMA).validate(COMPOSE)


def test_nothing_is_published_beyond_what_play_needs() -> None:
    published = [port for each in COMPOSE["services"].values() for port in each.get("ports", ())]
    assert published == [
        "7880:7880/tcp",
        "7881:7881/tcp",
        "7882:7882/udp",
        "${VELDT_PUBLISH:-127.0.0.1}:8000:8000/tcp",
    ]
    config = yaml.safe_load((DOCKER / "livekit.yaml").read_text())
    rtc = config["rtc"]
    assert (config["port"], rtc["tcp_port"], rtc["udp_port"]) == (7880, 7881, 7882)


def test_secrets_and_the_address_have_no_defaults() -> None:
    text = (DOCKER / "compose.yaml").read_text()
    for name in ("LIVEKIT_API_SECRET", "VELDT_ADMIN_KEY"):
        uses = re.findall(rf"\$\{{{name}([^}}]*)\}}", text)
        assert uses
        assert all(use.startswith(":?") for use in uses)
    assert "${NODE_IP:?" in text
    assert "keys:" not in (DOCKER / "livekit.yaml").read_text()


def test_every_setting_in_it_is_one() -> None:
    given = COMPOSE["services"]["veldt"]["environment"]
    assert set(given) <= set(variables())


def test_livekit_is_the_one_that_is_tested() -> None:
    version = re.search(r"^version=(v[\d.]+)$", TOOL.read_text(), re.MULTILINE)
    assert version is not None
    assert COMPOSE["services"]["livekit"]["image"] == f"livekit/livekit-server:{version[1]}"


def test_livekit_s_configuration_is_read_by_the_real_program() -> None:
    read = subprocess.run(
        [livekit_binary(), "--config", str(DOCKER / "livekit.yaml"), "ports"],
        env={"LIVEKIT_KEYS": "veldt: " + "s" * 64},
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stdout + read.stderr
    for port in ("7880", "7881", "7882"):
        assert port in read.stdout


@pytest.mark.parametrize("address", ["192.168.1.7", "10.0.0.1", "203.0.113.9"])
def test_an_address_in_the_network_is_taken(address: str) -> None:
    assert run("check-address.sh", address).returncode == 0


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1", "0.0.0.0", "localhost", "my.host.example", "1.2.3", "::1", "1..2.3"],
)
def test_an_address_that_cannot_work_is_one_clear_sentence(address: str) -> None:
    refused = run("check-address.sh", address)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"NODE_IP '{address}' cannot be used: ")
    assert refused.stderr.count("\n") == 1


def test_set_up_writes_fresh_secrets_for_this_user_only_and_never_again(tmp_path: Path) -> None:
    files = [tmp_path / "one.env", tmp_path / "two.env"]
    for file in files:
        assert run("setup.sh", "192.168.1.7", ENV_FILE=str(file)).returncode == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one, two = (dict(re.findall(r"^(\w+)=(.+)$", f.read_text(), re.MULTILINE)) for f in files)
    assert one["NODE_IP"] == "192.168.1.7"
    assert len(one["LIVEKIT_API_SECRET"]) == 64
    assert {one[n] for n in one if n != "NODE_IP"}.isdisjoint(two[n] for n in two if n != "NODE_IP")
    before = files[0].read_text()
    assert run("setup.sh", "192.168.1.8", ENV_FILE=str(files[0])).returncode == 1
    assert files[0].read_text() == before


def test_the_file_of_secrets_is_never_committed() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "-q", "docker/.env"], cwd=ROOT, check=False
    ).returncode
    assert ignored == 0


def test_all_that_the_image_copies_is_there_and_not_ignored() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    kept = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert any(source == k or source.startswith(f"{k}/") for k in kept), source
    assert re.search(r"^USER \d+$", text, re.MULTILINE), "it must not run as root"
    assert "ADD " not in text
