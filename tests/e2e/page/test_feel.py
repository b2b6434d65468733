"""How keys feel: taps count once, holds end, two keys are a diagonal, the page never stutters."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pipeline.testworlds.marker import Marker, read_marker
from tests.e2e.page.tasks import traced
from tests.e2e.picture import Seen, grab_frames, grab_steady, shift_per_second
from tests.e2e.player import enter, seen_key, wait_for
from tests.e2e.server import ServerProcess

FIRST_LOAD_BYTES = 120_000
DIST = Path("web_client/dist")


@pytest.fixture(scope="module")
def marker_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A world whose pictures say which keys they have had."""
    log = tmp_path_factory.mktemp("marker") / "server.log"
    server = ServerProcess(
        log, "--world", "marker", "--seats", "8", veldt_disconnect_grace_seconds="5"
    ).start()
    yield server
    server.stop()


PRESSED = re.compile(r"\bpressed\b")
BACK_FROM_CACHE = """() => {
    window.dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}));
}"""


def marker(page: Page) -> Marker:
    """What the newest readable picture says."""
    for _ in range(20):
        found = read_marker(grab_frames(page, 1)[0].rgb)
        if found is not None:
            return found
    raise AssertionError("no picture could be read")


def presses(page: Page, count: int) -> int:
    """Wait until that many presses are applied, and a chunk longer; returns how many there are."""
    for _ in range(100):
        if marker(page).presses >= count:
            break
    grab_frames(page, 8)
    return marker(page).presses


def let_go(page: Page) -> None:
    """Wait until nothing is held in the pictures; more than a chunk later nothing is, either."""
    for _ in range(100):  # what was made before is played before
        if not marker(page).held:
            break
    grab_frames(page, 8)
    assert marker(page).held == frozenset()


def up_until_pressed_again(page: Page) -> None:
    """W is still down, and moves nothing; pressed again it counts."""
    expect(page.get_by_test_id("shown-keys")).to_have_text("")
    expect(page.get_by_test_id("key-KeyW")).not_to_have_class(PRESSED)
    let_go(page)
    page.keyboard.up("KeyW")
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")


def tap(page: Page, code: str, count: int, milliseconds: float) -> None:
    """Key-downs and key-ups of that length, timed by the page itself."""
    page.evaluate(
        """async ([code, count, ms]) => {
            const send = kind => window.dispatchEvent(
                new KeyboardEvent(kind, {code, key: code.slice(-1).toLowerCase(), bubbles: true}));
            for (let tap = 0; tap < count; tap += 1) {
                send("keydown");
                await new Promise(done => setTimeout(done, ms));
                send("keyup");
                await new Promise(done => setTimeout(done, ms));
            }
        }""",
        [code, count, milliseconds],
    )


def test_a_tap_of_ten_milliseconds_moves_once(page: Page, marker_server: ServerProcess) -> None:
    enter(page, marker_server)
    before = marker(page).presses
    tap(page, "KeyW", 1, 10)
    assert presses(page, before + 1) == before + 1


def test_ten_taps_in_one_chunk_are_ten_presses(page: Page, marker_server: ServerProcess) -> None:
    enter(page, marker_server)  # a chunk lasts 250 ms
    before = marker(page).presses
    tap(page, "KeyD", 10, 10)
    assert presses(page, before + 10) == before + 10


def test_a_held_key_is_one_press_and_auto_repeat_is_none(
    page: Page, marker_server: ServerProcess
) -> None:
    enter(page, marker_server)
    before = marker(page).presses
    page.keyboard.down("KeyW")
    for _ in range(5):
        page.keyboard.down("KeyW")  # again without an up: auto-repeat
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")
    assert presses(page, before + 1) == before + 1


@pytest.mark.parametrize("away", ["blur", "pagehide"])
def test_holding_and_leaving_never_walks_on(
    page: Page, marker_server: ServerProcess, away: str
) -> None:
    """Row B1; hidden tabs, other windows and dialogs are real ones in `test_hidden.py`."""
    enter(page, marker_server)
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.evaluate("kind => { window.dispatchEvent(new Event(kind)); }", away)
    if away == "pagehide":
        page.evaluate(BACK_FROM_CACHE)
    wait_for(page, "playing")
    page.evaluate("() => { window.dispatchEvent(new Event('focus')); }")
    expect(page.get_by_test_id("key-KeyW")).not_to_have_class(PRESSED)
    let_go(page)
    page.keyboard.up("KeyW")
    page.keyboard.down("KeyW")  # pressed again, it counts again
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")


def test_typing_in_a_field_moves_nothing(page: Page, marker_server: ServerProcess) -> None:
    """Row B2, in a field that the test adds: the page has none yet."""
    enter(page, marker_server)
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.evaluate(
        """() => {
            const field = document.createElement("input");
            field.id = "field";
            document.querySelector("main").append(field);
            field.focus();
        }"""
    )
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW")
    before = marker(page).presses
    page.keyboard.type("wasd rph")
    expect(page.locator("#field")).to_have_value("wasd rph")
    grab_frames(page, 8)
    assert marker(page).presses == before
    wait_for(page, "playing")
    page.evaluate("() => { document.querySelector('#field').remove(); }")
    page.keyboard.up("KeyW")
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")


def half(frame: Seen, columns: slice) -> Seen:
    """A part of a picture, as a picture."""
    return Seen(frame.rgb[:, columns], frame.rtp, frame.world)


