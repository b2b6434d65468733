"""Whatever becomes of a connection, nothing of it is left: sockets, tasks, threads."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable

import psutil
import pytest

from server.transports.base import BadOffer, ConnectOffer, LeaveReason, TransportClosed
from tests.fakes.rtc_client import RtcPlayer
from tests.fakes.waiting import until
from tests.server.transports.conftest import Stage

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_task_left")]


def held() -> tuple[int, int, int]:
    """Descriptors, threads and tasks of this process.

    Without the threads of the shared encoder: of those, as many are made as are ever needed at once
    (`test_threads_are_shared_and_bounded`).
    """
    gc.collect()
    threads = sum(not thread.name.startswith("veldt-encode") for thread in threading.enumerate())
    return psutil.Process().num_fds(), threads, len(asyncio.all_tasks())


async def settled() -> tuple[int, int, int]:
    """What is held once the tasks that were ending have ended."""
    this = asyncio.current_task()
    ending = {t for t in asyncio.all_tasks() if t is not this and "_call_in_runner" not in repr(t)}
    if ending:
        await asyncio.wait(ending, timeout=5)
    return held()


async def no_more_than(before: tuple[int, int, int]) -> None:
    """Wait until no more is held. Less may be: other tests' leftovers end in their own time."""
    try:
        await until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))
    except TimeoutError:
        assert held() == before


async def abandoned_at_once(offer: str, make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    await stage.connect()(offer)
    await stage.aclose()
    assert stage.sink.events == []


async def never_applied(offer: str, make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(connect_seconds=0.05)
    await stage.connect()(offer)
    await stage.sink.until(lambda s: bool(s.events))
    assert stage.sink.events == [("left", "player-1", LeaveReason.FAILED)]


async def refused_inside_the_media_stack(offer: str, make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    with pytest.raises(BadOffer):
        await stage.connect()(offer.replace("a=sctp-port:5000", "a=sctp-port:many"))


async def closed_while_connecting(offer: str, make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    connecting = asyncio.create_task(stage.transport.connect(ConnectOffer(offer)))
    await asyncio.sleep(0)
    await stage.aclose()
    with pytest.raises(TransportClosed):
        await connecting
    assert stage.sink.events == []


async def cancelled_while_connecting(offer: str, make_stage: Callable[..., Stage]) -> None:
    several = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    stage = make_stage(bind_host="0.0.0.0", media_addresses=several)
    for turns in range(24):  # an answer takes about twenty
        connecting = asyncio.create_task(stage.transport.connect(ConnectOffer(offer)))
        for _ in range(turns):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        assert connecting.cancelled() or connecting.result()
    assert {event[2] for event in stage.sink.events} <= {LeaveReason.REPLACED}


async def overtaken_many_times(offer: str, make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    for _ in range(5):
        await stage.connect()(offer)
    await stage.sink.until(lambda s: len(s.events) == 2)  # three may be on their way
    assert {event[2] for event in stage.sink.events} == {LeaveReason.REPLACED}


@pytest.mark.parametrize(
    ("fate", "cycles"),
    [
        (abandoned_at_once, 15),
        (never_applied, 15),
        (refused_inside_the_media_stack, 15),
        (closed_while_connecting, 15),
        (cancelled_while_connecting, 2),
        (overtaken_many_times, 4),
    ],
)
async def test_connections_that_never_come_up_leave_nothing(
    make_stage: Callable[..., Stage],
    fate: Callable[[str, Callable[..., Stage]], Awaitable[None]],
    cycles: int,
) -> None:
    player = RtcPlayer(candidates="dead")
    offer = await player.offer()
    stages: list[Stage] = []

    def make(**settings: object) -> Stage:
        stages.append(make_stage(**settings))
        return stages[-1]

    async def cycle() -> None:
        await fate(offer, make)
        await stages.pop().aclose()

    await cycle()  # what is made once and kept
    before = await settled()
    for _ in range(cycles):
        await cycle()
    await no_more_than(before)
    await player.aclose()


async def test_connections_that_played_leave_nothing(make_stage: Callable[..., Stage]) -> None:
    async def cycle(number: int) -> None:
        stage = make_stage()
        stage.play()
        player = RtcPlayer()
        await player.connect(stage.connect())
        await player.until(lambda: bool(player.frames))
        if number % 3 == 0:
            await player.aclose()
        elif number % 3 == 1:
            await player.vanish()
        await stage.aclose()
        await player.aclose()

    for number in range(3):
        await cycle(number)
    before = await settled()
    for number in range(12):
        await cycle(number)
    await no_more_than(before)
