"""The one seam at which local media addresses are chosen.

aioice opens a socket on every address of the machine, loopback excepted, whatever the HTTP server
is bound to. Its function that lists them is replaced here by one that obeys `media_addresses`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import aioice.ice

_allowed: ContextVar[tuple[str, ...]] = ContextVar("media_addresses", default=())
_all_addresses = aioice.ice.get_host_addresses


def _host_addresses(use_ipv4: bool, use_ipv6: bool) -> list[str]:
    allowed = _allowed.get()
    if not allowed:  # a machine without a network still has its loopback
        allowed = tuple(_all_addresses(use_ipv4, use_ipv6)) or ("127.0.0.1", "::1")
    return [address for address in allowed if (use_ipv6 if ":" in address else use_ipv4)]


aioice.ice.get_host_addresses = _host_addresses


@contextmanager
def media_addresses(addresses: Sequence[str]) -> Iterator[None]:
    """Within this block, and in tasks begun in it, media uses only these local addresses.

    None given: every address of the machine.
    """
    token = _allowed.set(tuple(addresses))
    try:
        yield
    finally:
        _allowed.reset(token)
