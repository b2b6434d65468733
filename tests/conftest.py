"""What every test shares."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("veldt", deadline=None)  # a busy machine is slow, and nothing else
settings.load_profile("veldt")


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
    items.sort(key=lambda item: "playwright" in getattr(item, "fixturenames", ()))
