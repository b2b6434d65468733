from __future__ import annotations

import pytest

from server.transports.base import BadOffer
from server.transports.offer import MAX_CANDIDATES, read_offer

HEAD = ["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1"]
TRANSPORT = [
    "a=ice-ufrag:abcd",
    "a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa",
    "a=fingerprint:sha-256 AA:BB",
    "a=setup:actpass",
]
VIDEO = ["m=video 9 UDP/TLS/RTP/SAVPF 96", "c=IN IP4 0.0.0.0", *TRANSPORT, "a=mid:0"]
VIDEO_REST = ["a=rtcp-mux", "a=rtpmap:96 VP8/90000"]
DATA = [
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    *TRANSPORT,
    "a=mid:1",
    "a=sctp-port:5000",
]


def offer(*parts: list[str]) -> str:
    return "\r\n".join(line for part in parts for line in part) + "\r\n"


GOOD = offer(HEAD, VIDEO, VIDEO_REST, ["a=recvonly"], DATA)


def test_good_offer_passes_unchanged() -> None:
    assert read_offer(GOOD) == GOOD
    assert read_offer(GOOD.replace("\r\n", "\n")) == GOOD


@pytest.mark.parametrize(
    ("sdp", "words"),
    [
        (None, "empty"),
        ("", "empty"),
        (" \r\n ", "empty"),
        ("x" * 1_000_000, "more than 65536 bytes"),
        ("v=0\n" + "a=x\n" * 3000, "more than 2000 lines"),
        ("hello", "not SDP"),
        ("v=0\r\ns=\x00\r\n", "not SDP"),
        ("v=0\r\ns=\ud800\r\n", "not SDP"),
        ("v=0\r\n", "one video line is expected, 0 found"),
        ("v=0\r\n", "one data channel line is expected, 0 found"),
        (offer(HEAD, ["m=audio 9 UDP/TLS/RTP/SAVPF 111"]), "nothing of kind audio"),
        (offer(HEAD, VIDEO, VIDEO_REST, VIDEO, VIDEO_REST, DATA), "one video line is expected, 2"),
        (offer(HEAD, VIDEO, VIDEO_REST), "one data channel line is expected, 0 found"),
        (GOOD.replace("recvonly", "sendonly"), "it must receive"),
        (GOOD.replace("recvonly", "inactive"), "it must receive"),
        (GOOD.replace("actpass", "active"), "looks like an answer"),
        (GOOD.replace("a=setup:actpass\r\n", ""), "no `a=setup`"),
        (GOOD.replace("a=ice-ufrag:abcd\r\n", ""), "no `a=ice-ufrag`"),
        (GOOD.replace("a=ice-pwd", "a=x"), "no `a=ice-pwd`"),
        (GOOD.replace("a=fingerprint", "a=x"), "no `a=fingerprint`"),
        (GOOD.replace("VP8", "AV1"), "does not offer VP8"),
        (GOOD.replace("a=rtcp-mux\r\n", ""), "no `a=rtcp-mux`"),
        (GOOD.replace("BUNDLE 0 1", "BUNDLE 0"), "BUNDLE"),
        (GOOD.replace("a=mid:1\r\n", ""), "a=mid"),
        (GOOD.replace("a=mid:1", "a=mid:0"), "a=mid"),
        (GOOD.replace("webrtc-datachannel", "5000"), "webrtc-datachannel"),
    ],
)
def test_bad_offer_is_refused_by_name(sdp: str | None, words: str) -> None:
    with pytest.raises(BadOffer, match=words):
        read_offer(sdp)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(BadOffer) as caught:
        read_offer(GOOD.replace("VP8", "AV1").replace("a=rtcp-mux\r\n", ""))
    assert "VP8" in str(caught.value)
    assert "rtcp-mux" in str(caught.value)


@pytest.mark.parametrize("given", ["a=recvonly", "a=sendrecv"])
def test_session_level_direction_moves_to_the_video_line(given: str) -> None:
    read = read_offer(offer([*HEAD, given], VIDEO, VIDEO_REST, DATA)).split("\r\n")
    assert read.count(given) == 1
    assert read.index("m=video 9 UDP/TLS/RTP/SAVPF 96") < read.index(given)


def test_missing_direction_means_both() -> None:
    assert "a=sendrecv" in read_offer(offer(HEAD, VIDEO, VIDEO_REST, DATA))


def test_what_the_media_stack_stumbles_over_is_taken_out() -> None:
    bad = [
        "a=candidate:1 1 udp 1 4b0c40c9-7fa8-4716-abaa-0e1c15d01be2.local 3 typ host",
        "a=candidate:1 1 tcp 1 127.0.0.1 9 typ host tcptype active",
        "a=candidate:1 1 udp",
        "a=end-of-candidates",
    ]
    good = ["a=candidate:1 1 UDP 1 127.0.0.1 3 typ host", "a=candidate:2 1 udp 1 ::1 3 typ host"]
    assert read_offer(offer(HEAD, VIDEO, bad, good, VIDEO_REST, ["a=recvonly"], DATA)) == offer(
        HEAD, VIDEO, good, VIDEO_REST, ["a=recvonly"], DATA
    )


def test_candidates_are_bounded() -> None:
    many = [f"a=candidate:1 1 udp 1 10.0.0.{n} 3 typ host" for n in range(200)]
    read = read_offer(offer(HEAD, VIDEO, many, VIDEO_REST, DATA))
    assert read.count("a=candidate") == MAX_CANDIDATES
