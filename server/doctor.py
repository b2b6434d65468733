"""`veldt doctor`: one line for each thing that play needs, what is wrong with it, how to mend it.

Nothing is changed; the room that is made at LiveKit is deleted again.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from server.settings import Settings

CLOCK_SECONDS: Final = 30.0  # LiveKit believes tokens for a minute around their time
NEEDED_MEGABYTES: Final = 1500
LIVEKIT_SECONDS: Final = 20.0


class Health(Enum):
    """How one thing is."""

    GOOD = "ok"
    DOUBTFUL = "??"  # works, or could not be found out
    BAD = "NO"


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and how to mend it where it is not good."""

    what: str
    health: Health
    words: str

    def __str__(self) -> str:
        """As it is printed."""
        return f"{self.health.value}  {self.what}: {self.words}"


def good(what: str, words: str) -> Finding:
    """It is as it should be."""
    return Finding(what, Health.GOOD, words)


def doubtful(what: str, words: str) -> Finding:
    """It may do."""
    return Finding(what, Health.DOUBTFUL, words)


def bad(what: str, words: str) -> Finding:
    """Nobody can play like this."""
    return Finding(what, Health.BAD, words)


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Everything that play needs, one after the other; never raises."""
    for check in (port, page, memory, world):
        yield await asyncio.to_thread(_safely, check, settings)
    if settings.transport == "webrtc":
        yield good("transport", "direct WebRTC; LIVEKIT_URL is not set")
        return
    yield await asyncio.to_thread(_safely, addresses, settings)
    async for finding in livekit(settings):
        yield finding


def _safely(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except Exception as error:  # the doctor's own fault is a finding too
        return bad(check.__name__, f"could not be examined: {type(error).__name__}: {error}")


# ------------------------------------------------------------------ this machine
def port(settings: Settings) -> Finding:
    """Whether the port is free."""
    from server.front.ports import PortUnavailable, listen

    try:
        listen(settings.host, settings.port).close()
    except PortUnavailable as error:
        return bad("port", str(error))
    return good("port", f"{settings.host}:{settings.port} is free")


def page(settings: Settings) -> Finding:
    """Whether the player's page is built."""
    if (settings.client_dir / "index.html").is_file():
        return good("page", f"built in {settings.client_dir}")
    return bad("page", f"{settings.client_dir} has no index.html: run 'make setup'")


def memory(settings: Settings, meminfo: Path = Path("/proc/meminfo")) -> Finding:
    """Whether a worker fits."""
    if not meminfo.is_file():
        return doubtful("memory", "this system does not say how much is free")
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    free = int(lines["MemAvailable"].split()[0]) // 1024
    if free < NEEDED_MEGABYTES:
        return doubtful(
            "memory",
            f"{free} MB are free, a worker of the world tiny takes about {NEEDED_MEGABYTES} MB: "
            "end other programs",
        )
    return good("memory", f"{free} MB are free; {os.cpu_count()} processors")


def world(settings: Settings) -> Finding:
    """Whether the world's files are there and can be loaded."""
    from pipeline.registry import load_world

    began = time.monotonic()
    try:
        loaded = load_world(settings.world, dict(settings.options))
    except Exception as error:
        return bad("world", f"{settings.world} cannot be loaded: {error}")
    loaded.close()
    return good("world", f"{settings.world} loads in {time.monotonic() - began:.1f} s")


# ------------------------------------------------------------------ LiveKit
def addresses(settings: Settings) -> Finding:
    """Whether browsers elsewhere can use the address of LiveKit that they are told."""
    url = settings.browser_livekit_url or ""
    host = urlsplit(url).hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if local and not settings.loopback:
        return bad(
            "livekit address",
            f"browsers on other machines are told {url}, which is their own machine: "
            "set LIVEKIT_PUBLIC_URL to an address of this one",
        )
    if not settings.loopback and url.startswith("ws://"):
        return doubtful(
            "livekit address", f"{url} is not encrypted; use wss:// beyond your network"
        )
    return good("livekit address", f"browsers go to {url}")


async def livekit(settings: Settings) -> AsyncIterator[Finding]:
    """Whether LiveKit answers, believes this clock and these keys, and passes pictures on."""
    clock = await _clock(settings)
    yield clock
    if clock.health is Health.BAD:
        return
    from server.front.serving import livekit_config
    from server.transports.livekit.address import LiveKitAddress
    from server.transports.livekit.examination import Examination, Unwell

    config = livekit_config(settings)
    assert config is not None
    try:
        async with asyncio.timeout(LIVEKIT_SECONDS):
            async for what, words in Examination(LiveKitAddress(**config.model_dump())).steps():
                yield good(what, words)
    except Unwell as error:
        yield bad(error.what, str(error))
    except TimeoutError:
        yield bad("livekit", f"no answer within {LIVEKIT_SECONDS:.0f} s")


async def _clock(settings: Settings) -> Finding:
    import aiohttp

    url = (settings.livekit_url or "").replace("ws", "http", 1)
    try:
        limit = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(timeout=limit) as http, http.get(url) as answer:
            stamp = answer.headers.get("date")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        words = str(error) or "no answer"
        return bad("livekit server", f"{url} does not answer ({words}): is LIVEKIT_URL right?")
    if stamp is None:
        return doubtful("clock", "LiveKit does not tell its time")
    apart = time.time() - parsedate_to_datetime(stamp).timestamp()
    if abs(apart) > CLOCK_SECONDS:
        return bad(
            "clock",
            f"this machine's clock is {apart:+.0f} s off LiveKit's, which refuses its tokens: "
            "synchronise both (timedatectl set-ntp true)",
        )
    return good("clock", f"within {abs(apart) + 1:.0f} s of LiveKit's")
