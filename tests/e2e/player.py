"""The moves of somebody at the page."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.server import ServerProcess


def enter(page: Page, server: ServerProcess, start: str | None = None) -> None:
    """Open the page and play from a start point."""
    page.goto(server.url if start is None else f"{server.url}/?start={start}")
    page.get_by_test_id("play").click()
    wait_for(page, "playing")


def wait_for(page: Page, state: str, seconds: float = 30) -> None:
    """Wait until the page is in a state of PAGE.md. A world that plays slowly plays."""
    words = re.compile("^(playing|slow)$") if state == "playing" else state
    expect(page.locator("body")).to_have_attribute("data-state", words, timeout=seconds * 1000)


def seen_key(page: Page, code: str) -> None:
    """Wait until a frame that shows this key as held is on screen (its receipt came back)."""
    expect(page.get_by_test_id("shown-keys")).to_contain_text(code, timeout=10_000)


# The HUD is drawn once a second and when something changes; where nobody looks, not at all.
DRAWN = """() => new Promise(done => {
  const hud = document.querySelector("[data-testid=hud]");
  if (document.visibilityState === "hidden") done(hud.dataset.hud);
  new MutationObserver((_, observer) => {
    observer.disconnect();
    done(hud.dataset.hud);
  }).observe(hud, {attributeFilter: ["data-hud"]});
})"""


def hud(page: Page) -> dict[str, Any]:
    """What the HUD says from now on, as its copy button would give it."""
    return dict(json.loads(page.evaluate(DRAWN)))
