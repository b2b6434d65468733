"""What the player does, from lossy messages to one immutable snapshot a chunk (DESIGN §9.2).

Pure: messages and `now` (monotonic seconds) in, snapshots out. A message on `veldt.keys` is the
whole control state, so that the newest one is all that counts; taps survive loss because their
counters only ever grow within a connection, across epochs too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pipeline.service import ControlSnapshot
from server.media.receipts import NO_RECEIPT, pack_receipt
from server.protocol.keys import Keys

HELD_EXPIRY_SECONDS: Final = 0.5
MAX_PENDING_PRESSES: Final = 32  # of one key, between two chunks; more is no player's tapping
MAX_CODES: Final = 256  # press counters kept for one connection; keyboards have fewer keys
NEVER_HELD: Final = frozenset(
    {"AltLeft", "AltRight", "MetaLeft", "MetaRight", "OSLeft", "OSRight"}
)  # the system takes their key-up: they would be stuck


class Received(StrEnum):
    """What became of a message."""

    NEWER = "newer"  # a newer control state: it is the one that counts now
    REPEATED = "repeated"  # the state that counts already; it is alive for another 500 ms
    STALE = "stale"  # an older state that came late
    FOREIGN = "foreign"  # of no live connection: before `hello`, or of one that was replaced


@dataclass(frozen=True)
class PendingControl:
    """What the next chunk would be bound to."""

    control: ControlSnapshot
    age: float | None  # seconds since the newest control state first arrived; None before the first
    fresh: bool  # whether no chunk has been bound to that state yet
    expired: bool = False  # whether something would be held if its messages had not ceased


@dataclass
class _Connection:
    """What is known of the connection that counts."""

    nonce: int
    seq: int | None = None
    seq_at: float = 0.0  # when the newest state first arrived
    heard_at: float = 0.0  # when it was last heard
    bound: bool = True  # whether a chunk has been bound to it
    let_go: bool = False  # whether a chunk has been bound to its silence
    held: frozenset[str] = frozenset()
    axes: Mapping[str, float] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)  # presses that are accounted for

    @property
    def receipt(self) -> int:
        return NO_RECEIPT if self.seq is None else pack_receipt(self.nonce, self.seq)


class ControlIntake:
    """The control state of one session, whichever connection it comes from.

    One connection counts at a time: the one whose `hello` came last. `received` counts what became
    of every message.
    """

    def __init__(self, epoch: int = 0) -> None:
        """Nobody is connected yet."""
        self.received: Counter[Received] = Counter()
        self.expiries = 0  # times that silence has let go of what was held
        self._epoch = epoch
        self._connection: _Connection | None = None
        self._presses: dict[str, int] = {}  # taps that no chunk has had yet

    @property
    def nonce(self) -> int | None:
        """Of the connection that counts."""
        return self._connection.nonce if self._connection else None

    @property
    def epoch(self) -> int:
        """Whose presses count."""
        return self._epoch

    def hello(self, nonce: int) -> bool:
        """A connection introduces itself: everything held by an earlier one is released.

        The client repeats its `hello` until it is acknowledged; a repetition changes nothing.
        Returns whether the connection is a new one.
        """
        if nonce == self.nonce:
            return False
        self._connection = _Connection(nonce)
        self._presses.clear()
        return True

    def gone(self) -> None:
        """Nobody controls any more: everything is released, and only a `hello` begins again."""
        self._connection = None
        self._presses.clear()

    def receive(self, keys: Keys, now: float) -> Received:
        """Take one message, in whatever order it came."""
        outcome = self._take(keys, now)
        self.received[outcome] += 1
        return outcome

    def snapshot(self, now: float, *, prompt: str | None = None) -> PendingControl:
        """What a chunk that is granted at `now` would be bound to. Changes nothing.

        Held keys and axes are empty after 500 ms without a message; taps wait for their chunk.
        """
        known = self._connection
        if known is None or known.seq is None:
            return PendingControl(ControlSnapshot(prompt=prompt), age=None, fresh=False)
        alive = now - known.heard_at <= HELD_EXPIRY_SECONDS
        control = ControlSnapshot(
            held=known.held if alive else frozenset(),
            presses=dict(self._presses),
            axes=dict(known.axes) if alive else {},
            prompt=prompt,
            receipt=known.receipt,
        )
        expired = not alive and bool(known.held or known.axes)
        return PendingControl(control, now - known.seq_at, not known.bound, expired)

    def consume(self, taken: PendingControl | None = None) -> None:
        """The submit was accepted: the presses of `taken` have had their chunk.

        Presses that came after `taken` was looked at wait for the next chunk; without `taken`, all
        that wait are consumed.
        """
        taken = taken or self.snapshot(0.0)
        control, known = taken.control, self._connection
        if known is not None and control.receipt == known.receipt:
            known.bound = True
            self.expiries += taken.expired and not known.let_go
            known.let_go = taken.expired
        for code, count in control.presses.items():
            left = self._presses.pop(code, 0) - count
            if left > 0:
                self._presses[code] = left

    def discard(self) -> None:
        """A chunk failed or was aborted: presses that wait are dropped, what is held stays held."""
        self._presses.clear()

    def reset(self, epoch: int) -> None:
        """The session begins again: presses of earlier epochs do not count in it."""
        self._epoch = epoch
        self.discard()

    def _take(self, keys: Keys, now: float) -> Received:
        known = self._connection
        if known is None or keys.nonce != known.nonce:
            return Received.FOREIGN
        if known.seq is not None and keys.seq == known.seq:
            known.heard_at = now
            return Received.REPEATED
        if known.seq is not None and not is_newer(keys.seq, known.seq):
            return Received.STALE
        known.seq, known.seq_at, known.heard_at, known.bound = keys.seq, now, now, False
        known.held = frozenset(keys.held) - NEVER_HELD
        known.axes = {name: value for name, value in keys.axes.items() if value}
        self._count_presses(known.counted, keys)
        return Received.NEWER

    def _count_presses(self, counted: dict[str, int], keys: Keys) -> None:
        for code, count in keys.presses.items():
            if code in NEVER_HELD or (code not in counted and len(counted) >= MAX_CODES):
                continue
            taps = count - counted.get(code, 0)
            if taps <= 0:
                continue
            counted[code] = count  # presses of an older epoch are accounted for, not applied
            if keys.epoch == self._epoch:
                waiting = self._presses.get(code, 0) + taps
                self._presses[code] = min(waiting, MAX_PENDING_PRESSES)


def is_newer(seq: int, than: int) -> bool:
    """Whether a 32-bit sequence number comes after another, across the wrap (RFC 1982)."""
    return 0 < (seq - than) % (1 << 32) < 1 << 31
