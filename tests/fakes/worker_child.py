"""A worker child that speaks the frames and does what its world's name says. No model.

`python tests/fakes/worker_child.py`; the first frame is the `WorkerConfig`.
"""

from __future__ import annotations

import base64
import faulthandler
import json
import os
import signal
import struct
import sys
import time
from typing import Any


def read() -> dict[str, Any] | None:
    header = sys.stdin.buffer.read(4)
    if len(header) < 4:
        return None
    (length,) = struct.unpack("!I", header)
    return json.loads(sys.stdin.buffer.read(length))


def write(message: dict[str, Any]) -> None:
    payload = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack("!I", len(payload)) + payload)
    sys.stdout.buffer.flush()


def ready(config: dict[str, Any]) -> None:
    picture = base64.b64encode(b"\x89PNG pretend").decode()
    world = {
        "name": config["world"],
        "title": "T",
        "about": "A",
        "width": 16,
        "height": 16,
        "fps": 24.0,
        "frames_per_chunk": 4,
        "start_points": [{"name": "here", "title": "Here", "picture": picture}],
        "controls": [],
        "axes": [],
        "prompt": False,
        "image": False,
    }
    event = {"type": "ready", "world": world, "transport": "memory", "seats": config["seats"]}
    write({"event": event})


def main() -> None:
    config = read()
    assert config is not None
    how = config["world"]
    if how != "mute":
        faulthandler.register(signal.SIGUSR1)
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(
        json.dumps({"event": "child_says", "level": "warning", "session_id": "s1"}), file=sys.stderr
    )
    print("plain words of a library", file=sys.stderr, flush=True)
    if how == "fatal":
        fault = {"type": "fatal", "code": "unknown_world", "message": "there is no such world"}
        write({"event": fault})
        sys.exit(1)
    if how == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "garbage":
        print("a print on stdout corrupts the stream", flush=True)
    if how == "never-ready":
        time.sleep(3600)
    write({"event": {"type": "loading", "stage": "loading", "progress": 0.5}})
    ready(config)
    while (message := read()) is not None:
        request = message["request"]
        if how in ("hung", "stubborn", "mute"):
            time.sleep(3600)
        if request["type"] == "close" and how == "dies-on-close":
            os.kill(os.getpid(), signal.SIGKILL)
        if request["type"] == "close":
            environment = {name: os.environ.get(name, "") for name in ("OMP_NUM_THREADS",)}
            print(json.dumps({"event": "environment", **environment}), file=sys.stderr, flush=True)
            write(
                {
                    "id": message["id"],
                    "reply": {"type": "closed", "session": request["session"], "clean": True},
                }
            )
            continue
        write({"id": message["id"], "reply": {"type": "done"}})
        if request["type"] == "shutdown":
            sys.exit(0)


main()
