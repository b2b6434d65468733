"""What happened when, for ui.perfetto.dev.

A track per actor (what ran, and idle time named by its reason), tracks per session (chunks, and
inside them the waits and runs), a counter per edge (slots used), and an arrow along each chunk.
The recorder keeps the newest events; spans on one track nest, so spans of one session that only
overlap are dealt out over several tracks when the trace is written.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ACTORS: Final = "actors"
SESSIONS: Final = "sessions"
EDGES: Final = "edges"


class Span(NamedTuple):
    """Something that took time. `chunk` ties spans of one chunk together by an arrow."""

    process: str
    track: str
    name: str
    started: float
    ended: float
    args: Mapping[str, object]
    chunk: str | None = None


class Level(NamedTuple):
    """A number that holds from `at` on."""

    process: str
    track: str
    at: float
    value: int


class TraceRecorder:
    """Takes spans and levels from any thread that holds the orchestrator's lock; bounded."""

    def __init__(self, limit: int = 200_000) -> None:
        self._events: deque[Span | Level] = deque(maxlen=limit)

    def __len__(self) -> int:
        return len(self._events)

    def span(
        self,
        process: str,
        track: str,
        name: str,
        started: float,
        ended: float,
        args: Mapping[str, object] | None = None,
        chunk: str | None = None,
    ) -> None:
        """Record a span; also for what happens outside the pipeline (a lease, a queue)."""
        self._events.append(Span(process, track, name, started, ended, args or {}, chunk))

    def level(self, process: str, track: str, at: float, value: int) -> None:
        """Record a level."""
        self._events.append(Level(process, track, at, value))

    def spans(self) -> list[Span]:
        """The spans, in the order in which they ended."""
        return [event for event in list(self._events) if isinstance(event, Span)]

    def to_json(self) -> dict[str, object]:
        """The trace in Chrome's trace-event format, which Perfetto reads; times begin at 0."""
        events = list(self._events)
        spans = [event for event in events if isinstance(event, Span)]
        levels = [event for event in events if isinstance(event, Level)]
        zero = min([span.started for span in spans] + [level.at for level in levels], default=0.0)
        return {"displayTimeUnit": "ms", "traceEvents": list(_written(spans, levels, zero))}

    def write(self, path: Path) -> None:
        """Write the trace to a file that ui.perfetto.dev opens."""
        path.write_text(json.dumps(self.to_json()), encoding="utf-8")


def tracks_that_nest(spans: Iterable[Span]) -> list[list[Span]]:
    """Deal spans out over as few tracks as first fit finds, so that on each they nest or follow."""
    tracks: list[list[Span]] = []
    open_ends: list[list[float]] = []  # of each track: ends of the spans we are inside of
    for span in sorted(spans, key=lambda span: (span.started, -span.ended)):
        for track, ends in zip(tracks, open_ends, strict=True):
            while ends and ends[-1] <= span.started:
                ends.pop()
            if not ends or span.ended <= ends[-1]:
                track.append(span)
                ends.append(span.ended)
                break
        else:
            tracks.append([span])
            open_ends.append([span.ended])
    return tracks


def _written(spans: list[Span], levels: list[Level], zero: float) -> Iterable[dict[str, object]]:
    def us(moment: float) -> float:
        return round((moment - zero) * 1e6, 3)

    processes: dict[str, int] = {}
    by_track: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        by_track.setdefault((span.process, span.track), []).append(span)
    for process in [key[0] for key in by_track] + [level.process for level in levels]:
        if process not in processes:
            processes[process] = len(processes) + 1
            yield _meta("process_name", processes[process], 0, process)
    arrows: dict[str, list[tuple[float, int, int]]] = {}
    thread = 0
    for (process, track), members in by_track.items():
        for number, nested in enumerate(tracks_that_nest(members)):
            thread += 1
            pid = processes[process]
            yield _meta("thread_name", pid, thread, f"{track} ·{number + 1}" if number else track)
            for span in nested:
                begin, end = us(span.started), us(span.ended)
                yield {
                    "ph": "X",
                    "name": span.name,
                    "cat": process,
                    "pid": pid,
                    "tid": thread,
                    "ts": begin,
                    "dur": max(0.0, round(end - begin, 3)),
                    "args": dict(span.args),
                }
                if span.chunk is not None:
                    arrows.setdefault(span.chunk, []).append((begin, pid, thread))
    yield from _arrows(arrows)
    for level in levels:
        yield {
            "ph": "C",
            "name": level.track,
            "pid": processes[level.process],
            "ts": us(level.at),
            "args": {"used": level.value},
        }


def _arrows(arrows: Mapping[str, list[tuple[float, int, int]]]) -> Iterable[dict[str, object]]:
    for number, (chunk, stops) in enumerate(arrows.items(), start=1):
        stops.sort()
        if len(stops) < 2:
            continue
        for place, (at, pid, thread) in enumerate(stops):
            last = place == len(stops) - 1
            yield {
                "ph": "s" if place == 0 else "f" if last else "t",
                "name": "chunk",
                "cat": "chunk",
                "id": number,
                "pid": pid,
                "tid": thread,
                "ts": at,
                "args": {"chunk": chunk},
                **({"bp": "e"} if last else {}),
            }


def _meta(kind: str, pid: int, tid: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
