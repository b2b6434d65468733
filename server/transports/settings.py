"""What an operator may set about the way to the players."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from server.protocol.http import IceServer
from server.transports.impairment import Impairment
from server.transports.livekit.address import LiveKitAddress


@dataclass(frozen=True)
class TransportSettings:
    """Settings of every kind of transport; each uses what concerns it.

    Attributes:
        bind_host: where HTTP listens. Media addresses follow it: a loopback host keeps media on
            that loopback address, one other address keeps it there, a wildcard opens
            `media_addresses`, or every address of the machine where those are not given.
        media_addresses: local addresses to offer on a wildcard bind.
        ice_servers: STUN and TURN servers, told to players too. None are used unless given.
        connect_seconds: how long a connection may take to come up.
        lost_seconds: how long a live player may be silent.
        bitrate: video bits per second.
        livekit: where LiveKit is, for its transport.
        impair: a bad network for `keys` messages, in tests.
    """

    bind_host: str = "127.0.0.1"
    media_addresses: tuple[str, ...] = ()
    ice_servers: tuple[IceServer, ...] = ()
    connect_seconds: float = 30.0
    lost_seconds: float = 8.0
    bitrate: int = 3_000_000
    livekit: LiveKitAddress | None = None
    impair: Impairment | None = None

    def __post_init__(self) -> None:
        """Refuse what would only be found out when a player comes."""
        for url in (url for server in self.ice_servers for url in server.urls):
            if not re.fullmatch(r"(stuns?|turns?):[^\s?:]+(:\d+)?(\?transport=(udp|tcp))?", url):
                raise ValueError(f"{url!r} is no STUN or TURN address such as stun:host:3478")

    @property
    def addresses(self) -> tuple[str, ...]:
        """Local addresses that media may use; empty = every address of the machine."""
        if self.bind_host == "localhost":
            return ("127.0.0.1",)
        try:
            host = ipaddress.ip_address(self.bind_host)
        except ValueError:
            return self.media_addresses
        return self.media_addresses if host.is_unspecified else (str(host),)
