"""Gamepad and touch: how far a stick leans is how fast the world moves."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.devices import MOCKED_PADS, Fingers, press_pad, set_pad
from tests.e2e.page.sight import SIZES, misplaced, resize
from tests.e2e.picture import grab_frames, grab_steady, shift_per_second, zoom_per_second
from tests.e2e.player import enter, hud, seen_key, told, wait_for
from tests.e2e.server import ServerProcess
from tests.e2e.test_play import TURN_PIXELS_PER_SECOND

# Keeps every `keys` message that the page sends, with its time.
RECORD_KEYS = """
window.sent = [];
const send = RTCDataChannel.prototype.send;
RTCDataChannel.prototype.send = function (data) {
  if (this.label === "veldt.keys") window.sent.push([performance.now(), JSON.parse(data)]);
  return send.call(this, data);
};
"""


REST = (0, 0, 0, 0)


@pytest.fixture
def pad_page(open_page: Callable[..., Page]) -> Page:
    return open_page(script=MOCKED_PADS + RECORD_KEYS)


def plug_in(page: Page, server: ServerProcess, start: str | None = None) -> None:
    """Play, with a pad at rest."""
    enter(page, server, start)
    set_pad(page, REST, event="gamepadconnected")


def leaned(page: Page, **axes: float) -> None:
    """Wait until the newest control state that was sent has these axes, and no others."""
    page.wait_for_function(
        """wanted => {
            const axes = window.sent.at(-1)?.[1].axes ?? {};
            const names = Object.keys({...axes, ...wanted});
            return names.every(name => Math.abs((axes[name] ?? 0) - (wanted[name] ?? 0)) < 0.03);
        }""",
        arg=axes,
    )


def shown_is_newest(page: Page) -> None:
    """Wait until the frame on screen shows the newest control state."""
    page.wait_for_function(
        """() => {
            const hud = JSON.parse(document.querySelector("[data-hud]").dataset.hud);
            return hud.shown_seq !== null && hud.shown_seq >= window.sent.at(-1)[1].seq;
        }"""
    )


@pytest.mark.parametrize(("tilt", "expected"), [(1.0, 1.0), (-0.575, -0.5)])
def test_right_stick_turns_in_proportion(
    pad_page: Page, tiny_server: ServerProcess, tilt: float, expected: float
) -> None:
    page = pad_page
    plug_in(page, tiny_server, "open-plain")
    expect(page.get_by_test_id("hint")).to_have_text("Left stick walks · right stick looks")
    assert misplaced(page) == []
    set_pad(page, (0, 0, tilt, 0))
    leaned(page, yaw=expected)
    shown_is_newest(page)
    grab_frames(page, 8)  # turning is up to speed
    moved = -shift_per_second(grab_steady(page, 16))  # the picture moves the other way
    assert moved == pytest.approx(expected * TURN_PIXELS_PER_SECOND, rel=0.25)


def test_what_a_pad_does_and_the_figures_are_not_in_each_others_way(
    pad_page: Page, tiny_server: ServerProcess
) -> None:
    page = pad_page
    plug_in(page, tiny_server)
    expect(page.get_by_test_id("hint")).to_be_visible()
    expect(page.locator(".toast.there")).to_be_hidden(timeout=10_000)  # it lies over everything
    page.keyboard.press("KeyH")
    expect(page.get_by_test_id("hud")).to_be_visible()
    for width, height in [*SIZES.values(), (619, 560), (620, 900), (900, 1200)]:
        resize(page, width, height)
        assert misplaced(page) == []
    page.keyboard.press("KeyH")
    expect(page.get_by_test_id("hint")).to_be_visible()


def test_left_stick_walks_with_a_raw_mapping_and_without_an_event(
    pad_page: Page, tiny_server: ServerProcess
) -> None:
    page = pad_page
    enter(page, tiny_server, "open-plain")
    # Six axes and no mapping: triggers rest at −1 on axes 2 and 5, the right stick is 3 and 4.
    set_pad(page, (0, 0, -1, 0, 0, -1), mapping="")
    told(page, "Gamepad found")  # within a second
    set_pad(page, (0, -1, -1, 0, 0, -1), mapping="")
    leaned(page, forward=1)
    expect(page.get_by_test_id("key-KeyW")).to_have_class(r"cap row-1 column-2 leaning")
    shown_is_newest(page)
    assert zoom_per_second(grab_steady(page, 24)) > 1.12
    set_pad(page, (0.05, -0.1, -1, 0.14, 0, -1), mapping="")
    leaned(page)  # all of it is within the dead zone


@pytest.mark.parametrize("event", ["", "gamepaddisconnected"])
def test_a_lost_pad_stops_within_half_a_second(
    pad_page: Page, tiny_server: ServerProcess, event: str
) -> None:
    """Row B3, the pad's half: it vanishes, also without a word."""
    page = pad_page
    plug_in(page, tiny_server)
    set_pad(page, (0, -1, 0, 0))
    leaned(page, forward=1)
    took = page.evaluate(
        """event => new Promise((resolve, reject) => {
            const from = window.sent.length, began = performance.now();
            let last = began, stood = 0;  // for so long the page itself could do nothing
            window.pads[0] = null;
            if (event) window.dispatchEvent(new Event(event));
            const look = () => {
                stood += Math.max(0, performance.now() - last - 20);
                last = performance.now();
                const still = window.sent.slice(from).find(([, keys]) => !keys.axes);
                if (still) resolve(still[0] - began - stood);
                else if (performance.now() - began > 15000) reject(new Error("it walks on"));
                else setTimeout(look, 10);
            };
            look();
        })""",
        event,
    )
    assert took < 500
    told(page, "Gamepad gone. Keys still work.")
    set_pad(page, (0, -1, 0, 0), event="gamepadconnected")  # plugged in again, still leaning
    grab_frames(page, 8)
    leaned(page)


