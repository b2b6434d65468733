from __future__ import annotations

import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.streaming import LocalStageActor, StreamingPipelineOrchestrator, TraceRecorder
from pipeline.streaming.trace import Span, tracks_that_nest
from tests.fakes.stages import PIECES, world_spec, world_stages


def nests(spans: list[tuple[float, float]]) -> bool:
    """Whether any two spans are apart, or one inside the other."""
    return all(
        a[1] <= b[0]
        or b[1] <= a[0]
        or (a[0] <= b[0] and b[1] <= a[1])
        or (b[0] <= a[0] and a[1] <= b[1])
        for place, a in enumerate(spans)
        for b in spans[place + 1 :]
    )


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=25))
def test_spans_are_dealt_out_so_that_they_nest_and_none_is_lost(pairs):
    spans = [
        Span("p", "t", str(number), float(start), float(start + length), {})
        for number, (start, length) in enumerate(pairs)
    ]
    tracks = tracks_that_nest(spans)
    assert sorted(span.name for track in tracks for span in track) == sorted(
        span.name for span in spans
    )
    for track in tracks:
        assert nests([(span.started, span.ended) for span in track])
    if nests([(span.started, span.ended) for span in spans]):
        assert len(tracks) <= 1, "what nests stays on one track"


async def traced() -> TraceRecorder:
    trace = TraceRecorder()
    stages = world_stages()
    pipeline = StreamingPipelineOrchestrator(
        world_spec(group=True),
        {name: LocalStageActor(name, stage) for name, stage in stages.items()},
        trace=trace,
    )
    await pipeline.start()
    for session in "ab":
        await pipeline.open_session(session, dict.fromkeys(stages, session))
        for sequence in range(2):
            pipeline.try_submit(session, sequence, {"condition_request": 0, "control": 0})
    for session in "ab":
        outputs = pipeline.outputs(session)
        for _ in range(2 * (PIECES + 1)):
            await anext(outputs)
    await pipeline.aclose(seconds=60)
    return trace


@pytest.mark.anyio
async def test_a_trace_shows_actors_sessions_edges_and_arrows(tmp_path):
    trace = await traced()
    path = tmp_path / "trace.json"
    trace.write(path)
    events = json.loads(path.read_text())["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert set(processes.values()) == {"actors", "sessions", "edges"}
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    names = {(processes[pid], name) for (pid, _), name in tracks.items()}
    assert {("actors", "encode"), ("actors", "denoise"), ("actors", "decode")} <= names
    assert {("sessions", "a"), ("sessions", "b")} <= names
    spans = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            spans[event["pid"], event["tid"]].append(event)
            assert event["ts"] >= 0
            assert event["dur"] >= 0
    for track, members in spans.items():
        assert nests([(e["ts"], round(e["ts"] + e["dur"], 3)) for e in members]), tracks[track]
    on_actors = {e["name"] for e in events if e["ph"] == "X" and processes[e["pid"]] == "actors"}
    assert {"a 0", "a 1", "b 0", "open a", "release b", "idle: no_input"} <= on_actors
    in_sessions = {
        e["name"] for e in events if e["ph"] == "X" and processes[e["pid"]] == "sessions"
    }
    assert {"chunk 0", "chunk 1", "denoise", "wait for denoise", "open encode"} <= in_sessions
    levels = [e for e in events if e["ph"] == "C"]
    assert {"a control → denoise", "b frames"} <= {e["name"] for e in levels}
    assert max(e["args"]["used"] for e in levels) == 2
    last = {e["name"]: e["args"]["used"] for e in sorted(levels, key=lambda e: e["ts"])}
    assert last["b frames"] == 0


@pytest.mark.anyio
async def test_an_arrow_runs_along_each_chunk_through_all_stages():
    events = (await traced()).to_json()["traceEvents"]
    spans = {(e["pid"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}
    arrows = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            arrows[event["id"]].append(event)
    assert len(arrows) == 4
    for stops in arrows.values():
        assert [stop["ph"] for stop in stops] == ["s", "t", "f"]
        ends = [spans[stop["pid"], stop["tid"], stop["ts"]] for stop in stops]
        assert len({span["name"] for span in ends}) == 1, "all on spans of the same chunk"
        assert len({span["tid"] for span in ends}) == 3


def test_the_recorder_keeps_the_newest_events_only():
    trace = TraceRecorder(limit=10)
    for number in range(100):
        trace.span("actors", "a", str(number), number, number + 1)
    assert len(trace) == 10
    assert [span.name for span in trace.spans()] == [str(number) for number in range(90, 100)]


def test_an_empty_trace_is_a_trace():
    assert TraceRecorder().to_json()["traceEvents"] == []
