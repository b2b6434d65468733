"""A link that is opened in a tab which plays already: the player is asked, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.sight import SIZES, axe_faults, misplaced, resize, unreadable
from tests.e2e.player import enter, hud, wait_for
from tests.e2e.server import ServerProcess


def follow_a_link(page: Page, server: ServerProcess) -> None:
    """Play at the hut, then follow a link to the waterhole."""
    enter(page, server, "hut")
    assert page.url.endswith("/?start=hut")
    page.evaluate("session => (window.name = session)", hud(page)["session"])
    page.goto(f"{server.url}/?start=waterhole")
    wait_for(page, "crossroads")


@pytest.fixture
def at_the_crossroads(page: Page, tiny_server: ServerProcess) -> Page:
    follow_a_link(page, tiny_server)
    return page


def test_it_looks_well(page: Page, make_server: Callable[..., ServerProcess]) -> None:
    follow_a_link(page, make_server(veldt_disconnect_grace_seconds="60"))
    expect(page.get_by_test_id("reason")).to_contain_text("plays another place than the link")
    expect(page.get_by_test_id("go-elsewhere")).to_have_text("Begin: The waterhole")
    expect(page.get_by_test_id("go-elsewhere")).to_be_focused()
    faults = axe_faults(page)
    for name, (width, height) in SIZES.items():
        resize(page, width, height)
        faults += [f"{name}: {fault}" for fault in misplaced(page) + unreadable(page)]
    assert faults == []


def test_on_where_one_was(at_the_crossroads: Page) -> None:
    page = at_the_crossroads
    page.get_by_test_id("go-on").click()
    wait_for(page, "playing")
    assert hud(page)["session"] == page.evaluate("window.name")
    assert page.url.endswith("/?start=hut")
    page.reload()  # asks nothing more
    wait_for(page, "playing")


def test_on_where_the_link_leads_and_the_seat_is_free(at_the_crossroads: Page) -> None:
    page = at_the_crossroads
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as closed:
        page.keyboard.press("Enter")
    assert closed.value.status in (202, 204)
    wait_for(page, "playing")
    assert hud(page)["session"] != page.evaluate("window.name")
    assert page.url.endswith("/?start=waterhole")
