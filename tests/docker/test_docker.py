"""What can be proved of docker/ without a Docker engine."""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import re
import stat
import subprocess
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from server.settings import variables
from tests.docker.composed import DOCKER, FILES, ROOT, SET_UP, TLS, config, services
from tests.livekit_server import TOOL, livekit_binary

# Of compose-spec/compose-go v2.9.0 (Apache-2.0).
SCHEMA = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
Port = tuple[str | None, str, str, int]  # host address, published, protocol, in the container
PLAY: set[Port] = {
    (None, "7880", "tcp", 7880),
    (None, "7881", "tcp", 7881),
    (None, "7882", "udp", 7882),
    ("127.0.0.1", "8000", "tcp", 8000),
}


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(DOCKER / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("file", FILES)
def test_every_compose_file_is_one(file: str) -> None:
    jsonschema_rs.Draft7Validator(SCHEMA).validate(yaml.safe_load((DOCKER / file).read_text()))


@pytest.mark.parametrize(
    "files",
    [("compose.yaml", *more) for n in range(4) for more in itertools.combinations(FILES[1:], n)],
    ids=" ".join,
)
def test_compose_reads_them_in_every_combination(files: tuple[str, ...]) -> None:
    found = services(*files, **SET_UP, **TLS)
    assert set(found) == {"address", "livekit", "veldt"}
    gpu = found["veldt"].get("deploy", {}).get("resources", {}).get("reservations", {})
    assert ("devices" in gpu) is ("compose.cuda.yaml" in files)
    for service in found.values():
        assert not service.get("privileged")
        assert service["restart"] in ("no", "unless-stopped")
    for name in ("livekit", "veldt"):
        assert found[name]["read_only"] is True
        assert found[name]["cap_drop"] == ["ALL"]
        assert found[name]["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize(
    ("files", "published"),
    [
        (("compose.yaml",), PLAY),
        (("compose.yaml", "compose.cuda.yaml"), PLAY),
        (("compose.yaml", "compose.turn.yaml"), PLAY | {(None, "3478", "udp", 3478)}),
        (
            ("compose.yaml", "compose.turn.yaml", "compose.turn-tls.yaml"),
            PLAY | {(None, "3478", "udp", 3478), (None, "443", "tcp", 5349)},
        ),
    ],
)
def test_nothing_is_published_beyond_what_play_needs(
    files: tuple[str, ...], published: set[Port]
) -> None:
    found = services(*files, **SET_UP, **TLS)
    ports = [port for service in found.values() for port in service.get("ports", ())]
    assert published == {
        (port.get("host_ip"), port["published"], port["protocol"], port["target"]) for port in ports
    }
    assert len(ports) == len(published)


def test_the_ports_of_livekit_are_those_of_its_configuration() -> None:
    config = yaml.safe_load((DOCKER / "livekit.yaml").read_text())
    rtc = config["rtc"]
    assert (config["port"], rtc["tcp_port"], rtc["udp_port"]) == (7880, 7881, 7882)


@pytest.mark.parametrize("missing", sorted(SET_UP))
@pytest.mark.parametrize("empty", [False, True], ids=["unset", "empty"])
def test_compose_begins_nothing_without_secrets_and_an_address(missing: str, empty: bool) -> None:
    given = {name: value for name, value in SET_UP.items() if name != missing}
    answer = config("compose.yaml", **given, **({missing: ""} if empty else {}))
    assert answer.returncode == 1
    assert f"required variable {missing} is missing a value: run docker/setup.sh" in answer.stderr


@pytest.mark.parametrize("missing", sorted(TLS))
def test_turn_over_tls_asks_for_its_certificate(missing: str) -> None:
    given = {name: value for name, value in TLS.items() if name != missing}
    files = ("compose.yaml", "compose.turn.yaml", "compose.turn-tls.yaml")
    answer = config(*files, **SET_UP, **given)
    assert answer.returncode == 1
    assert f"required variable {missing} is missing a value: set it in docker/.env" in answer.stderr


def test_secrets_reach_only_those_who_need_them() -> None:
    found = services(*FILES, **SET_UP, **TLS)
    for secret, holders in (
        (SET_UP["LIVEKIT_API_SECRET"], {"livekit", "veldt"}),
        (SET_UP["VELDT_ADMIN_KEY"], {"veldt"}),
    ):
        assert {name for name, said in found.items() if secret in json.dumps(said)} == holders
        assert all(secret not in json.dumps(said.get("command")) for said in found.values())
    assert "keys:" not in (DOCKER / "livekit.yaml").read_text()


def test_a_gpu_s_image_has_torch_for_it_whatever_the_other_image_has() -> None:
    cpu = {**SET_UP, "TORCH_INDEX_URL": "https://torch.example/cpu"}
    plain = services("compose.yaml", **cpu)["veldt"]
    cuda = services("compose.yaml", "compose.cuda.yaml", **cpu)
    assert plain["build"]["args"] == {"TORCH_INDEX_URL": "https://torch.example/cpu"}
    assert cuda["veldt"]["build"]["args"] == {"TORCH_INDEX_URL": ""}
    assert {cuda["veldt"]["image"], cuda["address"]["image"]}.isdisjoint({plain["image"]})


def test_every_setting_in_it_is_one() -> None:
    assert set(services(*FILES, **SET_UP, **TLS)["veldt"]["environment"]) <= set(variables())


def test_livekit_is_the_one_that_is_tested() -> None:
    version = re.search(r"^version=(v[\d.]+)$", TOOL.read_text(), re.MULTILINE)
    assert version is not None
    image = services(*FILES, **SET_UP, **TLS)["livekit"]["image"]
    assert image == f"livekit/livekit-server:{version[1]}"


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


@pytest.mark.parametrize("address", ["203.0.113.7", "10.0.0.1", "255.255.255.254"])
def test_turn_relays_to_livekit_and_to_nobody_else(address: str, tmp_path: Path) -> None:
    shows = tmp_path / "shows"
    shows.write_text('#!/bin/sh\nprintf "%s\\n" "$*" "$LIVEKIT_CONFIG"\n')
    shows.chmod(0o755)
    here = {"LIVEKIT_YAML": str(DOCKER / "livekit.yaml"), "LIVEKIT_SERVER": str(shows)}
    said = run("livekit-turn.sh", NODE_IP=address, **here)
    words, text = said.stdout.split("\n", 1)
    assert words == f"--node-ip {address}"
    config = yaml.safe_load(text)
    turn = config.pop("turn")
    assert config == yaml.safe_load((DOCKER / "livekit.yaml").read_text())
    assert turn["allow_restricted_peer_cidrs"] == [f"{address}/32"]
    denied = [ipaddress.IPv4Network(each) for each in turn["deny_peer_cidrs"]]
    assert not any(ipaddress.IPv4Address(address) in each for each in denied)
    merged = list(ipaddress.collapse_addresses(denied))
    assert sum(each.num_addresses for each in merged) == 2**32 - 1


def test_turn_s_configuration_is_read_by_the_real_program() -> None:
    here = {"LIVEKIT_YAML": str(DOCKER / "livekit.yaml"), "LIVEKIT_SERVER": livekit_binary()}
    keys = {"LIVEKIT_KEYS": "veldt: " + "s" * 64}
    read = run("livekit-turn.sh", "ports", NODE_IP="203.0.113.7", **here, **keys)
    assert read.returncode == 0, read.stdout + read.stderr
    assert "3478" in read.stdout


@pytest.mark.parametrize(
    "address", ["192.168.1.7", "10.0.0.1", "203.0.113.9", "223.255.255.255", "100.64.0.0"]
)
def test_an_address_in_the_network_is_taken(address: str) -> None:
    assert run("check-address.sh", address).returncode == 0


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "it is not set"),
        ("127.0.0.1", "it means each container itself"),
        ("127.1.2.3", "it means each container itself"),
        ("0.0.0.0", "nobody can connect to it"),
        ("169.254.3.4", "it was made up"),
        ("224.0.0.1", "it is no single machine's"),
        ("255.255.255.255", "it is no single machine's"),
        *(
            (name, "it is not an IPv4 address")
            for name in ("localhost", "my.host.example", "1.2.3", "::1", "1..2.3", "1.2.3.4.5")
        ),
        *(
            (name, "it is not an IPv4 address")
            for name in ("10.0.0.256", "10.0.0.01", "10.0.0.1000")
        ),
    ],
)
def test_an_address_that_cannot_work_is_one_clear_sentence(address: str, why: str) -> None:
    refused = run("check-address.sh", address)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"NODE_IP '{address}' cannot be used: {why}")
    assert refused.stderr.count("\n") == 1


