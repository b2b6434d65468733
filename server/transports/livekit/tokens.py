"""Tokens: who may join which room, and what they may do there. Every grant is spelled out.

A token is minted when its bearer is about to use it and soon expires; LiveKit itself renews it for
those who stay. `nbf` is left out, so that clocks that differ by seconds keep nobody out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import jwt

from server.protocol.rooms import WORKER
from server.transports.livekit.address import LiveKitAddress

TTL_SECONDS: Final = 90  # one connect, and clocks that differ by half a minute


class Role(StrEnum):
    """What somebody in a room is."""

    PLAYER = "player"
    SPECTATOR = "spectator"
    WORKER = "worker"


_NOTHING: Final[Mapping[str, Any]] = {
    "roomCreate": False,
    "roomList": False,
    "roomRecord": False,
    "roomAdmin": False,
    "roomJoin": True,
    "canPublish": False,
    "canPublishData": False,
    "canPublishSources": [],
    "canSubscribe": False,
    "canUpdateOwnMetadata": False,
    "ingressAdmin": False,
    "hidden": False,
    "recorder": False,
    "agent": False,
}
GRANTS: Final[Mapping[Role, Mapping[str, Any]]] = {
    Role.PLAYER: {**_NOTHING, "canSubscribe": True, "canPublishData": True},
    Role.SPECTATOR: {**_NOTHING, "canSubscribe": True},
    Role.WORKER: {
        **_NOTHING,
        "canPublish": True,
        "canPublishSources": ["camera"],
        "canPublishData": True,
        "canSubscribe": True,  # of messages; it subscribes to no track
    },
}


def mint(
    address: LiveKitAddress,
    role: Role,
    room: str,
    identity: str,
    *,
    ttl_seconds: float = TTL_SECONDS,
    clock: Callable[[], float] = time.time,
) -> str:
    """A token with which `identity` may join `room` as `role`."""
    if not room or not identity or (role is Role.WORKER) is not (identity == WORKER):
        raise ValueError(f"{identity!r} cannot be the {role} of room {room!r}")
    claims = {
        "iss": address.api_key,
        "sub": identity,
        "exp": int(clock() + ttl_seconds),
        "kind": "agent" if role is Role.WORKER else "standard",
        "video": {**GRANTS[role], "room": room},
    }
    return jwt.encode(claims, address.api_secret, algorithm="HS256")
