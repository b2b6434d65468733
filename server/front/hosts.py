"""Which names this service answers to. Pure.

A page of another site can reach a loopback service by a name that it points at 127.0.0.1 (DNS
rebinding); the browser then sends that name as Host. An IP address as Host cannot be rebound, so
addresses are judged by what they are and names only by the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

_AUTHORITY: Final = re.compile(
    rb"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?\Z"
)
_DEFAULT_PORT: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Authority:
    """A parsed `host[:port]`."""

    host: str  # lower case, without brackets
    port: int | None

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The IP address it is, if it is one."""
        try:
            found = ip_address(self.host)
        except ValueError:
            return None
        return getattr(found, "ipv4_mapped", None) or found


def parse_authority(raw: bytes) -> Authority | None:
    """`host[:port]` as in a Host header; None if it is anything else (user info, two names, …)."""
    found = _AUTHORITY.match(raw.strip(b" \t"))
    if found is None:
        return None
    port = int(found["port"]) if found["port"] else None
    if port is not None and port > 65535:
        return None
    bracketed = found["host"].startswith(b"[")
    authority = Authority(found["host"].strip(b"[]").decode("ascii").lower(), port)
    if bracketed and not isinstance(_literal(authority.host), IPv6Address):
        return None
    return authority


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True)
class HostRule:
    """Who may be named in Host.

    Attributes:
        loopback: bound to loopback: only loopback addresses; else any address.
        names: further names, in lower case, such as the public one behind a proxy.
    """

    loopback: bool
    names: tuple[str, ...]

    @classmethod
    def of(cls, *, loopback: bool, names: Iterable[str]) -> HostRule:
        """A rule with names in any case."""
        return cls(loopback, tuple(name.lower() for name in names))

    def allows(self, raw: bytes) -> bool:
        """Whether this Host is one of ours."""
        authority = parse_authority(raw)
        return authority is not None and self.allows_authority(authority)

    def allows_authority(self, authority: Authority) -> bool:
        """Whether this authority is one of ours."""
        address = authority.address
        if address is not None:
            return address.is_loopback or not self.loopback or authority.host in self.names
        return authority.host == "localhost" or authority.host in self.names


def same_origin(origin: bytes, host: Authority) -> bool:
    """Whether an Origin header names the authority that was asked, default ports filled in."""
    try:
        parts = urlsplit(origin.decode("ascii"))
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORT or parts.path or parts.query or parts.fragment:
        return False
    named = parse_authority(parts.netloc.encode("ascii"))
    if named is None or named.host != host.host:
        return False
    default = _DEFAULT_PORT[parts.scheme]
    return (named.port or default) == (host.port or default)
