"""What may lie over the world: figures, the help sheet, lines that pass. Read and measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.e2e.page.pictures import photograph, settle
from tests.e2e.page.sight import SIZES, axe_faults, misplaced, resize, unreadable
from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, seen_key, wait_for
from tests.e2e.server import ServerProcess

# What should pass after so many ms stays until it is let go.
LINES_STAY = """
{
    const after = window.setTimeout;
    const held = [];
    window.setTimeout = (action, ms, ...rest) =>
        ms === 2500 ? held.push(action) : after.call(window, action, ms, ...rest);
    window.linesPass = () => { for (const action of held.splice(0)) action(); };
}
"""
KeepPicture = Callable[[Image.Image, str], None]


@pytest.fixture
def playing(open_page: Callable[..., Page], tiny_server: ServerProcess) -> Page:
    """A page that plays under the acacia, and may use the clipboard; its lines wait to pass."""
    page = open_page(script=LINES_STAY)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    enter(page, tiny_server, "under-the-acacia")
    return page


def test_figures_and_help_can_be_read_over_the_world(
    playing: Page, keep_picture: KeepPicture
) -> None:
    page = playing
    page.keyboard.press("KeyH")
    for key in "WLJWLJ":
        page.keyboard.down(f"Key{key}")
        seen_key(page, f"Key{key}")
        page.keyboard.up(f"Key{key}")
        grab_frames(page, 6)
    expect(page.get_by_test_id("hud-sparkline").locator("path")).not_to_have_attribute("d", "")
    page.mouse.move(600, 300)  # the tools are there
    settle(page)
    picture = photograph(page)
    keep_picture(picture, "figures.webp")
    faults = unreadable(page, picture, "key to photon") + axe_faults(page)
    resize(page, *SIZES["phone"])
    faults += unreadable(page)
    resize(page, *SIZES["desktop"])
    page.keyboard.press("KeyH")
    page.keyboard.press("?")
    settle(page)
    picture = photograph(page)
    keep_picture(picture, "help.webp")
    faults += unreadable(page, picture, "How to play") + axe_faults(page)
    for name, (width, height) in SIZES.items():
        resize(page, width, height)
        faults += [f"{name}: {fault}" for fault in misplaced(page)]
    faults += unreadable(page)
    page.get_by_test_id("menu-leave").click()
    wait_for(page, "ended")
    page.keyboard.press("?")  # outside of a session it says less
    faults += axe_faults(page)
    assert not faults, "\n".join(faults)


def test_a_line_that_passes_is_read_beside_the_tools(playing: Page) -> None:
    page = playing
    faults = []
    for name, (width, height) in SIZES.items():
        resize(page, width, height)
        page.keyboard.press("?")
        page.get_by_test_id("menu-share").click()
        toast = page.get_by_test_id("toast")
        expect(toast).to_contain_text("Link copied")
        settle(page)
        faults += [f"{name}: {fault}" for fault in misplaced(page)]
        if name in ("phone", "desktop"):
            faults += [f"{name}: {fault}" for fault in unreadable(page, words="Link copied")]
        page.evaluate("() => { window.linesPass(); }")
        expect(toast).to_have_text("")
    assert not faults, "\n".join(faults)
