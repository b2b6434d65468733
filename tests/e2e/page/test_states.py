"""Every state is reached for real: its words, its next step, its looks at every size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.sight import SIZES, axe_faults, misplaced, resize, unreadable
from tests.e2e.page.states import STATES, Reached, Stage, reached
from tests.e2e.picture import grab_frames
from tests.e2e.player import hud, seen_key, wait_for
from tests.e2e.server import ServerProcess


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_state_has_its_words_a_next_step_and_good_looks(
    state: Reached,
    page: Page,
    tiny_server: ServerProcess,
    make_server: Callable[..., ServerProcess],
    open_page: Callable[..., Page],
) -> None:
    stage = Stage(page, tiny_server, make_server, open_page)
    with reached(state, stage):
        session = hud(page)["session"]
        expect(page.locator("body")).to_contain_text(state.words)
        expect(page.get_by_test_id("pill")).to_contain_text(state.pill)
        if state.step is not None:
            expect(page.get_by_test_id(state.step)).to_be_visible()
            expect(page.get_by_test_id(state.step)).to_be_enabled()
        faults = axe_faults(page)
        for name, (width, height) in SIZES.items():
            resize(page, width, height)
            faults += [f"{name}: {fault}" for fault in misplaced(page)]
            if name in ("phone", "desktop"):
                faults += [f"{name}: contrast: {fault}" for fault in unreadable(page)]
        now = page.locator("body").get_attribute("data-state")
        assert now == state.name or {now, state.name} == {"playing", "slow"}
    if state.name == "reconnecting":
        heals(page, session)
    assert faults == []


def heals(page: Page, session: str) -> None:
    """The worker goes on: the same session plays, and W, down all the while, moves nothing."""
    wait_for(page, "playing")
    assert hud(page)["session"] == session
    grab_frames(page, 8)
    expect(page.get_by_test_id("shown-keys")).to_have_text("")
    page.keyboard.up("KeyW")
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")
