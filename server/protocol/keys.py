"""Topic `veldt.keys`: the whole control state, lossy; each message replaces the one before."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from server.protocol.base import Axis, Count, KeyCode, Uint32, WireModel

AxisName = Literal["forward", "strafe", "yaw", "pitch"]


class Keys(WireModel):
    """What a player holds. Newest `seq` of the live `nonce` wins; stale ones are dropped."""

    epoch: Count  # of the session, from `ack`; presses of an older epoch are ignored
    nonce: Uint32  # this connection's, chosen by the client in `hello`
    seq: Uint32  # changes only when the state changes
    held: tuple[KeyCode, ...] = Field(max_length=16)  # KeyboardEvent.code
    presses: dict[KeyCode, Count] = Field(default={}, max_length=32)  # counters only grow
    axes: dict[AxisName, Axis] = Field(default={}, max_length=4)
