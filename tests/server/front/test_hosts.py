from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.front.hosts import Authority, HostRule, parse_authority, same_origin

LOOPBACK = HostRule.of(loopback=True, names=())
WIDE = HostRule.of(loopback=False, names=("Play.Example.org",))


@pytest.mark.parametrize(
    "host",
    [
        b"127.0.0.1",
        b"127.0.0.1:8000",
        b"127.9.9.9",
        b"localhost",
        b"LOCALHOST:8000",
        b"LocalHost",
        b"[::1]",
        b"[::1]:8000",
        b"[0:0:0:0:0:0:0:1]:80",
        b"[::ffff:127.0.0.1]",
    ],
)
def test_loopback_answers_to_every_spelling_of_itself(host) -> None:
    assert LOOPBACK.allows(host)
    assert WIDE.allows(host)


@pytest.mark.parametrize(
    "host",
    [
        b"evil.test",
        b"evil.test:8000",
        b"localhost.evil.test",
        b"127.0.0.1.nip.io",
        b"127.0.0.1.evil.test:8000",
        b"localhost@evil.test",
        b"localhost:80@evil.test",
        b"localhost, evil.test",
        b"localhost evil.test",
        b"localhost\x00",
        b"192.0.2.7",
        b"[2001:db8::1]",
        b"[fe80::1%25eth0]",
        b"::1",
        b"[127.0.0.1]",
        b"[::1",
        b"",
        b":8000",
        b"localhost:",
        b"localhost:99999",
        b"localhost:8000x",
        b"2130706433",
        b"0x7f.1",
        b"127.1",
        "localhost\u0131".encode(),
    ],
)
def test_loopback_answers_to_nobody_else(host) -> None:
    assert not LOOPBACK.allows(host)


def test_a_wide_bind_answers_to_addresses_and_to_the_names_it_was_told() -> None:
    assert WIDE.allows(b"192.0.2.7:8000")
    assert WIDE.allows(b"[2001:db8::1]:8000")
    assert WIDE.allows(b"play.example.ORG")
    assert not WIDE.allows(b"evil.test")
    assert not WIDE.allows(b"example.org")


@given(st.binary(max_size=60))
def test_no_bytes_break_the_parser(raw) -> None:
    found = parse_authority(raw)
    assert found is None or found.host == found.host.lower()


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        (b"http://127.0.0.1:8000", b"127.0.0.1:8000", True),
        (b"http://localhost:8000", b"LOCALHOST:8000", True),
        (b"http://[::1]:8000", b"[::1]:8000", True),
        (b"http://play.test", b"play.test:80", True),
        (b"https://play.test", b"play.test", True),  # a proxy speaks TLS in front of it
        (b"https://play.test", b"play.test:80", False),
        (b"https://play.test", b"play.test:443", True),
        (b"http://127.0.0.1:8001", b"127.0.0.1:8000", False),
        (b"http://localhost:8000", b"127.0.0.1:8000", False),
        (b"null", b"127.0.0.1:8000", False),
        (b"file://", b"127.0.0.1:8000", False),
        (b"http://127.0.0.1:8000.evil.test", b"127.0.0.1:8000", False),
        (b"http://127.0.0.1:8000@evil.test", b"127.0.0.1:8000", False),
        (b"http://[::1", b"[::1]", False),
        (b"\xff", b"127.0.0.1:8000", False),
        (b"", b"127.0.0.1:8000", False),
    ],
)
def test_an_origin_is_ours_or_not(origin, host, same) -> None:
    asked = parse_authority(host)
    assert isinstance(asked, Authority)
    assert same_origin(origin, asked) is same
