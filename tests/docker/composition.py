"""`docker compose up` without Docker: the services of the compose files, in a `DockerNetwork`.

Order, health checks, environment, commands, mounted files and published ports are the files' own.
Programs are this machine's: the tested livekit-server, and veldt from these sources, unless a test
has built an image.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.docker.build import FILE
from tests.docker.composed import DOCKER, ROOT, services
from tests.docker.dockerfile import health, parse
from tests.docker.network import NODE_IP, DockerNetwork
from tests.livekit_server import livekit_binary

HEALTHY_SECONDS = 90.0
CONTAINERS = ("livekit", "veldt")


class Composition:
    """The whole service, up and healthy after `up`."""

    def __init__(self, network: DockerNetwork, *files: str, **environment: str) -> None:
        """`environment` is what docker/.env says."""
        self.network = network
        self.services = services(*files, **environment)
        self.veldt: subprocess.Popen[bytes] | None = None
        self._of_livekit: list[subprocess.Popen[bytes]] = []

    def up(
        self,
        veldt: Callable[[dict[str, Any]], list[str]] | None = None,
        check: list[str] | None = None,
    ) -> None:
        """Start one after the other. How veldt runs and is checked, if not from these sources."""
        self._address()
        self._livekit()
        service = self.services["veldt"]
        if veldt is None:
            program = [sys.executable, "-m", "server.cli", *service["command"]]
            self.veldt = self.network.spawn(
                "veldt", *program, **{**_machine(), **service["environment"]}
            )
        else:
            self.veldt = self.network.own(veldt(service), None, "veldt")
        here = self.network.argv("veldt", sys.executable, *image_health()[1:])
        self.wait("veldt", check or here)
        self.network.publish("veldt", service["ports"])

    def change(self, *files: str, **environment: str) -> None:
        """`docker compose up` with other files: what they change is made anew, here LiveKit."""
        before, self.services = self.services, services(*files, **environment)
        assert before["veldt"] == self.services["veldt"]
        assert before["livekit"] != self.services["livekit"]
        for process in self._of_livekit:
            self.network.end(process)
        self._livekit()

    def wait(self, place: str, check: list[str]) -> None:
        """Repeat a health check until it is content; shows the log if it never is."""
        deadline = time.monotonic() + HEALTHY_SECONDS
        while subprocess.run(check, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{place} is not healthy:\n{self.network.log(place).read_text()}"
                )
            time.sleep(0.2)

    def _address(self) -> None:
        entrypoint = self.services["address"]["entrypoint"]
        assert entrypoint[0] == "check-address"
        subprocess.run(["sh", str(DOCKER / "check-address.sh"), *entrypoint[1:]], check=True)

    def _livekit(self) -> None:
        service = self.services["livekit"]
        mounted = {each["target"]: each["source"] for each in service["volumes"]}
        here = {"LIVEKIT_SERVER": livekit_binary(), "LIVEKIT_YAML": mounted["/etc/livekit.yaml"]}
        program = service["entrypoint"] or [livekit_binary()]
        environment = {**_machine(), **here, **service["environment"]}
        argv = [*program, *service["command"]]
        for target, source in mounted.items():
            argv = [word.replace(target, source) for word in argv]
            environment = {k: v.replace(target, source) for k, v in environment.items()}
        process = self.network.spawn("livekit", *argv, **environment)
        self.wait("livekit", self.network.argv("livekit", *service["healthcheck"]["test"][1:]))
        self._of_livekit = [process, *self.network.publish("livekit", service["ports"])]


def image_health() -> list[str]:
    """The image's own health check."""
    last = parse(FILE.read_text()).stages[-1]
    return health(next(step.rest for step in last.steps if step.word == "HEALTHCHECK"))


def visit(network: DockerNetwork) -> subprocess.CompletedProcess[str]:
    """A player from another machine plays a moment."""
    program = [sys.executable, "-m", "tests.docker.visitor", f"http://{NODE_IP}:8000"]
    return subprocess.run(
        network.argv("player", *program), capture_output=True, text=True, cwd=ROOT, check=False
    )


def _machine() -> dict[str, str]:
    """What programs of this machine need of its environment."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
