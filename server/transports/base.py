"""The contract between a session's runtime and the way to its players.

Two small protocols, each pointing one way: `MediaTransport` (commands down) and `TransportSink`
(facts up). One transport lives as long as its session, across any number of reconnects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol

import numpy as np
from numpy.typing import NDArray

from server.protocol.status import StatusMessage

Identity = NewType("Identity", str)  # stamped by the transport, never by the sender; "" = unknown


class Topic(StrEnum):
    """Data channels; LiveKit topics carry the same names."""

    KEYS = "veldt.keys"
    COMMAND = "veldt.command"
    STATUS = "veldt.status"


class LeaveReason(StrEnum):
    """Why a connection is gone."""

    CLOSED = "closed"  # the other side said goodbye
    LOST = "lost"  # nothing was heard for too long
    REPLACED = "replaced"  # a newer connection of the same session is up
    FAILED = "failed"  # it never came up


@dataclass(frozen=True)
class I420Frame:
    """One picture, ready for an encoder: planar YUV 4:2:0 in one contiguous buffer.

    data uint8 [height * 3 / 2, width]: Y rows, then U and V, as `av.VideoFrame.from_ndarray` with
    format "yuv420p" takes it. width and height are even.
    """

    data: NDArray[np.uint8]
    width: int
    height: int
    frame_id: int  # grows by one per new picture of a session; a repeated picture keeps its id
    receipt: int  # connection nonce << 32 | seq; 0 = none


@dataclass(frozen=True)
class ConnectOffer:
    """What a player brings to `MediaTransport.connect`."""

    sdp: str | None = None
    take_over: bool = False
    frame_metadata: bool = (
        True  # whether it can read what frames carry; else it is told by `frames`
    )


@dataclass(frozen=True)
class ConnectAnswer:
    """What the player needs to join: an SDP answer, or where and with what token to go."""

    transport: str  # "webrtc", "livekit", "memory"
    details: Mapping[str, str | Sequence[Mapping[str, object]]]


class TransportSink(Protocol):
    """What a session's runtime hears. Called on the event loop; must return at once."""

    def joined(self, who: Identity) -> None:
        """Media and data channels of `who` are up; an older connection is already replaced."""
        ...

    def received(self, who: Identity, topic: Topic, payload: bytes) -> None:
        """Bytes from `who`, at most 8 KiB and at a bounded rate; more is counted and dropped."""
        ...

    def left(self, who: Identity, reason: LeaveReason) -> None:
        """`who` is gone; said exactly once per `joined` or failed connect."""
        ...


class MediaTransport(Protocol):
    """One session's way to its players. A send never blocks: False means dropped, and counted."""

    async def connect(self, offer: ConnectOffer) -> ConnectAnswer:
        """Answer a player's offer. The newer connection replaces the older one once it is up.

        Raises `TransportError` subclasses: `BadOffer` (says what is missing), `PlayingElsewhere`
        (a live connection exists and `take_over` is false).
        """
        ...

    def send_frame(self, frame: I420Frame) -> bool:
        """Publish one picture now; the latest one wins where the transport is behind."""
        ...

    def send_message(self, message: StatusMessage, to: Identity | None = None) -> bool:
        """Send a status message to one player or to all."""
        ...

    async def invite(self) -> ConnectAnswer:
        """Where a spectator may join: it sees and hears all, and is heard only once it is granted.

        Raises `NoSpectators` where the transport has none, and what `connect` raises.
        """
        ...

    def hand_over(self, by: Identity, to: Identity) -> bool:
        """`by` gives the controls to a spectator, or takes them back by naming itself.

        Whoever gets them is told to the sink as `joined`. False where `by` may not, or where
        nobody of that name watches.
        """
        ...

    def doubt(self) -> None:
        """Somebody outside believes that those who are here are gone: find out, soon.

        Whoever is gone is told to the sink as `left`. Nothing to do where connections end here.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; idempotent; the sink is silent once it has returned."""
        ...


class TransportError(Exception):
    """A connection cannot be made; carries a stable code."""

    code = "transport_error"


class BadOffer(TransportError):
    """The offer is not one that this transport can answer."""

    code = "bad_offer"


class PlayingElsewhere(TransportError):
    """Another live connection plays this session."""

    code = "playing_elsewhere"


class NoSpectators(TransportError):
    """This way to the players leads to one page only."""

    code = "no_spectators"

    def __init__(self) -> None:
        """Say what helps."""
        super().__init__("spectators can only watch where players are reached through LiveKit")


class TooManySpectators(TransportError):
    """As many watch this session as may."""

    code = "too_many_spectators"


class NoMediaAddress(TransportError):
    """None of the addresses that media may use could be opened."""

    code = "no_media_address"


class MediaServerUnreachable(TransportError):
    """The server between worker and players does not answer, or refuses."""

    code = "media_server_unreachable"


class TransportClosed(TransportError):
    """The session's transport has been closed."""

    code = "transport_closed"
