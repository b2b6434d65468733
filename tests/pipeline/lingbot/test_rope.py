import pytest
import torch

from pipeline.lingbot import rope
from tests.pipeline.lingbot.reference import close, fixture

F = fixture("rope_time")
GRID = (3, 2, 3)
STARTS = [k.split(".start") for k in F.tensors if ".start" in k]


@pytest.mark.parametrize(("head", "start"), STARTS)
def test_rotary_positions_equal_the_reference(head: str, start: str) -> None:
    q = F[f"{head}.q"]
    turn = rope.rotation(GRID, int(start), q.shape[-1])
    close(rope.rotate(q, turn), F[f"{head}.start{start}"])


@pytest.mark.parametrize("key", [k for k in F.tensors if k.startswith("time.sin")])
def test_the_timestep_sinusoid_equals_the_reference(key: str) -> None:
    close(rope.timestep_sinusoid(F["time.pos"], F[key].shape[-1]), F[key], atol=1e-6)


@pytest.mark.parametrize("frames", [-1017, 5, 1_000_000])
def test_shifting_cached_keys_equals_rotating_them_there(frames: int) -> None:
    keys = torch.randn(1, 18, 2, 128)
    here = rope.rotate(keys, rope.rotation(GRID, 0, 128))
    rope.shift_frames_(here, frames)
    close(here, rope.rotate(keys, rope.rotation(GRID, frames, 128)))


def test_attention_scores_see_differences_of_frames_only() -> None:
    q, k = torch.randn(2, 1, 18, 2, 128)
    scores = []
    for at in (0, 700, 100_000):
        turn = rope.rotation(GRID, at, 128)
        a, b = rope.rotate(q, turn), rope.rotate(k, turn)
        scores.append(torch.einsum("bnhd,bmhd->bhnm", a, b))
    close(scores[1], scores[0], atol=1e-4)
    close(scores[2], scores[0], atol=1e-4)
