from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psutil
import pytest
from aiortc import RTCIceGatherer

from server.transports.base import ConnectOffer
from server.transports.settings import TransportSettings
from server.transports.webrtc import WebRtcTransport
from tests.fakes.show import FakeShow


@pytest.fixture(autouse=True)
def no_public_stun(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiortc asks a public server for its address unless it is told not to."""

    def refused() -> None:
        raise AssertionError("the default STUN server would have been used")

    monkeypatch.setattr(RTCIceGatherer, "getDefaultIceServers", refused)


class Stage(FakeShow):
    """One session on direct WebRTC, with its sink, and a source of moving pictures."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.transport = WebRtcTransport("s", self.sink, TransportSettings(**settings))

    def connect(self, take_over: bool = False) -> Callable[[str], Awaitable[str]]:
        async def answer(sdp: str) -> str:
            answered = await self.transport.connect(ConnectOffer(sdp, take_over))
            assert answered.transport == "webrtc"
            return str(answered.details["sdp"])

        return answer

    def play(self, fps: float = 32) -> None:
        super().play(fps)


def opened_sockets() -> set[tuple[str, int]]:
    """Where this process has UDP sockets; some may be of tests before, and on their way out."""
    return {(s.laddr.ip, s.laddr.port) for s in psutil.Process().net_connections("udp")}


@pytest.fixture
async def make_stage() -> AsyncIterator[Callable[..., Stage]]:
    stages: list[Stage] = []

    def make(**settings: Any) -> Stage:
        stages.append(Stage(**settings))
        return stages[-1]

    yield make
    for stage in stages:
        await stage.aclose()


@pytest.fixture
async def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Every task must end soon after its test; anyio fails a test whose task raised unseen."""
    before = asyncio.all_tasks()
    yield
    ours = {task for task in asyncio.all_tasks() - before if "_call_in_runner" not in repr(task)}
    if ours:
        await asyncio.wait(ours, timeout=5)
    gc.collect()
    assert not [task for task in ours if not task.done()]
