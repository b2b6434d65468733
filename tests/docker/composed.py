"""docker/'s compose files as `docker compose` itself reads them."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
PARTS = ROOT / "tools/docker-parts.sh"
FILES = ("compose.yaml", "compose.cuda.yaml", "compose.turn.yaml", "compose.turn-tls.yaml")
SET_UP = {  # what setup.sh writes
    "NODE_IP": "203.0.113.7",
    "LIVEKIT_API_SECRET": "s" * 64,
    "VELDT_ADMIN_KEY": "a" * 64,
}
TLS = {"TURN_DOMAIN": "turn.example.org", "TURN_CERTIFICATES": "/etc/certificates"}


@functools.cache
def part(name: str) -> Path:
    """A part of Docker; a machine that cannot build it fails with the cure."""
    made = subprocess.run(["bash", str(PARTS)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise RuntimeError(made.stderr)
    return Path(made.stdout.strip()) / name


def config(*files: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `docker compose -f … config` answers, with that environment and no other."""
    return subprocess.run(
        [str(part("compose")), *files],
        cwd=DOCKER,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def services(*files: str, **environment: str) -> dict[str, Any]:
    """The services that files make together."""
    answer = config(*files, **environment)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)["services"]
    return found
