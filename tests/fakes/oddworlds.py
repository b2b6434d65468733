"""Worlds for a worker process: one is stuck in its warm-up, one hangs in a stage, one is loud."""

from __future__ import annotations

import asyncio
import os
import threading

from pipeline.service import Progress, SessionPolicy, SessionStart
from pipeline.testworlds.base import DrawnWorld
from pipeline.testworlds.failing import make_world as make_failing
from pipeline.testworlds.marker import make_world as make_marker
from server.transports.memory import MemoryPlayer


def stuck() -> DrawnWorld:
    """Never warm."""
    world = make_marker()

    def warm_up(progress: Progress) -> None:
        progress("stuck for good", 0.5)
        threading.Event().wait()

    world.warm_up = warm_up
    return world


def hanging() -> DrawnWorld:
    """Its first chunk never ends; a player joins the first session by itself."""
    world = make_failing(stage="denoise", at_chunk=0, hang=True)
    make_policy = world.policy

    def join() -> None:
        try:
            MemoryPlayer().join("memory:1")
        except ConnectionError:  # its place is still being made
            asyncio.get_running_loop().call_later(0.05, join)

    def policy(start: SessionStart) -> SessionPolicy:
        asyncio.get_running_loop().call_soon(join)
        return make_policy(start)

    world.policy = policy
    return world


def loud() -> DrawnWorld:
    """Prints where the frames of the pipe once were."""
    world = make_marker()

    def warm_up(progress: Progress) -> None:
        print("LOUD", flush=True)
        os.write(1, b"LOUDER\n")

    world.warm_up = warm_up
    return world
