"""Every state is reached for real: its words, its next step, its looks at every size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.e2e.page.pictures import (
    DESK,
    HAND,
    HAND_SCALE,
    Behind,
    Look,
    file_name,
    in_the_hand,
    look,
    photograph,
    settle,
    source,
)
from tests.e2e.page.sight import SIZES, axe_faults, misplaced, resize, unreadable
from tests.e2e.page.states import STATES, Reached, Stage, Unhurried, faces, reached
from tests.e2e.picture import grab_frames
from tests.e2e.player import hud, seen_key, wait_for
from tests.e2e.server import ServerProcess


def test_each_state_of_the_page_is_reached() -> None:
    assert [state.name for state in STATES] == faces()


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_state_has_its_words_a_next_step_and_good_looks(
    state: Reached,
    page: Page,
    tiny_server: ServerProcess,
    make_server: Callable[..., ServerProcess],
    unhurried: Callable[[], Unhurried],
    open_page: Callable[..., Page],
    keep_picture: Callable[[Image.Image, str], None],
) -> None:
    stage = Stage(page, tiny_server, make_server, unhurried, open_page)
    with reached(state, stage):
        session = hud(page)["session"]
        expect(page.locator("body")).to_contain_text(state.words)
        expect(page.get_by_test_id("pill")).to_contain_text(state.pill)
        expect(page).to_have_title(state.title)
        if state.step is not None:
            expect(page.get_by_test_id(state.step)).to_be_visible()
            expect(page.get_by_test_id(state.step)).to_be_enabled()
        for _ in range(5):  # a world that is walked through is another one soon
            settle(page)
            before = source(page, state.behind)
            picture = photograph(page)
            faults = looks_wrong(look(page, picture, state.behind, before), state.behind)
            if not faults or state.behind is not Behind.WORLD:
                break
        keep_picture(picture, file_name(state.name, DESK))
        if state.name in TELLS:
            page.wait_for_function(TELLS[state.name])
        faults += unreadable(page, picture, state.words) + axe_faults(page)
        with in_the_hand(page) as hand:
            words = state.words_in_hand or state.words
            expect(page.locator("body")).to_contain_text(words)
            if state.behind is Behind.WORLD:
                expect(page.get_by_test_id("hint")).to_be_visible()
            settle(page)
            picture = photograph(page, hand)
            keep_picture(picture, file_name(state.name, HAND))
            assert picture.size == (HAND[0] * HAND_SCALE, HAND[1] * HAND_SCALE)
            seen = misplaced(page) + unreadable(page, picture, words, hand)
            faults += [f"in the hand: {fault}" for fault in seen]
        expect(page.get_by_test_id("hint")).to_be_hidden()  # no finger any more
        for name, (width, height) in SIZES.items():
            resize(page, width, height)
            faults += [f"{name}: {fault}" for fault in misplaced(page)]
            if name == "phone":
                faults += [f"{name}: {fault}" for fault in unreadable(page)]
        faults += covered_faults(page)
        now = page.locator("body").get_attribute("data-state")
        assert now == state.name or {now, state.name} == {"playing", "slow"}
    if state.name == "reconnecting":
        heals(page, session)
    assert not faults, "\n".join(faults)


# What a state tells while it lasts: the claim runs out as the button's border, seconds count up,
# the progress line has the server's own words.
TELLS = {
    "turn": """() => {
        const button = document.querySelector("[data-testid=step-in]");
        const left = Number(/\\((\\d+)\\)/.exec(button.textContent)[1]);
        const border = Number(button.style.getPropertyValue("--left"));
        return left < 20 && Math.abs(border - left / 20) < 1e-6;
    }""",
    "reconnecting": """() => {
        const title = document.querySelector("[data-testid=sheet-title]").textContent;
        const seconds = Number(/\\((\\d+) s\\)/.exec(title)[1]);
        window.secondsBefore ??= seconds;
        return seconds > window.secondsBefore;
    }""",
    "starting": """() =>
        /^preparing (encode|denoise|decode)$/.test(document.querySelector(".more").textContent)
    """,
}


def covered_faults(page: Page) -> list[str]:
    """What is wrong with the places of things when figures or help are opened over a state."""
    faults = []
    page.keyboard.press("KeyH")
    for name, (width, height) in SIZES.items():
        resize(page, width, height)
        if page.get_by_test_id("hud").is_visible():
            faults += [f"figures, {name}: {fault}" for fault in misplaced(page)]
    page.keyboard.press("KeyH")
    page.keyboard.press("?")
    for name in ("phone on its side", "phone"):
        resize(page, *SIZES[name])
        faults += [f"help, {name}: {fault}" for fault in misplaced(page)]
    page.keyboard.press("Escape")
    return faults


def looks_wrong(seen: Look, behind: Behind) -> list[str]:
    """What is to be seen behind the words, where it is not."""
    darkest, brightest, softest, sharpest = behind.value
    faults = []
    if not darkest <= seen.brightness <= brightest:
        faults.append(f"brightness {seen.brightness:.2f} is not that of {behind}")
    if not softest <= seen.sharpness <= sharpest:
        faults.append(f"sharpness {seen.sharpness:.2f} is not that of {behind}")
    if seen.likeness < (0.5 if behind is Behind.WORLD else 0.7):  # somebody walks there
        faults.append(f"likeness {seen.likeness:.2f}: this is another picture")
    return faults


def test_thinking_better_of_it_while_nothing_is_ready(
    page: Page,
    tiny_server: ServerProcess,
    make_server: Callable[..., ServerProcess],
    unhurried: Callable[[], Unhurried],
    open_page: Callable[..., Page],
) -> None:
    """Nothing becomes ready before the test lets it."""
    [checking] = [state for state in STATES if state.name == "checking"]
    with reached(checking, Stage(page, tiny_server, make_server, unhurried, open_page)):
        page.get_by_test_id("withdraw").click()
        wait_for(page, "arriving")
        expect(page.get_by_test_id("play")).to_be_enabled()


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
