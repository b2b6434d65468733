"""The asyncio face over real threads: opening, playing, resetting, closing, being cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pipeline.streaming import (
    ActorDied,
    CloseReport,
    LocalStageActor,
    Outcome,
    SessionClosed,
    SessionExists,
    SessionFailed,
    SpecError,
    StageCompleted,
    StageFailed,
    StreamingPipelineOrchestrator,
    StreamingPipelineSpec,
    UnknownName,
)
from tests.fakes.stages import PIECES, FakeStage, chain_spec, world_spec, world_stages
from tests.fakes.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]

STARTS = ("encode", "denoise", "decode")


def starts(session: str) -> dict[str, object]:
    """What the fake stages open from: their session's name."""
    return dict.fromkeys(STARTS, session)


class Gate:
    """Holds a stage in its run until the test lets it go; bounded, so that a bug fails the test."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, session: str, sequence: int) -> None:
        self.entered.set()
        assert self.open.wait(60), "nobody opened the gate"

    async def reached(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, 60)


@asynccontextmanager
async def running(
    stages: dict[str, FakeStage], spec: StreamingPipelineSpec | None = None, **options
) -> AsyncIterator[StreamingPipelineOrchestrator]:
    actors = {name: LocalStageActor(name, stage) for name, stage in stages.items()}
    pipeline = StreamingPipelineOrchestrator(spec or world_spec(), actors, **options)
    await pipeline.start()
    try:
        yield pipeline
    finally:
        await pipeline.aclose(seconds=60)
    diagnostics = pipeline.diagnostics()
    assert diagnostics.slot_leaks == 0
    assert diagnostics.slots_used == 0


async def play(
    pipeline: StreamingPipelineOrchestrator, session: str, chunks: int, start: int = 0
) -> list[object]:
    """Submit chunks as they fit and take what comes; the pieces' values."""
    values: list[object] = []
    submitted = start

    def feed() -> None:
        nonlocal submitted
        while submitted < start + chunks and pipeline.try_submit(
            session, submitted, {"condition_request": submitted, "control": submitted}
        ):
            submitted += 1

    unsubscribe = pipeline.subscribe(lambda note: feed() if note.session == session else None)
    try:
        feed()
        async with asyncio.timeout(20):
            async for output in pipeline.outputs(session):
                if not output.last:
                    values.append(output.value)
                elif output.sequence == start + chunks - 1:
                    break
    finally:
        unsubscribe()
    return values


async def test_a_session_plays_and_gives_everything_back():
    stages = world_stages()
    async with running(stages) as pipeline:
        opened: list[str] = []
        assert await pipeline.open_session("a", starts("a"), on_stage=opened.append) == 0
        assert opened == list(STARTS)
        values = await play(pipeline, "a", 5)
        assert [value[:3] for value in values] == [
            ("a", chunk, piece) for chunk in range(5) for piece in range(PIECES)
        ]
        latent = values[0][3]["latent"]
        assert latent[3] == {
            "condition": ("encode", "a", 0, {"condition_request": 0}),
            "control": 0,
        }
        assert pipeline.in_flight("a") == 0
        assert await pipeline.close_session("a") == CloseReport(clean=True)
        assert await pipeline.close_session("a") == CloseReport(clean=True), "idempotent"
    for stage in stages.values():
        assert stage.opened == stage.released == ["a"]
        assert len(stage.threads) == 1
        assert stage.entries == 1
    assert len({next(iter(stage.threads)) for stage in stages.values()}) == 3


async def test_the_open_order_is_the_one_given():
    opened: list[str] = []
    async with running(world_stages(), open_order=("encode", "decode", "denoise")) as pipeline:
        await pipeline.open_session("a", starts("a"), on_stage=opened.append)
    assert opened == ["encode", "decode", "denoise"]


async def test_a_wrong_set_of_actors_or_a_bad_spec_is_refused():
    with pytest.raises(UnknownName):
        StreamingPipelineOrchestrator(
            world_spec(), {"encode": LocalStageActor("encode", FakeStage("encode"))}
        )
    with pytest.raises(SpecError):
        StreamingPipelineOrchestrator(StreamingPipelineSpec("empty", (), ()), {})


async def test_an_open_that_fails_releases_what_it_opened_and_says_why():
    stages = world_stages()
    stages["decode"].fail_open.add("a")
    async with running(stages) as pipeline:
        with pytest.raises(StageFailed) as caught:
            await pipeline.open_session("a", starts("a"))
        assert caught.value.stage == "decode"
        assert isinstance(caught.value.__cause__, ValueError)
        assert stages["encode"].open_states == stages["denoise"].open_states == []
        stages["decode"].fail_open.clear()
        await pipeline.open_session("a", starts("a"))
        with pytest.raises(SessionExists):
            await pipeline.open_session("a", starts("a"))


