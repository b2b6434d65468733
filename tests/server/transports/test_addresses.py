from __future__ import annotations

import asyncio

import aioice.ice
import pytest

from server.transports.addresses import media_addresses
from server.transports.settings import TransportSettings


@pytest.mark.parametrize(
    ("bind", "told", "used"),
    [
        ("127.0.0.1", (), ("127.0.0.1",)),
        ("127.0.0.1", ("10.0.0.1",), ("127.0.0.1",)),
        ("localhost", (), ("127.0.0.1",)),
        ("::1", (), ("::1",)),
        ("192.0.2.7", ("10.0.0.1",), ("192.0.2.7",)),
        ("0.0.0.0", ("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "10.0.0.2")),
        ("::", ("10.0.0.1",), ("10.0.0.1",)),
        ("0.0.0.0", (), ()),
        ("veldt.example", ("10.0.0.1",), ("10.0.0.1",)),
    ],
)
def test_media_addresses_follow_the_bind(
    bind: str, told: tuple[str, ...], used: tuple[str, ...]
) -> None:
    assert TransportSettings(bind_host=bind, media_addresses=told).addresses == used


def listed() -> list[str]:
    return aioice.ice.get_host_addresses(use_ipv4=True, use_ipv6=True)


@pytest.mark.anyio
async def test_each_task_gathers_on_its_own_addresses() -> None:
    everywhere = listed()

    async def gather(address: str) -> list[str]:
        with media_addresses([address]):
            await asyncio.sleep(0)
            return await asyncio.create_task(asyncio.to_thread(listed))

    assert await asyncio.gather(gather("127.0.0.1"), gather("::1")) == [["127.0.0.1"], ["::1"]]
    assert listed() == everywhere


def test_families_are_kept_apart() -> None:
    with media_addresses(["127.0.0.1", "::1"]):
        assert aioice.ice.get_host_addresses(use_ipv4=True, use_ipv6=False) == ["127.0.0.1"]
        assert aioice.ice.get_host_addresses(use_ipv4=False, use_ipv6=True) == ["::1"]


def test_machine_without_a_network_has_its_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.transports.addresses._all_addresses", lambda *_: [])
    assert listed() == ["127.0.0.1", "::1"]