def test_set_up_writes_fresh_secrets_for_this_user_only_and_never_again(tmp_path: Path) -> None:
    files = [tmp_path / "one.env", tmp_path / "two.env"]
    for file in files:
        assert run("setup.sh", "192.168.1.7", ENV_FILE=str(file)).returncode == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one, two = (dict(re.findall(r"^(\w+)=(.+)$", f.read_text(), re.MULTILINE)) for f in files)
    assert one["NODE_IP"] == "192.168.1.7"
    assert len(one["LIVEKIT_API_SECRET"]) == 64
    assert services("compose.yaml", **one)["livekit"]["command"][-1] == "192.168.1.7"
    assert {one[n] for n in one if n != "NODE_IP"}.isdisjoint(two[n] for n in two if n != "NODE_IP")
    before = files[0].read_text()
    assert run("setup.sh", "192.168.1.8", ENV_FILE=str(files[0])).returncode == 1
    assert files[0].read_text() == before


def test_the_file_of_secrets_is_never_committed() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "-q", "docker/.env"], cwd=ROOT, check=False
    ).returncode
    assert ignored == 0


def test_a_clone_on_windows_keeps_the_line_ends_of_what_containers_read(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    windows = ["-c", "core.autocrlf=true", "-c", "core.eol=crlf"]
    subprocess.run(["git", *windows, "clone", "-q", "--shared", str(ROOT), str(clone)], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=clone, capture_output=True, text=True, check=True
    )
    texts = [clone / name for name in listed.stdout.split("\0") if name]
    read = {file: file.read_bytes() for file in texts if file.is_file()}
    returned = {
        str(file.relative_to(clone))
        for file, content in read.items()
        if b"\r\n" in content and b"\0" not in content
    }
    assert returned == set()
    assert any(content.startswith(b"#!") for content in read.values())