async def test_an_open_that_is_cancelled_is_undone():
    stages = world_stages()
    inside, go_on = threading.Event(), threading.Event()
    plain_open = stages["denoise"].open

    def slow_open(start: object) -> object:
        inside.set()
        assert go_on.wait(10)
        return plain_open(start)

    stages["denoise"].open = slow_open
    async with running(stages) as pipeline:
        opening = asyncio.create_task(pipeline.open_session("a", starts("a")))
        assert await asyncio.to_thread(inside.wait, 10)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go_on.set()
        async with asyncio.timeout(10):
            while pipeline.diagnostics().sessions:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0)
        assert (await pipeline.close_session("a")).clean
        assert [stage.open_states for stage in stages.values()] == [[], [], []]
        assert stages["decode"].opened == []
        await pipeline.open_session("a", starts("a"))


async def test_a_close_that_is_cancelled_goes_on():
    gate = Gate()
    stages = world_stages({"denoise": gate})
    async with running(stages) as pipeline:
        await pipeline.open_session("a", starts("a"))
        pipeline.try_submit("a", 0, {"condition_request": 0, "control": 0})
        await gate.reached()
        closing = asyncio.create_task(pipeline.close_session("a"))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        gate.open.set()
        assert (await pipeline.close_session("a")).clean
        assert all(stage.open_states == [] for stage in stages.values())


async def test_a_reset_that_is_cancelled_goes_on():
    gate = Gate()
    stages = world_stages({"denoise": gate})
    async with running(stages) as pipeline:
        await pipeline.open_session("a", starts("a"))
        pipeline.try_submit("a", 0, {"condition_request": 0, "control": 0})
        await gate.reached()
        resetting = asyncio.create_task(pipeline.reset_session("a", starts("a")))
        await asyncio.sleep(0)
        resetting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await resetting
        gate.open.set()
        async with asyncio.timeout(10):
            while not pipeline.can_submit("a", 0, ["control"]):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0)
        assert len(await play(pipeline, "a", 1)) == PIECES


async def test_a_reader_that_waits_is_woken_by_a_single_output():
    stages = {"work": FakeStage("work", ("out",))}
    async with running(stages, chain_spec("work")) as pipeline:
        await pipeline.open_session("a", {"work": "a"})
        outputs = pipeline.outputs("a")
        for sequence in range(3):
            reading = asyncio.create_task(anext(outputs))
            await asyncio.sleep(0)
            pipeline.try_submit("a", sequence, {"work_in": sequence})
            async with asyncio.timeout(10):
                output = await reading
            assert (output.sequence, output.piece, output.last) == (sequence, 0, True)
            assert output.value == ("work", "a", sequence, {"work_in": sequence})


async def test_a_reader_that_is_cancelled_loses_nothing():
    async with running(world_stages()) as pipeline:
        await pipeline.open_session("a", starts("a"))
        outputs = pipeline.outputs("a")
        waiting = asyncio.create_task(anext(outputs))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(await play(pipeline, "a", 2)) == 2 * PIECES


async def test_a_reset_voids_the_running_chunk_and_counts_from_zero():
    gate = Gate()
    stages = world_stages({"denoise": gate})
    async with running(stages) as pipeline:
        await pipeline.open_session("a", starts("a"))
        outputs = pipeline.outputs("a")
        pipeline.try_submit("a", 0, {"condition_request": 0, "control": "old"})
        await gate.reached()
        notes: list[StageCompleted] = []
        pipeline.subscribe(notes.append)
        resetting = asyncio.create_task(pipeline.reset_session("a", starts("a")))
        await asyncio.sleep(0)
        assert not pipeline.try_submit("a", 0, {"control": "too early"})
        assert not resetting.done(), "the running invocation is waited for"
        gate.open.set()
        assert await resetting == 1
        assert [(note.stage, note.epoch, note.outcome) for note in notes] == [
            ("denoise", 0, Outcome.STALE)
        ]
        assert pipeline.try_submit("a", 0, {"condition_request": 0, "control": "new"})
        taken = [await anext(outputs) for _ in range(PIECES + 1)]
        assert {(output.epoch, output.sequence) for output in taken} == {(1, 0)}
        assert taken[0].value[3]["latent"][3]["control"] == "new"
    for stage in stages.values():
        assert stage.opened == stage.released == ["a", "a"]


async def test_a_slow_reader_stalls_itself_only():
    async with running(world_stages()) as pipeline:
        for session in ("slow", "quick"):
            await pipeline.open_session(session, starts(session))
        for sequence in range(2):
            pipeline.try_submit("slow", sequence, {"condition_request": 0, "control": 0})
        assert len(await play(pipeline, "quick", 20)) == 20 * PIECES
        assert pipeline.metrics("slow").completed <= 2
        assert len(await play(pipeline, "slow", 3, start=2)) == 5 * PIECES


