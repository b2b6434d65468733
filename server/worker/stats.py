"""The worker's numbers, pushed once a second. Counters never fall while the worker lives."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from pipeline.streaming.metrics import SchedulerDiagnostics
from server.looplag import LoopLag
from server.protocol.worker import Sample, Stats
from server.worker.loaded import LoadedWorker
from server.worker.session import SessionRuntime
from server.worker.watch import WatchedExecutor


class Tally:
    """Counters of sessions, those that are gone included."""

    def __init__(self) -> None:
        self._gone: Counter[str] = Counter()

    def gone(self, session: SessionRuntime) -> None:
        """A session is forgotten; what it counted stays."""
        self._gone.update({name: int(value) for name, value in session.figures.items()})

    def total(self, sessions: Iterable[SessionRuntime]) -> Counter[str]:
        """Everything that was ever counted."""
        total = Counter(self._gone)
        for session in sessions:
            total.update({name: int(value) for name, value in session.figures.items()})
        return total


def worker_stats(
    loaded: LoadedWorker,
    sessions: Collection[SessionRuntime],
    tally: Tally,
    executors: Mapping[str, WatchedExecutor],
    lag: LoopLag,
    seats: int,
) -> Stats:
    """One push. `_total` names are counters, the rest gauges."""
    samples = [
        Sample(name="veldt_worker_seats", value=seats),
        Sample(name="veldt_worker_sessions", value=len(sessions)),
        Sample(name="veldt_worker_sessions_playing", value=len(loaded.playing())),
        Sample(name="veldt_worker_loop_lag_p99_seconds", value=lag.quantile(0.99)),
        Sample(name="veldt_worker_lease_grants_total", value=loaded.lease.grants),
        Sample(name="veldt_worker_tasks", value=len(asyncio.all_tasks())),
        Sample(name="veldt_worker_undecoded_chunks", value=loaded.undecoded.count),
    ]
    samples += _pipeline(loaded.orchestrator.diagnostics())
    states = Counter(session.state.value for session in sessions)
    samples += [
        Sample(name="veldt_worker_sessions_by_state", labels={"state": state}, value=count)
        for state, count in sorted(states.items())
    ]
    samples += [
        Sample(name=f"veldt_worker_{name}_total", value=count)
        for name, count in sorted(tally.total(sessions).items())
    ]
    for stage, executor in executors.items():
        labels = {"stage": stage}
        samples.append(
            Sample(
                name="veldt_worker_stage_busy_seconds_total",
                labels=labels,
                value=executor.busy_seconds,
            )
        )
        samples += [
            Sample(name="veldt_worker_stage_calls_total", labels={**labels, "what": what}, value=n)
            for what, n in sorted(executor.calls.copy().items())
        ]
    return Stats(samples=tuple(samples))


def _pipeline(diagnostics: SchedulerDiagnostics) -> Iterable[Sample]:
    """What the scheduler says of itself."""
    gauges = {"slots_used": diagnostics.slots_used, "quarantined": len(diagnostics.quarantined)}
    yield from (Sample(name=f"veldt_worker_{name}", value=value) for name, value in gauges.items())
    for name in ("stale", "orphaned", "duplicate", "cleanup_failures", "slot_leaks"):
        yield Sample(name=f"veldt_pipeline_{name}_total", value=getattr(diagnostics, name))
    for stage, figures in diagnostics.stages.items():
        yield Sample(
            name="veldt_stage_run_p95_seconds",
            labels={"stage": stage},
            value=figures.run_seconds.p95,
        )
        for reason, seconds in figures.idle_seconds.items():
            yield Sample(
                name="veldt_stage_idle_seconds_total",
                labels={"stage": stage, "reason": reason.value},
                value=seconds,
            )
