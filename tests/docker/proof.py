"""Builds the image by its steps and plays it: `make docker-proof`. Minutes, 5 GB to fetch.

The built tree runs as compose says: as user 10001 without capabilities, read-only but for its
tmpfs, with the compose file's environment and command beside a real LiveKit; the image's own health
check says when it is up, and a player on another machine of a made-up network plays.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tests.docker.build import Image, build
from tests.docker.composed import SET_UP
from tests.docker.composition import CONTAINERS, Composition, visit
from tests.docker.network import NODE_IP, DockerNetwork
from tests.docker.trees import Entry

NEEDED_BYTES = 15e9
SETTINGS = {**SET_UP, "NODE_IP": NODE_IP, "VELDT_PUBLISH": "0.0.0.0"}
WRITES = "import pathlib as p; [p.Path(d, 'x').touch() for d in ('/tmp', '/home/veldt')]"
PROBES = {  # what must hold in the container, as Python that fails where it does not
    "runs as user 10001": "import os; assert os.getuid() == 10001, os.getuid()",
    "has no capability and gets none": (
        "lines = [each.split(None, 1) for each in open('/proc/self/status')]\n"
        "said = dict(each for each in lines if each[0].startswith(('Cap', 'NoNewPrivs')))\n"
        "assert int(said.pop('NoNewPrivs:')) == 1 and said, said\n"
        "assert not any(int(value, 16) for value in said.values()), said"
    ),
    "its files cannot be written": (
        "import errno\n"
        "for place in ('/var/tmp/x', '/opt/veldt/x', '/srv/page/x', '/etc/x'):\n"
        "  try: open(place, 'w')\n"
        "  except OSError as fault: assert fault.errno == errno.EROFS, fault\n"
        "  else: raise AssertionError(place)"
    ),
    "/tmp and home can": WRITES,
    "torch is there": "import torch; print(torch.__version__, torch.version.cuda)",
    "no development tools are": (
        "import importlib.util as u; assert not any(map(u.find_spec, ('pytest', 'mypy', 'ruff')))"
    ),
}


def entry(image: Image, network: DockerNetwork, service: dict[str, Any]) -> Entry:
    """The service's container."""
    return Entry(
        image.tree,
        {**image.environment, **service["environment"]},
        image.folder,
        image.user,
        read_only=service["read_only"],
        tmpfs=service["tmpfs"],
        network=network.space("veldt"),
        hosts=network.address,
        no_privileges=service["cap_drop"] == ["ALL"],
    )


def prove(image: Image, folder: Path) -> None:
    """Run the image as compose would, and play."""
    with DockerNetwork(folder, CONTAINERS) as network:
        composition = Composition(network, "compose.yaml", **SETTINGS)
        container = entry(image, network, composition.services["veldt"])
        refused = subprocess.run(
            Entry(image.tree, image.environment).argv("check-address", "127.0.0.1"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode == 1, refused
        print("refuses a bad address:", refused.stderr.strip())
        for what, program in PROBES.items():
            done = subprocess.run(
                container.argv("python", "-c", program), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{what}: {done.stderr}"
            print(f"{what}: yes {done.stdout.strip()}")
        started = time.monotonic()
        composition.up(
            lambda service: container.argv(*image.entrypoint, *service["command"]),
            container.argv(*image.health),
        )
        print(f"healthy, by the image's own check, after {time.monotonic() - started:.0f} s")
        for number in (1, 2):
            visited = visit(network)
            log = network.log("veldt").read_text()
            assert visited.returncode == 0, f"{visited.stderr}\n{log}"
            said = json.loads(visited.stdout)
            assert said["page"] == 200, said
            print(f"player {number} saw {said['frames']} frames with its key, over {said['route']}")
        assert composition.veldt is not None
        (first,) = psutil.Process(composition.veldt.pid).children()  # the container's process 1
        first.terminate()
        assert composition.veldt.wait(15) == 0, network.log("veldt").read_text()
        print("ends with code 0 when it is told to")


def main() -> None:
    """Build, play, clean up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the trees are made; default: a new one")
    parser.add_argument("--keep", action="store_true", help="leave the built tree there")
    options = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("the proof needs root and debootstrap (apt-get install debootstrap)")
    work = Path(tempfile.mkdtemp(prefix="veldt-proof-", dir=options.folder or "/var/tmp"))
    free = shutil.disk_usage(work).free
    try:
        if free < NEEDED_BYTES:
            sys.exit(f"the proof needs {NEEDED_BYTES / 1e9:.0f} GB; there are {free / 1e9:.0f}")
        image = build(work)
        prove(image, work)
        print(f"proved: {image.entrypoint} {image.command}, user {image.user}")
    finally:
        if options.keep:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