async def test_a_failing_stage_ends_its_session_with_the_cause():
    def fault(session: str, sequence: int) -> None:
        if (session, sequence) == ("a", 1):
            raise ValueError("a breaks")

    stages = world_stages({"denoise": fault})
    async with running(stages) as pipeline:
        for session in ("a", "b"):
            await pipeline.open_session(session, starts(session))
        with pytest.raises(SessionFailed) as caught:
            await play(pipeline, "a", 3)
        assert isinstance(caught.value.cause, StageFailed)
        assert caught.value.cause.stage == "denoise"
        assert str(caught.value.cause.cause) == "a breaks"
        assert caught.value.cause.cause.__traceback__ is not None
        assert len(await play(pipeline, "b", 3)) == 3 * PIECES
        with pytest.raises(SessionFailed):
            await pipeline.reset_session("a", starts("a"))
        assert (await pipeline.close_session("a")).clean
    assert all(stage.open_states == [] for stage in stages.values())


async def test_a_release_that_raises_is_reported_and_can_be_retried():
    stages = world_stages()
    stages["denoise"].fail_release.add("a")
    async with running(stages) as pipeline:
        await pipeline.open_session("a", starts("a"))
        report = await pipeline.close_session("a")
        assert not report.clean
        assert isinstance(report.failures["denoise"], OSError)
        assert pipeline.diagnostics().quarantined == ("a",)
        assert not (await pipeline.close_session("a")).clean
        stages["denoise"].fail_release.clear()
        assert (await pipeline.close_session("a")).clean
        assert pipeline.diagnostics().quarantined == ()
        assert stages["encode"].released == stages["denoise"].released == ["a"]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError])
async def test_a_handler_that_kills_its_thread_fails_those_who_used_it(kind):
    def fault(session: str, sequence: int) -> None:
        if session == "a":
            raise kind("dead")

    stages = world_stages({"decode": fault})
    async with running(stages) as pipeline:
        for session in ("a", "b"):
            await pipeline.open_session(session, starts(session))
        with pytest.raises(SessionFailed) as caught:
            await play(pipeline, "a", 1)
        if kind is MemoryError:  # an Exception like others: the actor lives
            assert isinstance(caught.value.cause, StageFailed)
            assert len(await play(pipeline, "b", 1)) == PIECES
            return
        assert isinstance(caught.value.cause, ActorDied)
        assert isinstance(caught.value.cause.cause, kind)
        with pytest.raises(SessionFailed):
            await play(pipeline, "b", 1)
        report = await pipeline.close_session("b")
        assert list(report.failures) == ["decode"]
        assert stages["encode"].released == ["b"], "the living ones release"
        with pytest.raises(ActorDied):
            await pipeline.open_session("c", starts("c"))


async def test_an_actor_that_hangs_is_given_up_within_a_bound():
    gate = Gate()
    stages = world_stages({"denoise": gate})
    actors = {name: LocalStageActor(name, stage) for name, stage in stages.items()}
    pipeline = StreamingPipelineOrchestrator(world_spec(), actors)
    await pipeline.start()
    await pipeline.open_session("a", starts("a"))
    pipeline.try_submit("a", 0, {"condition_request": 0, "control": 0})
    await gate.reached()
    await pipeline.aclose(seconds=0.4)
    assert not actors["denoise"].join(0), "nobody waited for its end"
    assert not pipeline.diagnostics().stages["denoise"].alive
    for name in ("encode", "decode"):  # where the machine stood still they are given up too
        assert await asyncio.to_thread(actors[name].join, 10)
    before = pipeline.diagnostics().orphaned
    gate.open.set()
    assert await asyncio.to_thread(actors["denoise"].join, 10)
    assert pipeline.diagnostics().orphaned == before + 1, "what it said at last was ignored"


async def test_an_actor_declared_dead_fails_its_sessions_at_once():
    gate = Gate()
    stages = world_stages({"denoise": gate})
    async with running(stages) as pipeline:
        await pipeline.open_session("a", starts("a"))
        pipeline.try_submit("a", 0, {"condition_request": 0, "control": 0})
        await gate.reached()
        reading = asyncio.create_task(anext(pipeline.outputs("a")))
        await asyncio.sleep(0)
        pipeline.declare_dead("denoise")
        with pytest.raises(SessionFailed):
            await reading
        report = await pipeline.close_session("a")
        assert list(report.failures) == ["denoise"]
        gate.open.set()


