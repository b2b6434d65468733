"""The worker as a real child: its pipe, its end, and that nothing outlives the front door."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from server.protocol.framing import LENGTH_BYTES, FrameSplitter, frame_length, pack_frame
from server.protocol.worker import (
    CloseSession,
    ConnectSession,
    EventEnvelope,
    FromWorker,
    Ping,
    ReplyEnvelope,
    RequestEnvelope,
    Shutdown,
    StartChoice,
    WorkerConfig,
    WorkerRequest,
)
from tests.fakes.waiting import MARGIN_SECONDS

COMMAND = [sys.executable, "-m", "server.worker"]
ROOT = Path(__file__).parents[3]
SECONDS = 30.0


class Child:
    """A worker process and the front door's end of its pipe."""

    def __init__(self, config: WorkerConfig | bytes, stderr: Path) -> None:
        self.stderr = stderr
        self._log = stderr.open("wb")
        self.process = subprocess.Popen(
            COMMAND,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        first = config if isinstance(config, bytes) else config.model_dump_json().encode()
        self.write(pack_frame(first))

    def write(self, payload: bytes) -> None:
        self.process.stdin.write(payload)
        self.process.stdin.flush()

    def ask(self, number: int, request: WorkerRequest) -> None:
        envelope = RequestEnvelope(id=number, request=request)
        self.write(pack_frame(envelope.model_dump_json().encode()))

    def read(self) -> ReplyEnvelope | EventEnvelope | None:
        header = self.process.stdout.read(LENGTH_BYTES)
        if len(header) < LENGTH_BYTES:
            return None
        return FromWorker.validate_json(self.process.stdout.read(frame_length(header)))

    def until(self, true: Callable[[ReplyEnvelope | EventEnvelope], bool]):
        """The next message of which `true` holds; the test's own time limit bounds it."""
        while (message := self.read()) is not None:
            if true(message):
                return message
        raise AssertionError(f"the worker ended: {self.stderr.read_text()}")

    def event(self, kind: str):
        return self.until(lambda m: isinstance(m, EventEnvelope) and m.event.type == kind).event

    def reply(self, number: int):
        return self.until(lambda m: isinstance(m, ReplyEnvelope) and m.id == number).reply

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self._log):
            stream.close()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def make(config: WorkerConfig | bytes | None = None, **options: object) -> Child:
        config = config or WorkerConfig(world="marker", transport="memory", **options)
        children.append(Child(config, tmp_path / f"worker-{len(children)}.log"))
        return children[-1]

    yield make
    for each in children:
        each.end()


def connect(session: str = "a") -> ConnectSession:
    return ConnectSession(session=session, start=StartChoice(), body={}, connect_seconds=5.0)


def test_a_child_loads_answers_and_shuts_down(child):
    worker = child()
    assert worker.event("loading").stage
    ready = worker.event("ready")
    assert ready.world.name == "marker"
    assert ready.world.start_points[0].picture.startswith(b"\x89PNG")
    worker.ask(1, Ping())
    assert worker.reply(1).type == "done"
    worker.ask(2, connect())
    assert worker.reply(2).connection.transport == "memory"
    worker.ask(3, CloseSession(session="a", reason="left"))
    assert worker.reply(3).clean
    assert worker.event("stats").samples
    worker.ask(4, Shutdown(seconds=3.0))
    assert worker.reply(4).type == "done"
    assert worker.process.wait(SECONDS) == 0


def test_a_shutdown_is_done_within_its_seconds_although_a_stage_hangs(child):
    worker = child(WorkerConfig(world="tests.fakes.oddworlds:hanging", transport="memory"))
    worker.event("ready")
    worker.ask(1, connect())
    worker.until(lambda m: isinstance(m, EventEnvelope) and m.event.type == "session")
    worker.until(
        lambda m: (
            isinstance(m, EventEnvelope)
            and m.event.type == "stats"
            and any(
                s.name == "veldt_worker_chunks_granted_total" and s.value for s in m.event.samples
            )
        )
    )
    started = time.monotonic()
    worker.ask(2, Shutdown(seconds=2.0))
    assert worker.reply(2).type == "done"
    assert worker.process.wait(SECONDS) == 0
    assert time.monotonic() - started < 2 + MARGIN_SECONDS


