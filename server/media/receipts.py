"""Receipts and publish times as numbers on the wire (DESIGN §9.3).

A receipt says which control state a frame shows: u64 = connection nonce << 32 | seq, 0 = none. A
publish time is counted in 90 kHz ticks modulo 2**32, as RTP counts, and never goes back.
"""

from __future__ import annotations

from typing import Final, NamedTuple

CLOCK_RATE: Final = 90_000  # ticks a second
WRAP: Final = 1 << 32
NO_RECEIPT: Final = 0


class Receipt(NamedTuple):
    """The two halves of a receipt."""

    nonce: int  # of the connection; 0 = none
    seq: int  # of the control state


def pack_receipt(nonce: int, seq: int) -> int:
    """The u64 of a connection's control state; both halves are 32 bit."""
    if not (0 <= nonce < WRAP and 0 <= seq < WRAP):
        raise ValueError(f"nonce {nonce} and seq {seq} have to fit 32 bits each")
    return nonce << 32 | seq


def unpack_receipt(receipt: int) -> Receipt:
    """The halves of a u64 receipt."""
    if not 0 <= receipt < 1 << 64:
        raise ValueError(f"receipt {receipt} does not fit 64 bits")
    return Receipt(receipt >> 32, receipt % WRAP)


def pts_difference(later: int, earlier: int) -> int:
    """Signed ticks from `earlier` to `later`, for times less than 2**31 ticks (6.6 h) apart."""
    return (later - earlier + WRAP // 2) % WRAP - WRAP // 2


class PtsClock:
    """Publish times of one track: strictly growing 90 kHz ticks modulo 2**32.

    Two frames never share a tick, because receivers take frames by it.
    """

    def __init__(self, origin: float) -> None:
        """Count from `origin`, in monotonic seconds."""
        self._origin = origin
        self._last = -1

    def ticks(self, now: float) -> int:
        """The publish time of a frame that is published at `now`: unwrapped, for `pts % 2**32`."""
        self._last = max(self._last + 1, round((now - self._origin) * CLOCK_RATE))
        return self._last

    def pts(self, now: float) -> int:
        """The publish time of a frame that is published at `now`, as RTP carries it."""
        return self.ticks(now) % WRAP
