"""Real threads, many sessions, everything at once: nothing mixed up, lost, or left behind."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator

import pytest

from pipeline.streaming import (
    LocalStageActor,
    SessionFailed,
    StreamingPipelineOrchestrator,
)
from tests.fakes.stages import PIECES, world_spec, world_stages

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing", "switching_often")]

SESSIONS = 8
CHUNKS = 100


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Let the interpreter change threads fifty times as often as it does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # far less, and a busy machine does little else
    yield
    sys.setswitchinterval(before)


class Player:
    """Plays one session, and checks that every piece is its own, in order, exactly once."""

    def __init__(self, pipeline: StreamingPipelineOrchestrator, name: str) -> None:
        self.pipeline, self.name = pipeline, name
        self.submitted = {"condition_request": 0, "control": 0}
        self.epoch = 0
        self.chunks = 0
        self.expected = (0, 0, 0)  # epoch, sequence, piece

    def feed(self) -> None:
        for artifact, ahead in (("condition_request", 2), ("control", 0)):
            sequence = self.submitted[artifact]
            if sequence <= self.submitted["control"] + ahead and self.pipeline.try_submit(
                self.name, sequence, {artifact: (self.name, self.epoch, sequence)}
            ):
                self.submitted[artifact] += 1

    async def play(self, chunks: int) -> None:
        target = self.chunks + chunks
        self.feed()
        self.feed()
        async for output in self.pipeline.outputs(self.name):
            self.check(output)
            self.feed()
            if self.chunks == target:
                return

    def check(self, output) -> None:
        assert output.session == self.name
        assert (output.epoch, output.sequence, output.piece) == self.expected
        epoch, sequence, piece = self.expected
        if output.last:
            assert piece == PIECES
            self.expected = (epoch, sequence + 1, 0)
            self.chunks += 1
            return
        self.expected = (epoch, sequence, piece + 1)
        session, count, number, inputs = output.value
        assert (session, count, number) == (self.name, sequence, piece)
        latent = inputs["latent"]
        assert latent[:3] == ("denoise", self.name, sequence)
        assert latent[3]["control"] == (self.name, epoch, sequence)
        assert latent[3]["condition"] == (
            "encode",
            self.name,
            sequence,
            {"condition_request": (self.name, epoch, sequence)},
        )

    async def reset(self) -> None:
        self.epoch = await self.pipeline.reset_session(self.name, starts(self.name))
        self.submitted = {"condition_request": 0, "control": 0}
        self.expected = (self.epoch, 0, 0)


def starts(session: str) -> dict[str, object]:
    return dict.fromkeys(("encode", "denoise", "decode"), session)


async def begin(stages) -> StreamingPipelineOrchestrator:
    actors = {name: LocalStageActor(name, stage) for name, stage in stages.items()}
    pipeline = StreamingPipelineOrchestrator(world_spec(group=True), actors)
    await pipeline.start()
    return pipeline


def check_nothing_is_left(pipeline: StreamingPipelineOrchestrator, stages) -> None:
    diagnostics = pipeline.diagnostics()
    assert (diagnostics.sessions, diagnostics.slots_used, diagnostics.slot_leaks) == (0, 0, 0)
    assert (diagnostics.orphaned, diagnostics.duplicate, diagnostics.cleanup_failures) == (0, 0, 0)
    for stage in stages.values():
        assert stage.open_states == []
        assert len(stage.threads) == 1


async def test_sessions_that_come_play_reset_and_go_never_mix():
    stages = world_stages()
    pipeline = await begin(stages)

    async def life(name: str, dice: random.Random) -> int:
        played = 0
        while played < CHUNKS:
            await pipeline.open_session(name, starts(name))
            player = Player(pipeline, name)
            for _ in range(dice.randint(1, 3)):
                await player.play(dice.randint(1, 6))
                if dice.random() < 0.5:
                    await player.reset()
            if dice.random() < 0.5:
                player.feed()
            assert (await pipeline.close_session(name)).clean
            played += player.chunks
        return played

    async with asyncio.timeout(60):
        played = await asyncio.gather(
            *(life(f"s{number}", random.Random(number)) for number in range(SESSIONS))
        )
    await pipeline.aclose()
    assert min(played) >= CHUNKS
    check_nothing_is_left(pipeline, stages)


async def test_sessions_that_fail_at_random_take_nobody_with_them():
    dice = random.Random(7)
    victims = {f"s{number}" for number in range(0, SESSIONS, 2)}
    at = {name: dice.randint(1, 10) for name in victims}

    def fault(session: str, sequence: int) -> None:
        if session in victims and sequence == at[session]:
            raise ValueError(session)

    stages = world_stages({"denoise": fault, "decode": None, "encode": None})
    pipeline = await begin(stages)

    async def life(name: str) -> int:
        await pipeline.open_session(name, starts(name))
        player = Player(pipeline, name)
        if name in victims:
            with pytest.raises(SessionFailed, match=name):
                await player.play(CHUNKS)
        else:
            await player.play(CHUNKS)
        assert (await pipeline.close_session(name)).clean
        return player.chunks

    async with asyncio.timeout(60):
        names = [f"s{number}" for number in range(SESSIONS)]
        played = dict(zip(names, await asyncio.gather(*map(life, names)), strict=True))
    await pipeline.aclose()
    for name in names:
        assert played[name] <= at[name] if name in victims else played[name] == CHUNKS
    check_nothing_is_left(pipeline, stages)


async def test_cancelling_players_anywhere_leaves_nothing():
    stages = world_stages()
    pipeline = await begin(stages)
    dice = random.Random(3)

    async def life(name: str) -> None:
        await pipeline.open_session(name, starts(name))
        player = Player(pipeline, name)
        while True:
            await player.play(3)
            await player.reset()

    async with asyncio.timeout(60):
        for generation in range(12):
            names = [f"g{generation}-{number}" for number in range(4)]
            lives = [asyncio.create_task(life(name)) for name in names]
            for _ in range(dice.randint(0, 60)):
                await asyncio.sleep(0)
            for each in lives:
                each.cancel()
            await asyncio.wait(lives)
            assert all(each.cancelled() for each in lives)
            reports = await asyncio.gather(*map(pipeline.close_session, names))
            assert all(report.clean for report in reports)
    await pipeline.aclose()
    check_nothing_is_left(pipeline, stages)
