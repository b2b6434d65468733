"""Topic `veldt.status`: server → client, reliable."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from admission.session import EndReason, State
from server.protocol.base import PROTOCOL_VERSION, Count, Uint32, Uint64, WireModel


class HelloStatus(WireModel):
    """Sent to everybody who joins."""

    type: Literal["hello"] = "hello"
    version: int = PROTOCOL_VERSION
    world: str
    session: str
    epoch: Count
    fps: float
    frames_per_chunk: Count


class Ack(WireModel):
    """A command has taken effect."""

    type: Literal["ack"] = "ack"
    id: str
    epoch: Count


class StateStatus(WireModel):
    """The session's state has changed, or its picture stands for a reason."""

    type: Literal["state"] = "state"
    state: State
    reason: EndReason | None = None
    paused: bool = False
    stage: str | None = None  # while starting: what is being prepared, in words


class Lease(WireModel):
    """Where this session stands among those that share the worker; sent when it changes."""

    type: Literal["lease"] = "lease"
    position: Count  # 0 = holds it
    players: Count


class Chunk(WireModel):
    """One chunk has been decoded."""

    type: Literal["chunk"] = "chunk"
    epoch: Count
    index: Count
    receipt: Uint64
    frame_count: Count
    compute_ms: float  # control bound → last frame decoded
    real_time_factor: float  # p95 chunk period, as published / media duration; 0: not known yet


class FrameReceipt(WireModel):
    """Which control state a published frame shows."""

    pts: Uint32  # 90 kHz, as in RTP, before the sender's random offset
    frame_id: Uint64
    receipt: Uint64


class Frames(WireModel):
    """Receipts of frames just published, where the transport cannot carry them itself."""

    type: Literal["frames"] = "frames"
    frames: tuple[FrameReceipt, ...] = Field(min_length=1, max_length=64)


class Error(WireModel):
    """Something the receiver sent was refused; nothing has changed."""

    type: Literal["error"] = "error"
    code: str
    message: str
    id: str | None = None
    count: Count = 1  # how many alike were coalesced into this one


StatusMessage = Annotated[
    HelloStatus | Ack | StateStatus | Lease | Chunk | Frames | Error, Field(discriminator="type")
]
STATUS: TypeAdapter[StatusMessage] = TypeAdapter(StatusMessage)
