import re

import pytest
import torch

from pipeline.lingbot import sampler
from pipeline.lingbot.sampler import NoiseCursor
from tests.pipeline.lingbot.reference import DIRECTORY, OURS, fixture, names

F = fixture("scheduler")
SHIFTS = sorted(k.removeprefix("sigmas.shift") for k in F.tensors if k.startswith("sigmas.shift"))


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_schedule_is_bit_equal_to_the_reference(shift: str) -> None:
    sigmas, timesteps = sampler.schedule(float(shift))
    assert torch.equal(sigmas, F[f"sigmas.shift{shift}"])
    assert torch.equal(timesteps, F[f"timesteps.shift{shift}"])


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("which", list(F.about["indices"]))
def test_sigmas_are_looked_up_by_the_duplicated_integer_timestep(which: str, shift: str) -> None:
    steps = sampler.few_steps(float(shift), tuple(F.about["indices"][which]))
    base = f"sel.{which}.shift{shift}"
    assert [s.timestep for s in steps] == F[f"{base}.t"].tolist()
    assert [s.sigma_x0 for s in steps] == F[f"{base}.sigma_x0"].tolist()
    assert [s.sigma_noise for s in steps] == F[f"{base}.sigma_noise"].tolist()


def test_the_match_index_of_every_selected_timestep_is_the_reference_one() -> None:
    for key, (first, second, count) in F.about["match_index"].items():
        found = re.fullmatch(r".*\.shift([\d.]+)\.t(\d+)", key)
        assert found
        _, timesteps = sampler.schedule(float(found[1]))
        same = (timesteps == int(found[2])).nonzero().flatten().tolist()
        assert (same[0], same[min(1, len(same) - 1)], len(same)) == (first, second, count)


@pytest.mark.skipif(DIRECTORY != OURS, reason="noise of other fixtures may be injected")
@pytest.mark.parametrize("name", names("e2e"))
def test_reference_noise_comes_in_the_reference_order(name: str) -> None:
    f = fixture(name)
    noise = f["noise"]
    chunk, steps = f.about["chunk_frames"], len(f.about["timesteps"])
    drawn = sampler.reference_noise(f.about["seed"], tuple(noise.shape), chunk, steps)
    assert torch.equal(torch.cat([c.start for c in drawn], dim=1), noise)
    for i, c in enumerate(drawn):
        for s, again in enumerate(c.again):
            assert torch.equal(again, f[f"c{i}.s{s}.renoise"])


def test_noise_depends_on_seed_chunk_and_draw_alone() -> None:
    shape, cursor = (16, 3, 4, 6), NoiseCursor(seed=7)
    first, after = cursor.draw(shape, steps=4)
    second, _ = after.draw(shape, steps=4)
    skipped, _ = cursor.skipped().draw(shape, steps=4)
    assert torch.equal(second.start, skipped.start)
    assert all(map(torch.equal, second.again, skipped.again))
    draws = [first.start, *first.again, second.start, *second.again]
    assert len({d.sum().item() for d in draws}) == len(draws)
    other, _ = NoiseCursor(seed=8).draw(shape, steps=4)
    assert not torch.equal(other.start, first.start)


def test_noise_is_standard_normal() -> None:
    noise, _ = NoiseCursor(seed=1).draw((16, 3, 58, 104), steps=1)
    assert noise.start.mean().abs() < 0.01
    assert abs(noise.start.std() - 1) < 0.01
