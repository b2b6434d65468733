from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread_no_gradients_and_the_same_numbers_each_time() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)
