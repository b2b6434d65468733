"""The life of one session: its states, what moves it, and the deadlines that move it by themselves.

All that moves a session's state lives here; this file does not know who asks, over what wire, or
on which worker the session runs. Time comes in as `now` (monotonic seconds).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    CONNECTED = (
        "connected"  # a player's media and data channels are up, for the first time or again
    )
    STARTED = "started"  # the first frame of a new start is out
    LOST = "lost"  # no player is connected any more
    PAUSED = "paused"  # by the player's command
    RESUMED = "resumed"  # by the player's command
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


class Rule(StrEnum):
    """Targets of the table that depend on one more fact than state and cause."""

    PLAY = "play"  # running, or suspended while the player's pause or an empty room holds it
    DRAIN = "drain"  # draining; a dead worker holds nothing, so then the end itself
    END = "end"  # the end that belongs to the reason: END_STATE


TRANSITIONS: Final[Mapping[tuple[State, Cause], State | Rule]] = {
    (State.QUEUED, Cause.PROMOTED): State.ADMITTED,
    (State.QUEUED, Cause.ENDING): Rule.END,
    (State.ADMITTED, Cause.CLAIMED): State.CONNECTING,
    (State.ADMITTED, Cause.CLAIM_MISSED): State.QUEUED,  # one place down; no model state yet
    (State.ADMITTED, Cause.CLAIM_MISSED_TWICE): State.EXPIRED,
    (State.ADMITTED, Cause.ENDING): Rule.END,
    (State.CONNECTING, Cause.CONNECTED): State.STARTING,
    (State.CONNECTING, Cause.LOST): State.CONNECTING,  # an attempt failed; the limit runs on
    (State.CONNECTING, Cause.ENDING): Rule.DRAIN,
    (State.STARTING, Cause.STARTED): Rule.PLAY,
    (State.STARTING, Cause.CONNECTED): State.STARTING,
    (State.STARTING, Cause.LOST): State.STARTING,
    (State.STARTING, Cause.PAUSED): State.STARTING,
    (State.STARTING, Cause.RESUMED): State.STARTING,
    (State.STARTING, Cause.ENDING): Rule.DRAIN,
    (State.RUNNING, Cause.STARTED): State.RUNNING,  # after a reset or a reconnect
    (State.RUNNING, Cause.CONNECTED): State.RUNNING,  # a second tab takes over
    (State.RUNNING, Cause.LOST): State.SUSPENDED,
    (State.RUNNING, Cause.PAUSED): State.SUSPENDED,
    (State.RUNNING, Cause.RESUMED): State.RUNNING,
    (State.RUNNING, Cause.ENDING): Rule.DRAIN,
    (State.SUSPENDED, Cause.STARTED): State.SUSPENDED,  # a frame that was on its way
    (State.SUSPENDED, Cause.CONNECTED): Rule.PLAY,
    (State.SUSPENDED, Cause.LOST): State.SUSPENDED,
    (State.SUSPENDED, Cause.PAUSED): State.SUSPENDED,
    (State.SUSPENDED, Cause.RESUMED): Rule.PLAY,
    (State.SUSPENDED, Cause.ENDING): Rule.DRAIN,
    # The worker's facts cross with the request to close: they are late, not wrong.
    (State.DRAINING, Cause.CONNECTED): State.DRAINING,
    (State.DRAINING, Cause.STARTED): State.DRAINING,
    (State.DRAINING, Cause.LOST): State.DRAINING,
    (State.DRAINING, Cause.PAUSED): State.DRAINING,
    (State.DRAINING, Cause.RESUMED): State.DRAINING,
    (State.DRAINING, Cause.ENDING): Rule.DRAIN,  # the first reason stands
    (State.DRAINING, Cause.RELEASED): Rule.END,
}


class IllegalTransition(Exception):
    """A cause that a session in this state cannot have: the caller's fault, never a player's."""

    code = "illegal_transition"

    def __init__(self, state: State, cause: Cause) -> None:
        """Keep the pair that the table does not know."""
        super().__init__(f"a session that is {state} cannot be {cause}")
        self.state, self.cause = state, cause


@dataclass(frozen=True)
class Transition:
    """One step that was taken. `source` and `target` are equal where only a fact changed."""

    source: State
    target: State
    cause: Cause
    now: float
    reason: EndReason | None = None  # once the session is ending

    @property
    def changed(self) -> bool:
        """Whether the state is another one now."""
        return self.source is not self.target


@dataclass(frozen=True)
class Overdue:
    """A deadline that has passed: what to `take` now."""

    cause: Cause
    reason: EndReason | None = None


@dataclass(frozen=True)
class Limits:
    """How long a session may be in what, in seconds."""

    claim: float = 20.0  # admitted, and nobody has come for the seat
    connect: float = 30.0  # connecting
    max_session: float = 1800.0  # since it first ran
    idle: float = 300.0  # since the player last gave input
    paused: float = 600.0  # the same while it is paused; no less than `idle`
    disconnect_grace: float = 30.0  # while nobody is connected
    claims: int = 1  # seats it is offered before it expires; 2 where there is a queue to return to


def target_of(
    state: State, cause: Cause, *, reason: EndReason | None = None, held: bool = False
) -> State:
    """Where `cause` leads from `state`, or IllegalTransition.

    Args:
        state: Where the session is.
        cause: What moves it.
        reason: Why it is ending; needed where the table says `Rule.DRAIN` or `Rule.END`.
        held: Whether the player's pause or an empty room keeps it from running.
    """
    target = TRANSITIONS.get((state, cause))
    if target is None:
        raise IllegalTransition(state, cause)
    if target is Rule.PLAY:
        return State.SUSPENDED if held else State.RUNNING
    if isinstance(target, State):
        return target
    if reason is None:
        raise ValueError(f"{cause} from {state} needs a reason")
    if target is Rule.END or reason is EndReason.WORKER_DIED:
        return END_STATE[reason]
    return State.DRAINING


class SessionLife:
    """One session on its way through the table, and the deadlines that wait for it there.

    `paused` (by the player) and `lost` (nobody is connected) are independent facts: the session is
    suspended while either holds, and running again only when both are over.
    """

    def __init__(self, limits: Limits, now: float, state: State = State.ADMITTED) -> None:
        """Begin at `now` in `state`: queued, or admitted at once."""
        if state not in (State.QUEUED, State.ADMITTED):
            raise ValueError(f"a session begins queued or admitted, not {state}")
        self._limits = limits
        self._state: State = state
        self._since = now  # when the state was entered
        self._reason: EndReason | None = None
        self._paused = False
        self._lost_at: float | None = None
        self._active_at = now
        self._first_ran_at: float | None = None
        self._played = 0.0  # seconds in earlier stretches of RUNNING
        self._claims_missed = 0

    @property
    def state(self) -> State:
        """Where it is."""
        return self._state

    @property
    def reason(self) -> EndReason | None:
        """Why it is ending or has ended; None before."""
        return self._reason

    @property
    def paused(self) -> bool:
        """Whether the player has paused it."""
        return self._paused

    @property
    def lost(self) -> bool:
        """Whether nobody is connected any more."""
        return self._lost_at is not None

    @property
    def played(self) -> bool:
        """Whether somebody is connected to it, as far as is known."""
        return self._state in _ON_THE_WORKER and not self.lost

    @property
    def ended(self) -> bool:
        """Whether it is over and holds nothing."""
        return self._state in TERMINAL

    def take(self, cause: Cause, now: float, reason: EndReason | None = None) -> Transition:
        """Move by `cause`, or IllegalTransition and nothing has changed.

        Args:
            cause: What has happened.
            now: Monotonic seconds, not before the last call's.
            reason: For ENDING; while it is draining already the first reason stands, except that
                a worker's death ends it as failed.
        """
        reason = self._reason_of(cause, reason)
        paused = _after(cause, self._paused, Cause.PAUSED, Cause.RESUMED)
        lost = _after(cause, self.lost, Cause.LOST, Cause.CONNECTED)
        source = self._state
        target = target_of(source, cause, reason=reason, held=paused or lost)
        self._reason = reason
        self._paused = paused
        if not lost:
            self._lost_at = None
        elif self._lost_at is None:
            self._lost_at = now
        if cause in _PLAYERS_DOING:
            self._active_at = now
        if cause is Cause.CLAIM_MISSED:
            self._claims_missed += 1
        if source is not target:
            self._enter(target, now)
        return Transition(source, target, cause, now, reason)

    def active(self, now: float) -> None:
        """The player has given input."""
        self._active_at = max(self._active_at, now)

    def next_deadline(self) -> float | None:
        """When `due` will have something to say, if nothing happens before; None for never."""
        return min((at for at, _ in self._deadlines()), default=None)

    def due(self, now: float) -> Overdue | None:
        """The deadline that passed first, or None."""
        at, overdue = min(self._deadlines(), key=lambda pair: pair[0], default=(now, None))
        return overdue if at <= now else None

    def played_seconds(self, now: float) -> float:
        """How long it has been running so far, without the time it was suspended."""
        running = now - self._since if self._state is State.RUNNING else 0.0
        return self._played + max(0.0, running)

    def _reason_of(self, cause: Cause, given: EndReason | None) -> EndReason | None:
        if cause is Cause.CLAIM_MISSED_TWICE:
            return EndReason.CLAIM_MISSED
        if cause is not Cause.ENDING:
            return self._reason
        if self._state is State.DRAINING and given is not EndReason.WORKER_DIED:
            return self._reason
        return given

    def _enter(self, target: State, now: float) -> None:
        if self._state is State.RUNNING:
            self._played += max(0.0, now - self._since)
        if target is State.RUNNING and self._first_ran_at is None:
            self._first_ran_at = now
        self._state, self._since = target, now

    def _deadlines(self) -> Iterator[tuple[float, Overdue]]:
        """Every deadline that runs in this state, and what it leads to."""
        limits = self._limits
        if self._state is State.ADMITTED:
            last = self._claims_missed + 1 >= limits.claims
            yield (
                self._since + limits.claim,
                Overdue(Cause.CLAIM_MISSED_TWICE, EndReason.CLAIM_MISSED)
                if last
                else Overdue(Cause.CLAIM_MISSED),
            )
        if self._state is State.CONNECTING:
            yield self._since + limits.connect, _ending(EndReason.CONNECT_TIMEOUT)
        if self._state not in _ON_THE_WORKER:
            return
        if self._lost_at is not None:
            yield self._lost_at + limits.disconnect_grace, _ending(EndReason.DISCONNECTED)
        elif self._state is not State.STARTING or self._paused:
            away = max(limits.idle, limits.paused) if self._paused else limits.idle
            yield self._active_at + away, _ending(EndReason.IDLE)
        if self._first_ran_at is not None:
            yield self._first_ran_at + limits.max_session, _ending(EndReason.TIME_LIMIT)


_ON_THE_WORKER: Final = frozenset({State.STARTING, State.RUNNING, State.SUSPENDED})
_PLAYERS_DOING: Final = frozenset({Cause.CONNECTED, Cause.STARTED, Cause.PAUSED, Cause.RESUMED})


def _after(cause: Cause, fact: bool, begins: Cause, ends: Cause) -> bool:
    """Whether a fact holds after `cause`."""
    return cause is begins or (fact and cause is not ends)


def _ending(reason: EndReason) -> Overdue:
    return Overdue(Cause.ENDING, reason)
