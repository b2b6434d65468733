"""Row H3: where media can be reached, and what an answer says of this machine's addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from tests.fakes.rtc_client import RtcPlayer
from tests.fakes.waiting import until
from tests.server.transports.conftest import Stage, opened_sockets

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_task_left")]


async def answered(stage: Stage, player: RtcPlayer) -> set[str]:
    """Play; returns the addresses that the answer offers."""
    told: list[str] = []

    async def answer(sdp: str) -> str:
        told.append(await stage.connect()(sdp))
        return told[0]

    stage.play()
    await player.connect(answer)
    await player.until(lambda: bool(player.frames))
    lines = [line.split() for line in told[0].splitlines() if line.startswith("a=candidate")]
    return {fields[4] for fields in lines}


async def reached(source: str, target: str, port: int) -> bool:
    """Whether somebody has a UDP socket at `target`, asked from `source`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((source, 0))
        asking.connect((target, port))
        asking.setblocking(False)
        asking.send(b"?")
        try:
            async with asyncio.timeout(0.5):  # the kernel's refusal comes at once
                await asyncio.get_running_loop().sock_recv(asking, 1)
        except ConnectionRefusedError:
            return False
        except TimeoutError:
            return True
    return True


async def test_a_loopback_service_cannot_be_reached_at_another_address(stage: Stage) -> None:
    before = opened_sockets()
    player = RtcPlayer()
    assert await answered(stage, player) == {"127.0.0.1"}
    ports = {port for _, port in opened_sockets() - before}
    assert ports
    for port in ports:  # 127.0.0.2 is an address of this machine too

        async def refused(port: int = port) -> bool:  # a kernel that is busy says so later
            return not await reached("127.0.0.2", "127.0.0.2", port)

        await until(refused)
        assert await reached("127.0.0.1", "127.0.0.1", port)
    await player.aclose()


async def test_an_answer_names_the_addresses_that_were_told_and_no_others(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(bind_host="0.0.0.0", media_addresses=("127.0.0.2",))
    before = opened_sockets()
    player = RtcPlayer()
    assert await answered(stage, player) == {"127.0.0.2"}
    own = set(player.addresses)
    bound = {address for address, _ in opened_sockets() - before}
    assert bound == {"127.0.0.2"} | own, "no socket on any other address"
    await player.aclose()
