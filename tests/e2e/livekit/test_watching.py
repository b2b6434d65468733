"""Somebody opens the link of a player: they see, and play once they are handed the controls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, hud, seen_key, wait_for
from tests.e2e.server import ServerProcess

pytestmark = pytest.mark.timeout(150)
OpenPage = Callable[..., Page]


def link_of(page: Page, server: ServerProcess) -> str:
    """What the menu's button copies."""
    page.evaluate(
        "() => { navigator.clipboard.writeText = text => { window.copied = text;"
        " return Promise.resolve(); }; }"
    )
    page.keyboard.press("Shift+Slash")
    page.get_by_test_id("invite").click()
    page.wait_for_function("() => window.copied !== undefined")
    page.get_by_test_id("help-close").click()
    link = str(page.evaluate("() => window.copied"))
    assert link.startswith(server.url)
    return link


def test_a_spectator_sees_and_cannot_play_until_granted(
    open_page: OpenPage, make_server: Callable[..., ServerProcess]
) -> None:
    server = make_server(veldt_world="marker")
    player, spectator = open_page(), open_page()
    enter(player, server)
    spectator.goto(link_of(player, server))
    wait_for(spectator, "watching")
    assert len(grab_frames(spectator, 10)) == 10

    samples = hud(player)["key_to_photon_samples"]
    spectator.keyboard.press("KeyW", delay=300)
    spectator.keyboard.press("KeyR")
    grab_frames(player, 8)
    expect(player.get_by_test_id("shown-keys")).not_to_contain_text("KeyW")
    assert hud(player)["key_to_photon_samples"] == samples
    assert hud(player)["epoch"] == 0

    player.keyboard.press("Shift+Slash")
    player.get_by_test_id("grant").click(timeout=30_000)
    player.get_by_test_id("help-close").click()
    wait_for(spectator, "playing")
    expect(spectator.get_by_test_id("pill")).to_have_text("You have the controls")
    spectator.keyboard.down("KeyW")
    seen_key(spectator, "KeyW")
    spectator.keyboard.up("KeyW")

    player.keyboard.press("Shift+Slash")
    player.get_by_test_id("take-back").click()
    player.get_by_test_id("help-close").click()
    wait_for(spectator, "watching")
    player.keyboard.down("KeyD")
    seen_key(player, "KeyD")
    player.keyboard.up("KeyD")

    player.get_by_test_id("leave").first.click()
    wait_for(spectator, "ended")
    expect(spectator.get_by_test_id("reason")).to_contain_text("over")


def test_a_link_that_leads_nowhere_says_so(
    page: Page, make_server: Callable[..., ServerProcess]
) -> None:
    server = make_server(veldt_world="marker")
    page.goto(f"{server.url}/#watch=0123456789abcdef0123.{'0' * 64}")
    wait_for(page, "ended")
    expect(page.get_by_test_id("sheet-title")).to_have_text("Nothing to watch")
