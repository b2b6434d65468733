"""What every test shares."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "veldt",
    deadline=None,  # a busy machine is slow, and nothing else
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,  # what fails there fails here too
    print_blob=True,
)
settings.load_profile("veldt")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--keep-pictures docs/pictures` renews the pictures of the docs: `make pictures`."""
    parser.addoption(
        "--keep-pictures",
        type=Path,
        default=None,
        metavar="FOLDER",
        help="keep the pictures that the tests of the page take",
    )


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the service does."""
    return "asyncio"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last.

    Playwright's synchronous driver keeps an event loop running on this thread from its first use
    to the end of the session, and no async test can run beside it.
    """
    items.sort(key=_has_browser)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Of two processes one has all of a file on one transport (xdist looks before it is sorted)."""
    callspec = getattr(item, "callspec", None)
    transport = callspec.params.get("transport") if callspec is not None else None
    group = f"{item.path} {transport} {_has_browser(item)}"
    item.add_marker(pytest.mark.xdist_group(group))


def _has_browser(item: pytest.Item) -> bool:
    return "playwright" in getattr(item, "fixturenames", ())


def pytest_collection_finish() -> None:
    """What the imports have made stays: looking through it is most of every `gc.collect()`."""
    gc.collect()
    gc.freeze()
