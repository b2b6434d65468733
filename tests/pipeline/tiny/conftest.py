from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from pipeline.tiny.networks import Veldt
from pipeline.tiny.weights import load_weights
from pipeline.tiny.world import TinyWorld, make_world


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def veldt() -> Veldt:
    return load_weights()[0]


@pytest.fixture(scope="session")
def world() -> TinyWorld:
    return make_world(fps=16)
