"""`/metrics`: the front door's numbers, in a registry of their own, and those of the workers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.session import TERMINAL, EndReason, State
from server.looplag import LoopLag
from server.protocol.worker import Sample

if TYPE_CHECKING:
    from server.front.livekit import RoomKeeper
    from server.front.service import SessionService

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}\Z")
MAX_WORKER_SAMPLES: Final = 2000  # of one worker that are shown
LAG: Final = "veldt_loop_lag_seconds"
LIVE: Final = tuple(state for state in State if state not in TERMINAL)
_QUANTILES: Final = (0.5, 0.99, 1.0)


class FrontMetrics:
    """What the front door counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.lag = LoopLag()
        self.sessions_created = 0
        self.sessions_refused = Tally[str]()  # by code
        self.sessions_ended = Tally[str]({reason.value: 0 for reason in EndReason})

    def created(self) -> None:
        """A session was opened."""
        self.sessions_created += 1

    def refused(self, code: str) -> None:
        """A session was not opened."""
        self.sessions_refused[code] += 1

    def ended(self, reason: EndReason | None) -> None:
        """A session is over."""
        self.sessions_ended[reason.value if reason else "unknown"] += 1

    def watch(self, service: SessionService) -> None:
        """Read the service's seats, sessions and workers whenever the metrics are asked for."""
        self.registry.register(_ServiceCollector(service, self))

    def watch_rooms(self, keeper: RoomKeeper) -> None:
        """Read what the keeper of LiveKit's rooms has found whenever the metrics are asked for."""
        self.registry.register(_RoomsCollector(keeper))

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)


class _ServiceCollector(Collector):
    def __init__(self, service: SessionService, own: FrontMetrics) -> None:
        self._service, self._own = service, own

    def collect(self) -> Iterator[Metric]:
        """What is the case now."""
        yield from self._counted()
        yield from self._sessions()
        workers = GaugeMetricFamily(
            "veldt_worker_ready", "1 while the worker takes sessions.", labels=["worker"]
        )
        restarts = CounterMetricFamily(
            "veldt_worker_restarts", "Times a worker was started again.", labels=["worker"]
        )
        families: dict[str, Metric] = {LAG: self._own_lag()}
        for number, kept in enumerate(self._service.pool.kept):
            name = kept.port.worker_id if kept.port is not None else f"worker-{number}"
            workers.add_metric([name], float(kept.ready is not None and not kept.draining))
            restarts.add_metric([name], kept.restarts)
            _merge(families, name, kept.samples)
        yield workers
        yield restarts
        yield from families.values()

    def _counted(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "veldt_sessions_created", "Sessions that were opened.", value=self._own.sessions_created
        )
        for what, label, tally in (
            ("refused", "code", self._own.sessions_refused),
            ("ended", "reason", self._own.sessions_ended),
        ):
            family = CounterMetricFamily(
                f"veldt_sessions_{what}", f"Sessions {what}, by {label}.", labels=[label]
            )
            for value, count in tally.items():
                family.add_metric([value], count)
            yield family

    def _sessions(self) -> Iterator[Metric]:
        seats = GaugeMetricFamily(
            "veldt_seats", "Seats by what they are; together the capacity.", labels=["state"]
        )
        occupancy = self._service.occupancy()
        for state in ("free", "resident", "quarantined"):
            seats.add_metric([state], getattr(occupancy, state))
        yield seats
        yield GaugeMetricFamily(
            "veldt_seats_capacity", "Seats of all workers.", value=occupancy.capacity
        )
        tasks = GaugeMetricFamily(
            "veldt_tasks", "asyncio tasks that are not done.", labels=["process"]
        )
        tasks.add_metric(["front"], len(asyncio.all_tasks()))
        yield tasks
        live = self._service.live()
        sessions = GaugeMetricFamily(
            "veldt_sessions", "Sessions that are not over, by state.", labels=["state"]
        )
        tally = Tally(record.life.state for record in live)
        for state in LIVE:
            sessions.add_metric([state.value], tally[state])
        yield sessions
        yield GaugeMetricFamily(
            "veldt_event_streams",
            "Event streams that are open.",
            value=sum(record.streams for record in live),
        )

    def _own_lag(self) -> Metric:
        family = Metric(LAG, "How late an event loop wakes up, last minute.", "gauge")
        for share in _QUANTILES:
            labels = {"process": "front", "quantile": f"{share:g}"}
            family.add_sample(LAG, labels, self._own.lag.quantile(share))
        return family


class _RoomsCollector(Collector):
    def __init__(self, keeper: RoomKeeper) -> None:
        self._keeper = keeper

    def collect(self) -> Iterator[Metric]:
        """What is the case now."""
        yield GaugeMetricFamily(
            "veldt_livekit_reachable",
            "1 while LiveKit's API answers the front door.",
            value=float(self._keeper.reachable is True),
        )
        yield CounterMetricFamily(
            "veldt_livekit_strays_removed",
            "Rooms of sessions that were over.",
            value=self._keeper.removed,
        )
        yield CounterMetricFamily(
            "veldt_livekit_lost",
            "Sessions that were played, as far as their worker knew, with nobody in their room.",
            value=self._keeper.lost,
        )


def _merge(families: dict[str, Metric], worker: str, samples: Iterable[Sample]) -> None:
    """Add a worker's samples, with its id as a label, without names that Prometheus cannot read."""
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for sample in list(samples)[:MAX_WORKER_SAMPLES]:
        name = sample.name if sample.name.startswith("veldt_") else f"veldt_{sample.name}"
        labels = {"worker": worker, **sample.labels}
        if not _NAME.match(name) or not all(map(_NAME.match, labels)):
            continue
        key = (name, tuple(sorted(labels.items())))
        if key in seen:
            continue
        seen.add(key)
        kind = "counter" if name.endswith("_total") else "gauge"
        family_name = name.removesuffix("_total")
        family = families.get(family_name)
        if family is None:
            family = families[family_name] = Metric(family_name, "Pushed by the worker.", kind)
        family.add_sample(name, labels, sample.value)
