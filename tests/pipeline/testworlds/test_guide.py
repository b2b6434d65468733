"""The world of docs/guide/worlds.md, and the worlds that ship, through the real orchestrator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import docs.guide.examples.lantern as lantern
from pipeline.registry import load_world
from pipeline.service import ControlSnapshot, SessionStart, World
from pipeline.streaming import LocalStageActor, StreamingPipelineOrchestrator
from tests.fakes.player import FakePlayer, holding

LANTERN = "docs.guide.examples.lantern:Lantern"
GUIDE = Path(lantern.__file__).parents[1] / "worlds.md"


async def streamed(world: World, controls: list[ControlSnapshot]) -> np.ndarray:
    """Play one session through the orchestrator, one chunk at a time; return its frames."""
    stages = world.stages()
    actors = {name: LocalStageActor(name, stage) for name, stage in stages.items()}
    pipeline = StreamingPipelineOrchestrator(world.spec, actors, open_order=list(stages))
    await pipeline.start()
    frames: list[np.ndarray] = []
    try:
        policy = world.policy(SessionStart())
        await pipeline.open_session("ada", policy.openings())
        outputs = pipeline.outputs("ada")
        for index, control in enumerate(controls):
            values = {**policy.conditions(index), **policy.bind(index, control)}
            assert pipeline.try_submit("ada", index, values)
            async for output in outputs:
                if output.value is not None:
                    frames.append(output.value)
                if output.last:
                    break
        report = await pipeline.close_session("ada")
        assert report.clean
    finally:
        await pipeline.aclose()
    return np.concatenate(frames)


@pytest.mark.anyio
async def test_the_guides_world_plays_through_the_real_orchestrator():
    controls = [holding("KeyD"), ControlSnapshot(presses={"KeyS": 1}), holding("KeyW", "KeyA")]
    film = await streamed(load_world(LANTERN), controls)
    assert film.shape == (12, 160, 256, 3)
    brightest = [np.unravel_index(frame[..., 0].argmax(), frame.shape[:2]) for frame in film]
    assert brightest[3] == (80, 140)  # four frames to the right
    assert brightest[7] == (92, 140)  # the tap: down
    assert brightest[11] == (80, 128)  # up and left again


def test_the_guides_world_is_as_short_as_the_guide_says():
    lines = Path(lantern.__file__).read_text().splitlines()
    assert len(lines) < 80
    assert "examples/lantern.py" in GUIDE.read_text()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["tiny", "marker", "prompt"])
async def test_a_world_streams_what_it_plays_alone(name):
    options = {"fps": 16}
    controls = [holding("KeyW"), ControlSnapshot(presses={"KeyD": 1}, receipt=9), holding()]
    film = await streamed(load_world(name, options), controls)
    assert np.array_equal(film, FakePlayer(load_world(name, options)).play(controls))
