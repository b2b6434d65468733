"""Row K1: a port that is taken or forbidden is said at once, with the cure."""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import ip_address

import pytest

from server.front import ports
from server.front.ports import PortUnavailable, listen

V4, V6 = ip_address("127.0.0.1"), ip_address("::1")


def occupied(family: int, host: str) -> socket.socket:
    taken = socket.socket(family)
    if family == socket.AF_INET6:
        taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    taken.bind((host, 0))
    taken.listen()
    return taken


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def test_a_free_port_is_listened_on_at_once() -> None:
    with listen(V4, 0) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            pass
        with pytest.raises(PortUnavailable):
            listen(V4, port)


def test_a_taken_port_is_named_with_its_holder_and_the_option() -> None:
    with occupied(socket.AF_INET, "127.0.0.1") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortUnavailable) as caught:
            listen(V4, port)
    sentence = str(caught.value)
    assert str(port) in sentence
    assert "--port" in sentence
    if os.path.isdir("/proc/self"):
        assert f"process {os.getpid()}" in sentence


@needs_ipv6
def test_a_port_that_is_taken_on_the_other_ip_version_is_taken() -> None:
    for family, taken_host, asked in (
        (socket.AF_INET6, "::1", V4),
        (socket.AF_INET, "127.0.0.1", V6),
    ):
        with (
            occupied(family, taken_host) as taken,
            pytest.raises(PortUnavailable, match="is taken"),
        ):
            listen(asked, taken.getsockname()[1])


def test_a_port_in_time_wait_is_free() -> None:
    with listen(V4, 0) as listening:
        address = listening.getsockname()
        client = socket.create_connection(address, timeout=2)
        listening.setblocking(True)
        server, _ = listening.accept()
        server.close()  # the side that closes first waits
        client.close()
    with listen(V4, address[1]):
        pass


def test_a_forbidden_port_is_said_in_words(monkeypatch) -> None:
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(ports, "_bound", refuse)
    with pytest.raises(PortUnavailable, match=r"80 is not allowed for this user.*--port"):
        listen(V4, 80)


def test_an_address_of_another_machine_is_said_in_words() -> None:
    with pytest.raises(PortUnavailable, match=r"192\.0\.2\.1 is no address of this machine"):
        listen(ip_address("192.0.2.1"), 0)
