from __future__ import annotations

import pytest

from pipeline.options import BadWorldOptions, call_with_options
from pipeline.registry import WORLDS, UnknownWorld, load_world
from pipeline.service import SessionStart, StageExecutor

LIGHT = [name for name in WORLDS if name != "tiny"]


@pytest.mark.parametrize("name", LIGHT)
def test_every_world_loads_by_name_and_is_whole(name):
    world = load_world(name)
    stages = world.stages()
    assert world.info.name == name
    assert list(stages) == [stage.name for stage in world.spec.stages]
    assert world.exclusive_stage in stages
    produced = {artifact for stage in world.spec.stages for artifact in stage.outputs}
    assert world.frames_artifact in produced
    assert {edge.artifact for edge in world.spec.edges} == produced | {
        artifact for stage in world.spec.stages for artifact in stage.inputs
    }
    assert world.policy(SessionStart()).openings().keys() <= stages.keys()
    world.warm_up(lambda stage, share: None)
    world.close()


def test_a_world_of_ones_own_loads_by_module_and_factory():
    assert load_world("pipeline.testworlds.marker:make_world", {"fps": 30}).info.fps == 30


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("moon", "there are tiny, marker"),
        ("", "there are tiny"),
        ("no.such.module:make", "no module 'no'"),
        ("pipeline.nowhere:make", "no module 'pipeline.nowhere'"),
        ("pipeline.testworlds.marker:nothing", "has no factory 'nothing'"),
        ("pipeline.testworlds.marker:ROWS", "has no factory 'ROWS'"),
        (":make", "there are tiny"),
        ("module:", "there are tiny"),
        ("../../etc/passwd", "there are tiny"),
    ],
)
def test_an_unknown_world_is_named_in_one_sentence(name, words):
    with pytest.raises(UnknownWorld, match=words) as caught:
        load_world(name)
    assert caught.value.name == name


def test_a_fault_inside_a_world_is_not_hidden_as_an_unknown_world(tmp_path, monkeypatch):
    (tmp_path / "halfworld.py").write_text("import lacking_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="lacking_dependency"):
        load_world("halfworld:make")


@pytest.mark.parametrize("name", ["marker", "slow", "failing", "prompt"])
@pytest.mark.parametrize(
    "options",
    [
        {"fps": 0}, {"fps": float("nan")}, {"fps": "many"}, {"fps": True}, {"fps": None},
        {"width": 100}, {"width": 16.5}, {"frames_per_chunk": 0}, {"colour": "red"}, {"height": []},
    ],
)  # fmt: skip
def test_bad_options_are_refused_by_name(name, options):
    with pytest.raises(BadWorldOptions) as caught:
        load_world(name, options)
    assert caught.value.option in options


def test_options_written_as_text_become_what_the_factory_wants():
    def factory(count: int, rate: float = 1.0, busy: bool = False, name: str = "") -> StageExecutor:
        return (count, rate, busy, name)  # type: ignore[return-value]

    given = {"count": "3", "rate": "0.5", "busy": "yes", "name": "7"}
    assert call_with_options(factory, given) == (3, 0.5, True, "7")
    assert call_with_options(factory, {"count": 4.0}) == (4, 1.0, False, "")
    with pytest.raises(BadWorldOptions, match="needs the option 'count'"):
        call_with_options(factory, {})
    with pytest.raises(BadWorldOptions, match="'count' must be int"):
        call_with_options(factory, {"count": "3.5"})
    with pytest.raises(BadWorldOptions, match="'busy' must be bool"):
        call_with_options(factory, {"count": 1, "busy": "perhaps"})