def test_everything_can_be_done_with_a_pad(pad_page: Page, tiny_server: ServerProcess) -> None:
    page = pad_page
    page.goto(tiny_server.url)
    wait_for(page, "arriving")
    expect(page.get_by_test_id("play")).to_be_enabled()
    set_pad(page, REST, event="gamepadconnected")
    press_pad(page, 15)  # right: the second card
    second = page.locator(".card").nth(1)
    expect(second).to_be_focused()
    expect(second).to_have_attribute("aria-checked", "true")
    press_pad(page, 0)
    wait_for(page, "playing")
    press_pad(page, 9)
    wait_for(page, "paused")
    press_pad(page, 0)
    wait_for(page, "playing")
    epoch = hud(page)["epoch"]
    press_pad(page, 3)
    expect(page.get_by_test_id("hud")).to_have_attribute("data-epoch", str(epoch + 1))
    press_pad(page, 8)
    expect(page.get_by_test_id("help")).to_be_visible()
    for button in (13, 13, 15, 15, 15):  # down to the last row, and to its end
        press_pad(page, button)
    expect(page.get_by_test_id("menu-leave")).to_be_focused()
    press_pad(page, 0)
    wait_for(page, "ended")
    press_pad(page, 0)
    wait_for(page, "playing")


def test_thumbs_walk_and_look_and_a_third_finger_breaks_nothing(
    touch_page: Page, tiny_server: ServerProcess
) -> None:
    page = touch_page
    page.add_init_script(RECORD_KEYS)
    page.goto(f"{tiny_server.url}/?start=open-plain")
    page.get_by_test_id("play").tap()
    wait_for(page, "playing")
    hint = page.get_by_test_id("hint")
    expect(hint).to_have_text("Left half walks · right half looks")
    assert misplaced(page) == []
    with Fingers(page) as fingers:
        fingers.down(1, 200, 200)
        expect(page.get_by_test_id("stick-walk")).to_have_class("stick stick-walk there")
        fingers.move(1, 200, 150)
        leaned(page, forward=(50 / 64 - 0.15) / 0.85)
        expect(hint).to_be_hidden()  # it has been understood
        fingers.down(2, 640, 200)
        fingers.move(2, 640 + 64, 200)
        leaned(page, forward=(50 / 64 - 0.15) / 0.85, yaw=1)
        fingers.down(3, 300, 120)  # on neither stick
        fingers.move(3, 320, 60)
        leaned(page, forward=(50 / 64 - 0.15) / 0.85, yaw=1)
        fingers.up(1)
        leaned(page, yaw=1)
        shown_is_newest(page)
        grab_frames(page, 8)
        moved = -shift_per_second(grab_steady(page, 16))
        assert moved == pytest.approx(TURN_PIXELS_PER_SECOND, rel=0.25)
        fingers.up(3)
        fingers.up(2)
        leaned(page)
    expect(page.get_by_test_id("stick-look")).to_have_class("stick stick-look")


def test_fingers_still_down_when_the_window_goes_steer_no_more(
    touch_page: Page, tiny_server: ServerProcess
) -> None:
    page = touch_page
    page.add_init_script(RECORD_KEYS)
    enter(page, tiny_server)
    with Fingers(page) as fingers:
        fingers.down(1, 200, 200)
        fingers.move(1, 200, 120)
        leaned(page, forward=1)
        page.evaluate("() => { window.dispatchEvent(new Event('blur')); }")
        leaned(page)
        fingers.move(1, 200, 100)
        grab_frames(page, 6)
        leaned(page)


def test_caps_can_be_pressed_by_finger(touch_page: Page, tiny_server: ServerProcess) -> None:
    page = touch_page
    enter(page, tiny_server)
    box = page.get_by_test_id("key-KeyW").bounding_box()
    assert box is not None
    with Fingers(page) as fingers:
        fingers.down(1, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        seen_key(page, "KeyW")
        fingers.up(1)
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW")


def test_labels_are_those_of_the_keyboard(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    french = {"KeyW": "z", "KeyA": "q", "KeyS": "s", "KeyD": "d"}
    layout = f"Promise.resolve(new Map(Object.entries({json.dumps(french)})))"
    page = open_page(
        script=f"""Object.defineProperty(Navigator.prototype, "keyboard", {{
            value: {{getLayoutMap: () => {layout}}}, configurable: true}});"""
    )
    enter(page, tiny_server)
    for code, label in french.items():
        expect(page.get_by_test_id(f"key-{code}")).to_have_text(label.upper())
    page.keyboard.down("KeyW")  # the key's place: labelled Z there
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")
