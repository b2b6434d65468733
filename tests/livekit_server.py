"""A real livekit-server on loopback, for tests: its own ports and keys, always ended."""

from __future__ import annotations

import os
import random
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from livekit import api

TOOL = Path(__file__).parents[1] / "tools" / "livekit-server.sh"
START_SECONDS = 60.0
HOST = "127.0.0.1"
PORTS = range(11_000, 32_000)  # below those that Linux gives to whoever asks for any
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM)


def livekit_binary() -> str:
    """The server that is tested against; a machine without one fails with the cure."""
    found = subprocess.run(["bash", str(TOOL)], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(found.stderr)
    return found.stdout.strip()


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago on loopback, and that the system gives to nobody.

    For TCP and for UDP. They stay free of others while a server that had them is restarted.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.choice(PORTS)
        if port not in found and all(_free(port, kind) for kind in KINDS):
            found.append(port)
    return found


def _free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(type=kind) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


class LiveKitServer:
    """One livekit-server process. `restart` keeps its ports and keys."""

    def __init__(
        self, folder: Path, *, webhook: str | None = None, host: str = HOST, interface: str = "lo"
    ) -> None:
        self.port, tcp, self.udp_port = free_ports(3)
        self.key, self.secret = "test" + secrets.token_hex(4), secrets.token_hex(24)
        self.url = f"ws://{host}:{self.port}"
        self.http = f"http://{host}:{self.port}"
        self.log = folder / "livekit-server.log"
        self._config = folder / "livekit.yaml"
        self._process: subprocess.Popen[bytes] | None = None
        config: dict[str, Any] = {
            "port": self.port,
            "bind_addresses": [host],
            "rtc": {
                "tcp_port": tcp,
                "udp_port": self.udp_port,
                "use_external_ip": False,
                "node_ip": host,
                "enable_loopback_candidate": interface == "lo",
                "interfaces": {"includes": [interface]},
            },
            "room": {"auto_create": False},
            "keys": {self.key: self.secret},
            "logging": {"level": "info", "json": False},
        }
        if webhook is not None:
            config["webhook"] = {"api_key": self.key, "urls": [webhook]}
        folder.mkdir(parents=True, exist_ok=True)
        self._config.write_text(yaml.safe_dump(config))

    @property
    def settings(self) -> dict[str, str]:
        """What `veldt serve` needs in its environment."""
        return {
            "livekit_url": self.url,
            "livekit_api_key": self.key,
            "livekit_api_secret": self.secret,
        }

    def command(self) -> list[str]:
        """Its command line."""
        return [livekit_binary(), "--config", str(self._config)]

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            return httpx.get(self.http, timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def start(self) -> Self:
        """Spawn and wait until it answers; shows its output if it does not."""
        log = self.log.open("ab")
        self._process = subprocess.Popen(
            self.command(),
            stdout=log,
            stderr=subprocess.STDOUT,
            env={key: value for key, value in os.environ.items() if "LIVEKIT" not in key},
        )
        log.close()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if self.answers():
                return self
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"livekit-server did not come up:\n{self.output()}")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it: as a crash does, unless told otherwise."""
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(10)
        self._process = None

    def restart(self) -> None:
        """Crash, and come back with nothing remembered."""
        self.stop()
        self.start()

    def output(self) -> str:
        """Everything it has printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    async def rooms(self) -> dict[str, list[str]]:
        """Identities by room, as the server lists them."""
        async with api.LiveKitAPI(self.http, self.key, self.secret) as lk:
            listed = await lk.room.list_rooms(api.ListRoomsRequest())
            found: dict[str, list[str]] = {}
            for room in listed.rooms:
                inside = await lk.room.list_participants(
                    api.ListParticipantsRequest(room=room.name)
                )
                found[room.name] = sorted(one.identity for one in inside.participants)
            return found

    async def remove(self, room: str, identity: str) -> None:
        """Put somebody out, as LiveKit does with whoever it has lost."""
        async with api.LiveKitAPI(self.http, self.key, self.secret) as lk:
            who = api.RoomParticipantIdentity(room=room, identity=identity)
            await lk.room.remove_participant(who)
