"""A real `veldt serve` for a test: its own port, its output kept, always ended."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

START_SECONDS = 90.0
PORTS = range(11_000, 32_000)  # below those that Linux gives to whoever asks for any


def free_port() -> int:
    """A port that was free a moment ago on loopback, and that the system gives to nobody."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            port = random.choice(PORTS)
            probe.bind(("127.0.0.1", port))
            return port


class ServerProcess:
    """`veldt serve` in a subprocess, ready to play once `start` has returned."""

    def __init__(self, log: Path, *options: str, **settings: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self._settings = {name.upper(): value for name, value in settings.items()}
        self._arguments = ("serve", "--port", str(self.port), *options)
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> list[str]:
        """The command line of `veldt` with these arguments."""
        return [sys.executable, "-m", "server.cli", *arguments]

    def start(self) -> Self:
        """Spawn and wait for `/readyz`; shows the output if it dies early."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VELDT_", "LIVEKIT_"))}
        self.process = subprocess.Popen(
            self.command(*self._arguments),
            env={**clean, **self._settings},
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"veldt serve ended with {self.process.returncode}:\n{self.output()}"
                )
            if self.ready():
                return self
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"veldt serve was not ready after {START_SECONDS} s:\n{self.output()}")

    def ready(self) -> bool:
        """Whether it says that it can be played."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Wait until a new worker has taken the place of a dead one."""
        deadline = time.monotonic() + seconds
        while not self.ready():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not ready again after {seconds} s:\n{self.output()}")
            time.sleep(0.1)

    def workers(self) -> list[psutil.Process]:
        """The worker processes of this server."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if "server.worker" in " ".join(child.cmdline())]

    def metric(self, name: str, **labels: str) -> float:
        """One number from `/metrics`; raises KeyError where it is missing."""
        text = httpx.get(f"{self.url}/metrics", timeout=15).text
        for line in text.splitlines():
            found = re.match(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$", line)
            if found is None or found[1] != name:
                continue
            present = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
            if all(present.get(key) == value for key, value in labels.items()):
                return float(found[3])
        raise KeyError(name)

    def post(self, path: str, json: Any = None, **headers: str) -> httpx.Response:
        """POST JSON to the API."""
        return httpx.post(f"{self.url}{path}", json=json, headers=headers, timeout=15)

    def output(self) -> str:
        """Everything it has printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def stop(self, seconds: float = 15.0) -> int | None:
        """End it as an operator would (SIGTERM), then for sure; returns its exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        return self.process.returncode
