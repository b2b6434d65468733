"""Breaking the connection of a page."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from tests.e2e.player import been, wait_for


def through_reconnecting(page: Page, break_it: Callable[[], None]) -> None:
    """Break the connection of a page that plays; it says so, however soon it plays on."""
    page.evaluate("() => { told.faces.length = 0; }")
    break_it()
    been(page, "reconnecting", 60)
    wait_for(page, "playing", 60)