def test_the_end_of_its_input_ends_it_within_five_seconds(child):
    worker = child()
    worker.event("ready")
    started = time.monotonic()
    worker.process.stdin.close()
    worker.process.wait(SECONDS)
    assert time.monotonic() - started < 5 + MARGIN_SECONDS


def test_the_end_of_its_input_ends_it_even_while_it_loads(child):
    config = WorkerConfig(world="tests.fakes.oddworlds:stuck", transport="memory")
    worker = child(config)
    worker.until(lambda m: m.event.type == "loading" and m.event.stage == "stuck for good")
    worker.ask(1, Ping())
    assert worker.reply(1).type == "done", "the loop answers while the world loads"
    started = time.monotonic()
    worker.process.stdin.close()
    worker.process.wait(SECONDS)
    assert time.monotonic() - started < 5 + MARGIN_SECONDS


def test_a_front_door_that_is_killed_leaves_no_worker(tmp_path):
    script = textwrap.dedent(
        f"""
        import subprocess, sys, time
        from server.protocol.framing import pack_frame
        from server.protocol.worker import WorkerConfig
        child = subprocess.Popen({COMMAND!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        config = WorkerConfig(world="marker", transport="memory")
        child.stdin.write(pack_frame(config.model_dump_json().encode()))
        child.stdin.flush()
        child.stdout.read(5)
        print(child.pid, flush=True)
        time.sleep(600)
        """
    )
    with (tmp_path / "log").open("wb") as log:
        front = subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=log
        )
        try:
            worker = psutil.Process(int(front.stdout.readline()))
        finally:
            front.kill()
            front.wait(SECONDS)
            front.stdout.close()
    gone, alive = psutil.wait_procs([worker], timeout=5 + MARGIN_SECONDS)
    for process in alive:
        process.kill()
    assert gone
    assert not alive


def test_usr1_shows_what_every_thread_does(child):
    worker = child()
    worker.event("ready")
    worker.process.send_signal(signal.SIGUSR1)
    worker.ask(1, Ping())
    worker.reply(1)
    deadline = time.monotonic() + SECONDS
    while (
        ("stage-denoise" not in (dump := worker.stderr.read_text()) and "actors.py" not in dump)
        or dump.count("Thread 0x") < 4  # it is written line by line
    ):
        assert time.monotonic() < deadline, dump
        worker.event("stats")
    assert worker.process.poll() is None


def test_ctrl_c_is_left_to_the_front_door_and_sigterm_ends_it(child):
    worker = child()
    worker.event("ready")
    worker.process.send_signal(signal.SIGINT)
    worker.ask(1, Ping())
    assert worker.reply(1).type == "done"
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(SECONDS) == 0


def test_what_a_world_prints_cannot_corrupt_the_stream(child):
    worker = child(WorkerConfig(world="tests.fakes.oddworlds:loud", transport="memory"))
    worker.event("ready")
    worker.ask(1, Ping())
    assert worker.reply(1).type == "done"
    assert "LOUD" in worker.stderr.read_text()


def test_a_world_that_cannot_be_loaded_is_said_in_a_sentence_and_ends_it(child):
    worker = child(WorkerConfig(world="atlantis", transport="memory"))
    fatal = worker.event("fatal")
    assert fatal.code == "unknown_world"
    assert worker.process.wait(SECONDS) == 1


def test_a_configuration_that_cannot_be_read_is_said_and_ends_it(child):
    worker = child(json.dumps({"world": 5}).encode())
    assert worker.event("fatal").code == "bad_config"
    assert worker.process.wait(SECONDS) == 2


def test_a_hanging_stage_ends_the_process_after_it_has_said_so(child):
    config = WorkerConfig(
        world="tests.fakes.oddworlds:hanging",
        transport="memory",
        stage_deadline_seconds=0.5,
    )
    worker = child(config)
    worker.event("ready")
    worker.ask(1, connect())
    assert worker.event("fatal").code == "stage_hangs"
    assert worker.process.wait(SECONDS) == 3


def test_frames_come_out_whole_however_they_arrive():
    payloads = [b"", b"x", b"y" * 70_000]
    stream = b"".join(pack_frame(p) for p in payloads)
    for step in (1, 3, 4, 5, 65_536):
        splitter = FrameSplitter()
        found = [
            f for at in range(0, len(stream), step) for f in splitter.feed(stream[at : at + step])
        ]
        assert found == payloads
