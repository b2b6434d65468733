"""The port that the front door listens on: taken before anything is loaded, or refused in words."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

BACKLOG: Final = 512
_LISTEN: Final = "0A"  # TCP_LISTEN in /proc/net/tcp

Address = IPv4Address | IPv6Address


class PortUnavailable(Exception):
    """It cannot listen there; one sentence with the cure."""

    code = "port_unavailable"


def listen(host: Address, port: int) -> socket.socket:
    """A socket that listens on `host` and `port` (0 = any free one), from now on.

    The other IP version's counterpart must be free too: `localhost` means both, and a browser
    that tries the other one first would meet somebody else.

    Raises:
        PortUnavailable: It is taken (by whom, if that can be known) or forbidden.
    """
    try:
        if port != 0 and (twin := _twin(host)) is not None:
            _probe(twin, port)
        return _bound(host, port)
    except OSError as error:
        raise PortUnavailable(_sentence(error, host, port)) from error


def _bound(host: Address, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET if host.version == 4 else socket.AF_INET6)
    try:
        if os.name == "posix":  # elsewhere it would let two listen on one port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((str(host), port))
        # Two sockets may be bound to one port as long as none of them listens.
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _twin(host: Address) -> Address | None:
    if host.is_loopback:
        return IPv6Address("::1") if host.version == 4 else IPv4Address("127.0.0.1")
    if host == IPv4Address("0.0.0.0"):
        return IPv6Address("::")
    return None


def _probe(host: Address, port: int) -> None:
    """Raise OSError if somebody listens there; a machine without that IP version is fine."""
    family = socket.AF_INET if host.version == 4 else socket.AF_INET6
    try:
        probe = socket.socket(family)
    except OSError:
        return
    with probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host.version == 6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((str(host), port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise


def _sentence(error: OSError, host: Address, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        holder = _holder(port)
        by = f" by {holder}" if holder else ""
        return f"port {port} is taken{by}; choose another one with --port or VELDT_PORT"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"port {port} is not allowed for this user (below 1024?); "
            "choose another one with --port or VELDT_PORT"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine; choose another one with --host or VELDT_HOST"
    return f"cannot listen on {host} port {port}: {error.strerror}; see --host and --port"


def _holder(port: int, proc: Path = Path("/proc")) -> str | None:
    """Who listens on `port`, as far as Linux tells this user: name and process id."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    if not inodes:
        return None
    for process in proc.glob("[0-9]*"):
        with suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                if os.readlink(descriptor) in inodes:
                    name = (process / "comm").read_text().strip()
                    return f"{name} (process {process.name})"
    return None
