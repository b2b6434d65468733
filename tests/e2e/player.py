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
    words = re.compile(_faces(state))
    expect(page.locator("body")).to_have_attribute("data-state", words, timeout=seconds * 1000)


def seen_key(page: Page, code: str) -> None:
    """Wait until a frame that shows this key as held is on screen (its receipt came back)."""
    expect(page.get_by_test_id("shown-keys")).to_contain_text(code)


def press_and_see(page: Page, code: str) -> None:
    """Press a key, see that the world shows it, and see it end."""
    page.keyboard.down(code)
    seen_key(page, code)
    page.keyboard.up(code)
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text(code)


# Installed in every page: what was there for a moment only may be gone before a test looks.
WITNESS = """
addEventListener("DOMContentLoaded", () => {
  const {body} = document, toast = document.querySelector("#toast");
  const told = window.told = {lines: [], faces: [body.dataset.state]};
  if (toast !== null)
    new MutationObserver(changes => {
      for (const {addedNodes} of changes)
        for (const {textContent} of addedNodes) told.lines.push(textContent);
    }).observe(toast, {childList: true});
  new MutationObserver(() => told.faces.push(body.dataset.state))
    .observe(body, {attributeFilter: ["data-state"]});
});
"""
TOLD = """words => {
  const at = told.lines.findIndex(line => new RegExp(words).test(line));
  return told.lines.splice(0, at + 1).length > 0;
}"""
BEEN = """words => {
  const at = told.faces.findIndex(face => new RegExp(words).test(face));
  return told.faces.splice(0, at + 1).length > 0;
}"""


def told(page: Page, words: str | re.Pattern[str]) -> None:
    """Wait until the page has said this in a line that passes; each line counts once."""
    pattern = f"^{re.escape(words)}$" if isinstance(words, str) else words.pattern
    page.wait_for_function(TOLD, arg=pattern)


def been(page: Page, state: str, seconds: float = 30) -> None:
    """Wait until the page has been in a state, perhaps no longer; each time counts once."""
    page.wait_for_function(BEEN, arg=_faces(state), timeout=seconds * 1000)


def _faces(state: str) -> str:
    return "^(playing|slow)$" if state == "playing" else f"^{state}$"


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