async def test_a_stage_that_cannot_start_fails_the_start_and_leaves_nothing():
    stages = world_stages()

    def broken() -> None:
        raise RuntimeError("no such device")

    actors = {name: LocalStageActor(name, stage) for name, stage in stages.items()}
    actors["decode"] = LocalStageActor("decode", stages["decode"], threads_hook=broken)
    pipeline = StreamingPipelineOrchestrator(world_spec(), actors)
    with pytest.raises(ActorDied, match="no such device"):
        await pipeline.start()
    with pytest.raises(SessionClosed):
        await pipeline.open_session("a", starts("a"))


async def test_aclose_closes_what_is_open_and_may_be_called_again():
    stages = world_stages()
    async with running(stages) as pipeline:
        for session in ("a", "b"):
            await pipeline.open_session(session, starts(session))
        pipeline.try_submit("a", 0, {"condition_request": 0, "control": 0})
        reading = asyncio.create_task(_all(pipeline, "b"))
        await asyncio.sleep(0)
        await pipeline.aclose()
        assert await reading == []
        await pipeline.aclose()
        with pytest.raises(SessionClosed):
            await pipeline.open_session("c", starts("c"))
    assert all(stage.open_states == [] for stage in stages.values())


async def _all(pipeline: StreamingPipelineOrchestrator, session: str) -> list[object]:
    return [output async for output in pipeline.outputs(session)]


async def test_a_draining_close_gives_out_what_was_submitted_then_ends():
    async with running(world_stages()) as pipeline:
        await pipeline.open_session("a", starts("a"))
        for sequence in range(2):
            assert pipeline.try_submit("a", sequence, {"condition_request": 0, "control": 0})
        closing = asyncio.create_task(pipeline.close_session("a", drain=True))
        await asyncio.sleep(0)
        taken = await _all(pipeline, "a")
        assert [output.sequence for output in taken if output.last] == [0, 1]
        assert (await closing).clean


async def test_the_reader_of_a_closed_session_does_not_see_a_later_one_of_its_name():
    async with running(world_stages()) as pipeline:
        await pipeline.open_session("a", starts("a"))
        old = pipeline.outputs("a")
        await pipeline.close_session("a")
        await pipeline.open_session("a", starts("a"))
        pipeline.try_submit("a", 0, {"condition_request": 0, "control": 0})
        assert [output async for output in old] == []
        assert len(await play(pipeline, "a", 1, start=1)) == 2 * PIECES


async def test_a_listener_that_raises_disturbs_nobody(caplog):
    heard: list[StageCompleted] = []

    def broken(note: StageCompleted) -> None:
        raise ValueError("listener")

    async with running(world_stages()) as pipeline:
        pipeline.subscribe(broken)
        unsubscribe = pipeline.subscribe(heard.append)
        await pipeline.open_session("a", starts("a"))
        await play(pipeline, "a", 2)
        await until(lambda: len(heard) == 6)  # two chunks through three stages
        unsubscribe()
        await play(pipeline, "a", 2, start=2)
    assert "a listener failed" in caplog.text
    assert len(heard) == 6


async def test_listeners_are_called_on_the_loops_thread():
    threads: set[int] = set()
    async with running(world_stages()) as pipeline:
        pipeline.subscribe(lambda note: threads.add(threading.get_ident()))
        await pipeline.open_session("a", starts("a"))
        await play(pipeline, "a", 3)
        await until(lambda: bool(threads))
    assert threads == {threading.get_ident()}


async def test_a_claim_over_threads_starts_at_once_with_what_was_submitted():
    gate = Gate()
    stages = world_stages({"denoise": gate})
    async with running(stages, world_spec(group=True)) as pipeline:
        await pipeline.open_session("a", starts("a"))
        assert pipeline.can_submit("a", 0, ["condition_request"])
        assert pipeline.try_submit("a", 0, {"condition_request": 0})
        ready: Callable[[], bool] = lambda: pipeline.inputs_ready(  # noqa: E731
            "a", 0, "denoise", besides={"control"}
        )
        note = asyncio.Event()
        pipeline.subscribe(lambda _: note.set())
        while not ready():
            await note.wait()
        assert pipeline.stage_free("denoise")
        assert pipeline.can_reserve("a", 0, claim="denoise")
        assert pipeline.reserve("a", 0, claim="denoise")
        assert not pipeline.stage_free("denoise")
        assert pipeline.try_submit("a", 0, {"control": 0}, control_age_seconds=0.01)
        await gate.reached()
        assert not pipeline.stage_free("decode"), "the right to run is taken"
        gate.open.set()
        assert len([await anext(pipeline.outputs("a")) for _ in range(PIECES + 1)]) == PIECES + 1
        assert pipeline.metrics("a").control_age_at_bind.last == 0.01
