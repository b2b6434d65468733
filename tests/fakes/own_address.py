"""A machine's own address, in a network namespace that is made for a test and leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import Final, Self

ADDRESS: Final = "10.77.0.2"
LAN: Final = "lan0"
STEPS: Final = (
    "ip link set lo up",
    f"ip link add {LAN} type veth peer name lan1",
    f"ip address add {ADDRESS}/24 dev {LAN}",
    f"ip link set {LAN} up",
    "ip link set lan1 up",
    f"ip route add default via 10.77.0.1 dev {LAN}",  # a browser asks which way is out
)
FETCH: Final = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=2).status)"


class OwnAddress:
    """The namespace; `enter` is how a program is started inside. Needs root."""

    def __init__(self) -> None:
        self._keeper: subprocess.Popen[bytes] | None = None

    @staticmethod
    def possible() -> bool:
        """Whether this user may make one."""
        return os.geteuid() == 0

    def __enter__(self) -> Self:
        self._keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec sleep 600"], stdout=subprocess.PIPE
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"ready\n"
        for step in STEPS:
            subprocess.run(self.enter(*step.split()), check=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._keeper is not None
        self._keeper.kill()
        self._keeper.communicate()

    def enter(self, *command: str) -> list[str]:
        """The command line that runs a command inside."""
        assert self._keeper is not None
        return ["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net", *command]

    def answers(self, url: str) -> bool:
        """Whether this is answered with 200 in there."""
        asked = subprocess.run(
            self.enter(sys.executable, "-c", FETCH, url), capture_output=True, check=False
        )
        return asked.stdout == b"200\n"
