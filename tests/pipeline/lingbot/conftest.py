from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread_and_no_gradients() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)
