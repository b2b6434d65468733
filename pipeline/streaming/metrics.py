"""Measurements of bounded size, and what they look like when somebody asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

WINDOW: Final = 256  # samples kept of each measurement
RECENT: Final = 64  # chunks of which the period is judged: a slow start is soon forgotten
INTERVALS: Final = 128  # idle intervals kept of each stage


@dataclass(frozen=True)
class Summary:
    """A measurement in seconds: `count` and `mean` of all, the rest of the newest samples."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    peak: float = 0.0
    last: float = 0.0


class Window:
    """The newest samples of one measurement, and the sum of all.

    >>> window = Window()
    >>> for sample in (1.0, 3.0, 2.0):
    ...     window.add(sample)
    >>> window.summary().p50, window.summary().mean, window.summary().last
    (2.0, 2.0, 2.0)
    """

    __slots__ = ("count", "samples", "total")

    def __init__(self, size: int = WINDOW) -> None:
        self.samples: deque[float] = deque(maxlen=size)
        self.count = 0
        self.total = 0.0

    def add(self, sample: float) -> None:
        """Take one sample."""
        self.samples.append(sample)
        self.count += 1
        self.total += sample

    def summary(self) -> Summary:
        """What the samples say; all zero if there are none."""
        if not self.samples:
            return Summary()
        ordered = sorted(self.samples)
        return Summary(
            count=self.count,
            mean=self.total / self.count,
            p50=quantile(ordered, 0.50),
            p95=quantile(ordered, 0.95),
            peak=ordered[-1],
            last=self.samples[-1],
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of sorted samples, interpolated between neighbours.

    >>> quantile([0.0, 1.0, 2.0, 3.0], 0.5)
    1.5
    """
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class IdleReason(StrEnum):
    """Why an actor does nothing."""

    NO_SESSION = "no_session"
    NO_INPUT = "no_input"  # no session has all inputs of its next sequence
    OUTPUT_FULL = "output_full"  # inputs are there, but their outputs have no room: backpressure
    RESOURCE_GROUP = "resource_group"  # something is ready, and another stage has the right to run
    CLAIMED = "claimed"  # kept for a session that reserved the stage
    DEAD = "dead"  # the actor has ended


class IdleInterval(NamedTuple):
    """A time in which an actor did nothing, for one reason."""

    stage: str
    reason: IdleReason
    started: float
    ended: float


@dataclass(frozen=True)
class StageMetrics:
    """How far one session is at one stage: sequences that were ready, started, done."""

    input_ready: int
    admitted: int
    completed: int


@dataclass(frozen=True)
class StreamingSessionMetrics:
    """One session. Latencies start when the anchor artifact of a sequence is accepted.

    Without an anchor in the spec they start when the last artifact from outside is.
    """

    session: str
    epoch: int
    submitted: int  # sequences of this epoch whose artifacts from outside have all been accepted
    completed: int  # sequences of this epoch of which everything has left the last stage
    first_frame_latency: float | None  # of this epoch: first anchor → first thing that left
    control_to_first_output: Summary  # anchor → first thing of its sequence that left
    control_to_output: Summary  # anchor → everything of its sequence has left
    chunk_period: Summary  # between sequences that completed one after the other
    control_age_at_bind: Summary  # age of the newest control state when it was bound
    stages: Mapping[str, StageMetrics]
    slots: Mapping[str, int]  # places in use, by artifact
    stale: int  # late results of older epochs, dropped

    def compute_factor(self, chunk_seconds: float) -> float | None:
        """p95 of (control bound → last piece out) over what a chunk plays; None if not measured."""
        return _ratio(self.control_to_output, chunk_seconds)

    def real_time_factor(self, chunk_seconds: float) -> float | None:
        """p95 of the chunk period over what a chunk plays; None if not measured.

        Between completions, so that it is the speed of a stream whose chunks wait for nothing.
        """
        return _ratio(self.chunk_period, chunk_seconds)


def _ratio(measured: Summary, chunk_seconds: float) -> float | None:
    return measured.p95 / chunk_seconds if measured.count else None


@dataclass(frozen=True)
class StageDiagnostics:
    """One stage over all sessions."""

    alive: bool
    completed: int
    failed: int
    ready: int  # sessions that could run now
    run_seconds: Summary
    busy_seconds: float
    idle_seconds: Mapping[IdleReason, float]
    idle_intervals: tuple[IdleInterval, ...]  # the newest ones


@dataclass(frozen=True)
class SchedulerDiagnostics:
    """The scheduler as a whole. All counters but `sessions` and `slots_used` only grow."""

    sessions: int
    quarantined: tuple[str, ...]
    slots_used: int
    stale: int  # results of an epoch that was over
    orphaned: int  # results for a session that is gone, or from an actor that is
    duplicate: int  # results that were there already
    cleanup_failures: int  # releases that raised, or could not be asked for
    slot_leaks: int  # slots still used when a session was done; always 0
    stages: Mapping[str, StageDiagnostics]


class IdleClock:
    """Attributes the idle time of one actor to reasons, interval by interval."""

    __slots__ = ("intervals", "reason", "seconds", "since", "stage")

    def __init__(self, stage: str, now: float) -> None:
        self.stage = stage
        self.seconds = dict.fromkeys(IdleReason, 0.0)
        self.intervals: deque[IdleInterval] = deque(maxlen=INTERVALS)
        self.reason: IdleReason | None = IdleReason.NO_SESSION
        self.since = now

    def turn(self, reason: IdleReason | None, now: float) -> IdleInterval | None:
        """From now on the actor idles for `reason`, or works (None). Returns what has ended."""
        was = self.reason
        if was is reason:
            return None
        ended = None
        if was is not None and now > self.since:
            ended = IdleInterval(self.stage, was, self.since, now)
            self.seconds[was] += now - self.since
            self.intervals.append(ended)
        self.reason, self.since = reason, now
        return ended

    def totals(self, now: float) -> Mapping[IdleReason, float]:
        """Seconds by reason, up to now."""
        totals = dict(self.seconds)
        if self.reason is not None:
            totals[self.reason] += max(0.0, now - self.since)
        return totals


class SessionMeter:
    """What is measured of one session. O(sequences in flight) of memory."""

    __slots__ = (
        "_anchors",
        "_first_anchor",
        "_last_completed",
        "chunk_period",
        "control_age",
        "first_frame",
        "stale",
        "to_first_output",
        "to_output",
    )

    def __init__(self) -> None:
        self.to_first_output = Window()
        self.to_output = Window()
        self.chunk_period = Window(RECENT)
        self.control_age = Window()
        self.stale = 0
        self._anchors: dict[int, tuple[float, bool]] = {}
        self.restart()

    def restart(self) -> None:
        """A new epoch begins: nothing is in flight."""
        self._anchors.clear()
        self._first_anchor: float | None = None
        self._last_completed: float | None = None
        self.first_frame: float | None = None

    def anchored(self, sequence: int, now: float) -> None:
        """The clock of `sequence` starts."""
        self._anchors[sequence] = (now, False)
        if self._first_anchor is None:
            self._first_anchor = now

    def put_out(self, sequence: int, now: float) -> None:
        """Something of `sequence` has left the last stage."""
        anchor = self._anchors.get(sequence)
        if anchor is not None and not anchor[1]:
            self._anchors[sequence] = (anchor[0], True)
            self.to_first_output.add(now - anchor[0])
        if self.first_frame is None and self._first_anchor is not None:
            self.first_frame = now - self._first_anchor

    def completed(self, sequence: int, now: float) -> float | None:
        """Everything of `sequence` has left. Returns when its clock started."""
        if self._last_completed is not None:
            self.chunk_period.add(now - self._last_completed)
        self._last_completed = now
        anchor = self._anchors.pop(sequence, None)
        if anchor is None:
            return None
        self.to_output.add(now - anchor[0])
        return anchor[0]

    def paused(self) -> None:
        """The session chose to wait: the time until its next chunk is no chunk period."""
        self._last_completed = None
