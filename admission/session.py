"""The life of one session: its states, what moves it, and the deadlines that move it by themselves.

All that moves a session's state lives here; this file does not know who asks, over what wire, or
on which worker the session runs. Time comes in as `now` (monotonic seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a session is."""

    QUEUED = "queued"
    ADMITTED = "admitted"  # a seat is kept for it; nothing is built yet
    CONNECTING = "connecting"  # a player is joining
    STARTING = "starting"  # model state is being built
    RUNNING = "running"
    SUSPENDED = "suspended"  # paused, or nobody is connected
    DRAINING = "draining"  # model state is being released
    CLOSED = "closed"
    FAILED = "failed"
    EXPIRED = "expired"


class EndReason(StrEnum):
    """Why a session ended; a closed list, part of the protocol."""

    LEFT = "left"  # the player closed it
    STOPPED = "stopped"  # the player's `stop` command
    KICKED = "kicked"  # by an operator
    SHUTDOWN = "shutdown"  # the service stops
    CLAIM_MISSED = "claim_missed"
    QUEUE_ABANDONED = "queue_abandoned"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_FAILED = "connect_failed"
    DISCONNECTED = "disconnected"  # nobody came back within the grace
    IDLE = "idle"
    TIME_LIMIT = "time_limit"
    WORKER_DIED = "worker_died"
    WORLD_FAILED = "world_failed"


class Cause(StrEnum):
    """What moves a session."""

    PROMOTED = "promoted"
    CLAIMED = "claimed"
    CLAIM_MISSED = "claim_missed"
    CLAIM_MISSED_TWICE = "claim_missed_twice"
    CONNECTED = "connected"
    STARTED = "started"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    ENDING = "ending"  # with an EndReason; leads to draining where there is state to release
    RELEASED = "released"  # the worker acknowledged; which end it is follows from the reason


TERMINAL: Final = frozenset({State.CLOSED, State.FAILED, State.EXPIRED})
END_STATE: Final[Mapping[EndReason, State]] = {
    EndReason.LEFT: State.CLOSED,
    EndReason.STOPPED: State.CLOSED,
    EndReason.KICKED: State.CLOSED,
    EndReason.SHUTDOWN: State.CLOSED,
    EndReason.CLAIM_MISSED: State.EXPIRED,
    EndReason.QUEUE_ABANDONED: State.EXPIRED,
    EndReason.CONNECT_TIMEOUT: State.FAILED,
    EndReason.CONNECT_FAILED: State.FAILED,
    EndReason.DISCONNECTED: State.EXPIRED,
    EndReason.IDLE: State.EXPIRED,
    EndReason.TIME_LIMIT: State.EXPIRED,
    EndReason.WORKER_DIED: State.FAILED,
    EndReason.WORLD_FAILED: State.FAILED,
}
