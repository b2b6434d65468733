"""What the tests of the page share: one transport, and an eye on the console."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import ConsoleMessage, Page

# How Chromium notes a request that was refused or found nobody: no fault of the page.
_REFUSED = re.compile(r"Failed to load resource: (the server responded with|net::ERR_)")


@pytest.fixture(scope="session")
def transport() -> str:
    """What is tested here is the same on every transport."""
    return "webrtc"


@pytest.fixture
def open_page(open_page: Callable[..., Page], faults: list[str]) -> Callable[..., Page]:
    """Pages whose console must stay free of errors."""

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not _REFUSED.match(message.text):
            faults.append(f"console: {message.text}")

    def make(**options: object) -> Page:
        page = open_page(**options)
        page.on("console", note)
        return page

    return make


@pytest.fixture
def touch_page(open_page: Callable[..., Page], browser: object) -> Iterator[Page]:
    """A phone on its side, with fingers."""
    context = browser.new_context(  # type: ignore[attr-defined]
        viewport={"width": 844, "height": 390}, has_touch=True, is_mobile=True
    )
    yield open_page(context=context)
    context.close()
