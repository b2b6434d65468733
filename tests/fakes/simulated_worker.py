"""A worker in simulated time: the real lease, prediction and pacer around two timed stages.

Denoise is the exclusive stage, decode one shared actor behind it, in order of arrival. Nothing
here waits: `run` goes from event to event.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from admission.lease import ExecutionLease, JustInTime
from admission.load import WorkerLoad
from server.media.pacing import Pacer
from server.media.playout import PlayoutMeter

FRAMES = 4


@dataclass
class Served:
    """What one simulated session saw."""

    grants: list[float] = field(default_factory=list)
    passed_over: list[int] = field(default_factory=list)  # grants of others between want and grant
    published: list[tuple[float, int]] = field(default_factory=list)  # (when, chunk), new pictures
    late_at: list[float] = field(default_factory=list)  # a picture came after it was due
    unplayed: list[int] = field(default_factory=list)  # whole chunks waiting, at every arrival
    bind_to_show: list[float] = field(default_factory=list)  # grant → first picture published


class _Session:
    def __init__(self, name: str, fps: float, denoise: float) -> None:
        self.name = name
        self.denoise = denoise
        self.pacer = Pacer[int](fps, FRAMES)
        self.jit = JustInTime(FRAMES / fps, denoise)
        self.playout = PlayoutMeter(fps)
        self.served = Served()
        self.next_index = 0
        self.in_flight = 0
        self.want_timer = 0  # a timer of an older number is void
        self.due = 0.0
        self.wanted_at_grant = 0
        self.granted: dict[int, float] = {}
        self.due_of: dict[int, float] = {}
        self.alive = True


class SimulatedWorker:
    """Any number of sessions on one worker; `denoise` and `decode` are seconds a chunk.

    Args:
        fps: Of the world; a chunk is four pictures.
        decode: Seconds of the shared decode stage a chunk.
        jitter: Seconds by which each stage differs at most, either way.
        wake: Seconds by which a session wakes up late at most.
        seed: Of the jitter and of the wake-ups.
    """

    def __init__(
        self,
        *,
        fps: float,
        decode: float,
        jitter: float = 0.0,
        wake: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.now = 0.0
        self.lease = ExecutionLease()
        self.load = WorkerLoad("denoise", "decode")
        self.sessions: dict[str, _Session] = {}
        self.served: dict[str, Served] = {}
        self.grants: list[str] = []
        self._fps, self._decode, self._jitter, self._wake = fps, decode, jitter, wake
        self._random = Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._denoising = False
        self._decode_free_at = 0.0
        self._undecoded = 0
        self._stalls: Counter[str] = Counter()

    # -------------------------------------------------------------- the script of a test
    def at(self, when: float, do: Callable[[], None]) -> None:
        """Do something at a time."""
        heapq.heappush(self._events, (when, next(self._order), do))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= until:
            self.now, _, do = heapq.heappop(self._events)
            do()
        self.now = until

    def join(self, name: str, denoise: float) -> None:
        """A session begins to play."""
        session = self.sessions[name] = _Session(name, self._fps, denoise)
        self.served[name] = session.served
        self._want(session)
        self._publish(session)

    def stall_next(self, name: str) -> None:
        """The next chunk of `name` takes two seconds longer."""
        self._stalls[name] += 1

    def leave(self, name: str) -> None:
        """A session goes, wherever it is; its actor acknowledges when its stage is over."""
        session = self.sessions.pop(name)
        session.alive = False
        self.load.forget(name)
        self.lease.leave(name)
        if self.lease.holder != name:
            self.lease.gone(name)
        self._hand_on()

    # -------------------------------------------------------------- the worker
    def _hand_on(self) -> None:
        while (name := self.lease.grant(self._grantable)) is not None:
            self._granted(self.sessions[name])

    def _grantable(self, name: str) -> bool:
        return not self._denoising and self._undecoded <= 1 and self.sessions[name].in_flight <= 1

    def _granted(self, session: _Session) -> None:
        index, session.next_index = session.next_index, session.next_index + 1
        session.in_flight += 1
        session.granted[index] = self.now
        session.due_of[index] = session.due
        session.served.grants.append(self.now)
        session.served.passed_over.append(len(self.grants) - session.wanted_at_grant)
        self.grants.append(session.name)
        session.pacer.expect(index, FRAMES)
        session.playout.granted(0, index)
        self._denoising = True
        seconds = self._seconds(session.denoise)
        if self._stalls[session.name]:
            self._stalls[session.name] -= 1
            seconds += 2.0
        self.at(self.now + seconds, lambda: self._denoised(session, index, seconds))

    def _denoised(self, session: _Session, index: int, seconds: float) -> None:
        self._denoising = False
        if not session.alive:
            self.lease.gone(session.name)
            self._hand_on()
            return
        self.load.measured(session.name, "denoise", seconds)
        self._undecoded += 1
        decode = self._seconds(self._decode)
        self._decode_free_at = max(self.now, self._decode_free_at) + decode
        self.at(self._decode_free_at, lambda: self._decoded(session, index, decode))
        self.lease.release(session.name)
        self._schedule_want(session)
        self._hand_on()

    def _decoded(self, session: _Session, index: int, seconds: float) -> None:
        self._undecoded -= 1
        session.in_flight -= 1
        if session.alive:
            self.load.measured(session.name, "decode", seconds)
            due, granted = session.due_of.pop(index), session.granted[index]
            session.jit.measured(due, granted, self.now)
            period = self.load.period(session.name, self.sessions)
            session.pacer.set_period(period)
            restarts = session.pacer.restarts
            session.pacer.push(range(FRAMES), epoch=0, chunk=index, receipt=0, now=self.now)
            if session.pacer.restarts > restarts:
                session.served.late_at.append(self.now)
            del session.granted[index]
            session.served.bind_to_show.append(self.now - granted)
            session.served.unplayed.append(session.pacer.buffered // FRAMES)
            self._publish(session)
            self._schedule_want(session)
        self._hand_on()

    # -------------------------------------------------------------- a session
    def _schedule_want(self, session: _Session) -> None:
        """Want the next chunk when it is due; a newer schedule replaces an older one."""
        if self.lease.position(session.name) is not None:
            return
        session.want_timer += 1
        timer = session.want_timer
        period = self.load.period(session.name, self.sessions)
        due = session.jit.want_at(session.pacer.playout_end(self.now), period, self.now)

        def want() -> None:
            if session.alive and timer == session.want_timer:
                self._want(session)

        if due <= self.now:
            self._want(session)
        else:
            self.at(due + self._random.uniform(0, self._wake), want)

    def _want(self, session: _Session) -> None:
        session.due = session.jit.wanted(self.now)
        session.wanted_at_grant = len(self.grants)
        self.lease.want(session.name)
        self._hand_on()

    def _publish(self, session: _Session) -> None:
        while (frame := session.pacer.pop_due(self.now)) is not None:
            if not frame.repeated:
                session.served.published.append((self.now, frame.chunk))
                session.playout.shown(frame)
        if session.alive and (due := session.pacer.next_due(self.now)) is not None:
            self.at(max(due, self.now), lambda: self._publish_at(session, due))

    def _publish_at(self, session: _Session, due: float) -> None:
        if session.alive and session.pacer.next_due(self.now) == due:
            self._publish(session)

    def _seconds(self, mean: float) -> float:
        return max(0.0, mean + self._random.uniform(-self._jitter, self._jitter))