def test_two_keys_at_once_strafe_diagonally(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server, "waterhole")
    page.keyboard.down("KeyW")
    page.keyboard.down("KeyD")
    seen_key(page, "KeyD")
    seen_key(page, "KeyW")
    frames = grab_steady(page, 24)
    page.keyboard.up("KeyW")
    page.keyboard.up("KeyD")
    left = shift_per_second([half(frame, slice(0, 128)) for frame in frames[::2]])
    right = shift_per_second([half(frame, slice(128, 256)) for frame in frames[::2]])
    assert (left + right) / 2 < -3, "stepping to the right moves all of it to the left"
    assert right - left > 2, "walking ahead moves its halves apart"


def test_meta_lets_everything_go_and_no_modifier_is_ever_held(
    page: Page, marker_server: ServerProcess
) -> None:
    """Row N2: macOS swallows the key-ups under Meta, Alt+Tab the one of Alt."""
    enter(page, marker_server)
    page.keyboard.down("Alt")
    page.evaluate("() => { for (const kind of ['blur', 'focus']) dispatchEvent(new Event(kind)); }")
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    expect(page.get_by_test_id("shown-keys")).to_have_text("KeyW")
    page.keyboard.up("Alt")
    page.keyboard.down("Meta")
    page.keyboard.up("Meta")
    up_until_pressed_again(page)
    page.keyboard.up("KeyW")


def test_an_alt_tap_leaves_the_focus_with_the_game(page: Page, tiny_server: ServerProcess) -> None:
    """Row N2."""
    enter(page, tiny_server)
    prevented = page.evaluate(
        """() => {
            const results = [];
            for (const kind of ["keydown", "keyup"]) {
                const event = new KeyboardEvent(
                    kind, {code: "AltLeft", key: "Alt", bubbles: true, cancelable: true});
                window.dispatchEvent(event);
                results.push(event.defaultPrevented);
            }
            return results;
        }"""
    )
    assert prevented == [True, True]
    assert page.evaluate("() => document.activeElement === document.body")


HOLDS_UP_MS = 50.0  # longer tasks are felt
# Work of a fixed amount at each key: some 20 ms, and six times that when throttled.
BUSY_KEYS = """() => {
    window.sum = 0;
    addEventListener("keydown", () => {
        for (let round = 0; round < 2e7; round += 1) window.sum += round % 7;
    });
}"""


@pytest.mark.alone
def test_no_task_holds_the_page_up_while_playing(
    browser: Browser, page: Page, tiny_server: ServerProcess
) -> None:
    """At a sixth of this computer's speed; time that other processes took is not the page's.

    But they slow the processor itself, six times over; so it is looked at again before it counts.
    """
    enter(page, tiny_server)
    grab_frames(page, 8)
    cdp = page.context.new_cdp_session(page)
    for _ in range(3):
        cdp.send("Emulation.setCPUThrottlingRate", {"rate": 6})
        with traced(browser, page) as own:
            # Nothing of the test runs in the page meanwhile: keys come as the browser's own input.
            for key in "WLJW":
                page.keyboard.down(f"Key{key}")
                page.wait_for_timeout(500)
                page.keyboard.up(f"Key{key}")
                page.wait_for_timeout(250)
        cdp.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        print("the longest tasks", sorted(task.processor_ms for task in own.all)[-5:], "ms")
        if own.holding(HOLDS_UP_MS) == []:
            break
    page.evaluate(BUSY_KEYS)
    cdp.send("Emulation.setCPUThrottlingRate", {"rate": 6})
    with traced(browser, page) as busy:
        page.keyboard.press("KeyW")
    cdp.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    assert len(own.all) > 200
    assert own.holding(HOLDS_UP_MS) == []
    assert busy.holding(HOLDS_UP_MS) != [], "a page that holds itself up was not noticed"


def test_first_load_is_small(page: Page, tiny_server: ServerProcess) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    enter(page, tiny_server)
    files = [DIST / "index.html"]
    files += [DIST / url.removeprefix(f"{tiny_server.url}/") for url in loaded if "/assets/" in url]
    assert any(file.suffix == ".js" for file in files)
    assert sum(len(gzip.compress(file.read_bytes(), 6)) for file in files) <= FIRST_LOAD_BYTES
    assert not any("livekit" in file.name for file in files)
    assert all(url.startswith((tiny_server.url, "blob:")) for url in loaded), (
        "nothing from elsewhere"
    )


def test_pictures_are_smooth_or_crisp_as_one_likes(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server)

    def rendering() -> str:
        return str(
            page.evaluate("() => getComputedStyle(document.querySelector('video')).imageRendering")
        )

    assert rendering() == "auto"
    page.keyboard.press("?")
    page.get_by_test_id("crisp").check()
    page.get_by_test_id("help-close").click()
    assert rendering() == "pixelated"
    page.reload()
    wait_for(page, "playing")
    assert rendering() == "pixelated"


# How visible the tools have been, one after the other: they are there for three seconds only.
WATCH_TOOLS = """() => {
    window.opacities = [];
    setInterval(() => {
        const {opacity} = getComputedStyle(document.querySelector("#topbar"));
        if (opacity !== opacities.at(-1)) opacities.push(opacity);
    }, 50);
}"""


def test_tools_fade_and_keys_stay(page: Page, marker_server: ServerProcess) -> None:
    enter(page, marker_server)
    page.evaluate(WATCH_TOOLS)
    page.wait_for_function("() => opacities.at(-1) === '0'")
    expect(page.get_by_test_id("key-KeyW")).to_have_css("opacity", "1")
    page.mouse.move(620, 300)
    page.wait_for_function("() => opacities.includes('1', opacities.indexOf('0'))")
    page.wait_for_function("() => opacities.at(-1) === '0'")
