"""Names inside LiveKit: rooms, and who is in them. Shared by workers and the front door; pure.

A room belongs to one session and its name says so, together with the service that owns it: several
services may share one LiveKit, and each cleans up after itself only.
"""

from __future__ import annotations

from typing import Final

WORKER: Final = "worker"
PLAYER_PREFIX: Final = "player-"
SPECTATOR_PREFIX: Final = "spectator-"


def room_name(prefix: str, session: str) -> str:
    """The room of a session."""
    return f"{prefix}.{session}"


def session_of(prefix: str, room: str) -> str | None:
    """Whose room that is; None for a room of somebody else.

    >>> session_of("veldt-1a", room_name("veldt-1a", "s1")), session_of("veldt-1", "veldt-1a.s1")
    ('s1', None)
    """
    owner, dot, session = room.partition(".")
    return session if dot and session and owner == prefix else None
