"""A machine with Docker's network, made of network namespaces: nothing of it leaves this machine.

Containers sit on a bridge; a published port is carried by Docker's own docker-proxy, as Docker does
for containers, and for everybody where it may not touch the firewall. A player is on another
machine of the same network. Needs root, iproute2 and util-linux.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.docker.composed import part

NODE_IP: Final = "10.213.7.1"
PLAYER_IP: Final = "10.213.7.9"
GATEWAY: Final = "172.30.213.1"
SHM: Final = "1m"  # Docker gives 64
HOST, PLAYER = "host", "player"


class DockerNetwork:
    """`with DockerNetwork(folder, ["livekit", "veldt"]) as network`."""

    def __init__(self, folder: Path, containers: Iterable[str]) -> None:
        """`folder` is for logs."""
        self._folder = folder
        self._mark = f"veldt-test-{secrets.token_hex(3)}"
        self.address = {name: f"172.30.213.{n}" for n, name in enumerate(containers, 2)}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._refused: set[tuple[str, int]] = set()

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes.copy()):
            self.end(process)
        for name in (HOST, PLAYER, *self.address):
            subprocess.run(
                ["ip", "netns", "delete", self.space(name)], capture_output=True, check=False
            )

    def space(self, place: str) -> str:
        """The network namespace of the host, the player or a container."""
        return f"{self._mark}-{place}"

    def publish(
        self, container: str, ports: Iterable[Mapping[str, Any]]
    ) -> list[subprocess.Popen[bytes]]:
        """Carry a service's `ports`, as `docker compose config` prints them."""
        proxies = []
        for port in ports:
            options = {
                "proto": port["protocol"],
                "host-ip": port.get("host_ip", "0.0.0.0"),
                "host-port": port["published"],
                "container-ip": self.address[container],
                "container-port": port["target"],
            }
            words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
            came, up = os.pipe()
            with os.fdopen(came, "rb") as answer:  # docker-proxy says on descriptor 3 that it is up
                shell = ["bash", "-c", f'exec 3>&{up} {up}>&-; exec "$@"', "bash"]
                program = [*shell, str(part("proxy")), *words]
                try:
                    proxies.append(self.spawn(HOST, *program, keep=up))
                finally:
                    os.close(up)
                said = answer.read()
            assert said == b"0\n", said
        return proxies

    def refuse(self, protocol: str, port: int) -> None:
        """Let nothing of the player's through to a port of the host, from now on."""
        if (protocol, port) in self._refused:
            return
        self._refused.add((protocol, port))
        rule = f"pref 10 ipproto {protocol} dport {port} prohibit"
        self._ip(PLAYER, "rule", "add", *rule.split())
        attempt = ["bash", "-c", f"echo > /dev/{protocol}/{NODE_IP}/{port}"]
        tried = subprocess.run(self.argv(PLAYER, *attempt), capture_output=True, check=False)
        assert b"Permission denied" in tried.stderr, tried.stderr

    def argv(self, place: str, *command: str) -> list[str]:
        """Run a command there; containers know each other by name."""
        net = ["nsenter", f"--net=/run/netns/{self.space(place)}"]
        if place not in self.address:
            return [*net, *command]
        hosts = self._folder / "hosts"
        names = "".join(f"{ip} {name}\n" for name, ip in self.address.items())
        hosts.write_text(f"127.0.0.1 localhost\n{names}")
        mounts = f"mount --bind {hosts} /etc/hosts; mount -t tmpfs -o size={SHM} shm /dev/shm"
        script = f'{mounts}; exec "$@"'
        return [*net, "unshare", "--mount", "sh", "-euc", script, "sh", *command]

    def spawn(
        self, place: str, *command: str, keep: int | None = None, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a program there; it is ended with the network."""
        return self.own(self.argv(place, *command), environment or None, place, keep)

    def own(
        self,
        argv: list[str],
        environment: Mapping[str, str] | None,
        log: str,
        keep: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program that is in the network already; it is ended with it."""
        with self.log(log).open("ab") as output:
            process = subprocess.Popen(
                argv,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if keep is None else (keep,),
            )
        self._processes.append(process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them now, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        self._processes.remove(process)

    def log(self, place: str) -> Path:
        """What was printed there."""
        return self._folder / f"{place}.log"

    def _make(self) -> None:
        for name in (HOST, PLAYER, *self.address):
            subprocess.run(["ip", "netns", "add", self.space(name)], check=True)
            self._ip(name, "link", "set", "lo", "up")
        self._ip(HOST, "link", "add", "bridge", "type", "bridge")
        self._ip(HOST, "address", "add", f"{GATEWAY}/24", "dev", "bridge")
        self._ip(HOST, "link", "set", "bridge", "up")
        for name, address in self.address.items():
            self._cable(name, f"to-{name}", address)
            self._ip(HOST, "link", "set", f"to-{name}", "master", "bridge")
            self._ip(name, "route", "add", "default", "via", GATEWAY)
        self._cable(PLAYER, "lan", PLAYER_IP)
        self._ip(HOST, "address", "add", f"{NODE_IP}/24", "dev", "lan")

    def _cable(self, name: str, end: str, address: str) -> None:
        peer = f"peer name eth0 netns {self.space(name)}".split()
        self._ip(HOST, "link", "add", "name", end, "type", "veth", *peer)
        self._ip(HOST, "link", "set", end, "up")
        self._ip(name, "address", "add", f"{address}/24", "dev", "eth0")
        self._ip(name, "link", "set", "eth0", "up")

    def _ip(self, place: str, *command: str) -> None:
        subprocess.run(["ip", "-n", self.space(place), *command], check=True)
