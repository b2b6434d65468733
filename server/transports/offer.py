"""Reads a player's SDP offer before the media stack sees it. Pure.

It is not an SDP parser: it looks for what an offer must have and names what is missing, and it
takes out what the media stack stumbles over.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from server.transports.base import BadOffer

MAX_BYTES = 65_536
MAX_LINES = 2_000
MAX_CANDIDATES = 16
_DIRECTIONS = ("a=sendrecv", "a=recvonly", "a=sendonly", "a=inactive")


def read_offer(sdp: str | None) -> str:
    """The offer as the media stack can take it; `BadOffer` says all that is wrong with it.

    Served is one video line that receives VP8 and one data channel line, bundled. Taken out are
    `a=end-of-candidates` (with it and no usable candidate, ICE fails without a word), candidates
    behind mDNS names (resolving one costs a second and a socket on all interfaces; the player's
    own checks tell where it is) and candidates that are not UDP. A direction given for the whole
    session is moved to the video line.
    """
    if sdp is None or not sdp.strip():
        raise BadOffer("the offer is empty; `sdp` must be an SDP offer")
    if len(sdp) > MAX_BYTES:
        raise BadOffer(f"the offer has more than {MAX_BYTES} bytes")
    lines = sdp.replace("\r\n", "\n").rstrip("\n").split("\n")
    if lines[0] != "v=0" or not all(line.isascii() and line.isprintable() for line in lines):
        raise BadOffer("this is not SDP: it begins with `v=0` and has printable ASCII lines")
    if len(lines) > MAX_LINES:
        raise BadOffer(f"the offer has more than {MAX_LINES} lines")
    session, *sections = _sections(lines)
    if faults := list(_faults(session, sections)):
        raise BadOffer("; ".join(faults))
    directions = [line for line in session if line in _DIRECTIONS]
    cleaned = [line for line in session if line not in _DIRECTIONS]
    for section in sections:
        cleaned += _cleaned(section)
        if section[0].startswith("m=video") and not any(a in _DIRECTIONS for a in section):
            cleaned += directions[:1] or ["a=sendrecv"]
    return "\r\n".join(cleaned) + "\r\n"


def _sections(lines: Sequence[str]) -> list[list[str]]:
    sections: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("m="):
            sections.append([])
        sections[-1].append(line)
    return sections


def _faults(session: Sequence[str], sections: Sequence[Sequence[str]]) -> Iterable[str]:
    kinds = [section[0].split(" ", 1)[0].removeprefix("m=") for section in sections]
    for kind, wanted in (("video", "one video line"), ("application", "one data channel line")):
        if kinds.count(kind) != 1:
            yield f"{wanted} is expected, {kinds.count(kind)} found"
    if others := sorted(set(kinds) - {"video", "application"}):
        yield f"nothing of kind {', '.join(others)[:40]} is served; leave it out"
    mids = []
    for kind, section in zip(kinds, sections, strict=True):
        if kind not in ("video", "application"):
            continue
        mids += [line.removeprefix("a=mid:") for line in section if line.startswith("a=mid:")]
        yield from _missing(kind, [*section, *session])
        if kind == "video":
            yield from _video_faults(section, session)
        elif "webrtc-datachannel" not in section[0]:
            yield "the data channel line must be UDP/DTLS/SCTP webrtc-datachannel"
    bundles = [line.split()[1:] for line in session if line.startswith("a=group:BUNDLE")]
    if len(set(mids)) < 2 or [sorted(mids)] != [sorted(bundle) for bundle in bundles]:
        yield "all lines must have an `a=mid` and be in one `a=group:BUNDLE`"


def _missing(kind: str, lines: Sequence[str]) -> Iterable[str]:
    for attribute in ("ice-ufrag", "ice-pwd", "fingerprint", "setup"):
        if not any(line.startswith(f"a={attribute}:") for line in lines):
            yield f"the {kind} line has no `a={attribute}`"
    setups = {line for line in lines if line.startswith("a=setup:")}
    if setups - {"a=setup:actpass"}:
        yield "an offer says `a=setup:actpass`; this one looks like an answer"


def _video_faults(section: Sequence[str], session: Sequence[str]) -> Iterable[str]:
    if not any(
        line.startswith("a=rtpmap:") and line.upper().endswith(" VP8/90000") for line in section
    ):
        yield "the video line does not offer VP8"
    if "a=rtcp-mux" not in section:
        yield "the video line has no `a=rtcp-mux`"
    given = [line for line in (*section, *session) if line in _DIRECTIONS]
    if given and given[0] in ("a=sendonly", "a=inactive"):
        yield f"the video line is {given[0].removeprefix('a=')}; it must receive (recvonly)"


def _cleaned(section: Sequence[str]) -> list[str]:
    kept, candidates = [], 0
    for line in section:
        if line.startswith("a=candidate:"):
            candidates += 1
            if candidates > MAX_CANDIDATES or not _usable(line):
                continue
        if line != "a=end-of-candidates":
            kept.append(line)
    return kept


def _usable(candidate: str) -> bool:
    fields = candidate.split()
    if len(fields) < 8 or fields[2].lower() != "udp":
        return False
    try:
        ipaddress.ip_address(fields[4])
    except ValueError:
        return False
    return True
