"""A player walks through the embedded world: judged by what is on screen."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from itertools import takewhile

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from pipeline.testworlds.marker import read_marker
from tests.e2e.picture import Seen, grab_frames, grab_steady, shift_per_second, zoom_per_second
from tests.e2e.player import enter, hud, press_and_see, seen_key, wait_for
from tests.e2e.server import ServerProcess

# 45° a second at 166.8 pixels of focal length turn the middle of the picture by this much.
TURN_PIXELS_PER_SECOND = np.radians(45) * 166.8


def test_holding_w_walks_forward(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server, "open-plain")
    standing = zoom_per_second(grab_frames(page, 16))
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    walking = zoom_per_second(grab_steady(page, 24))
    page.keyboard.up("KeyW")
    assert standing == pytest.approx(1.0, abs=0.03)
    assert 1.12 < walking < 1.8, "walking two units a second zooms a third or so"


@pytest.mark.parametrize(("key", "sign"), [("KeyJ", +1), ("KeyL", -1)])
def test_turning_moves_the_picture_the_other_way(
    page: Page, tiny_server: ServerProcess, key: str, sign: int
) -> None:
    enter(page, tiny_server, "open-plain")
    page.keyboard.down(key)
    seen_key(page, key)
    grab_frames(page, 8)  # turning is up to speed
    moved = sign * shift_per_second(grab_steady(page, 16))
    page.keyboard.up(key)
    assert moved == pytest.approx(TURN_PIXELS_PER_SECOND, rel=0.2)


@pytest.mark.parametrize(("key", "sign"), [("KeyA", +1), ("KeyD", -1)])
def test_strafing_moves_the_picture_the_other_way(
    page: Page, tiny_server: ServerProcess, key: str, sign: int
) -> None:
    enter(page, tiny_server, "waterhole")
    page.keyboard.down(key)
    seen_key(page, key)
    moved = sign * shift_per_second(grab_steady(page, 20))
    page.keyboard.up(key)
    assert 4 < moved < 0.7 * TURN_PIXELS_PER_SECOND


def test_key_cap_lights_at_once_and_again_when_seen(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server)
    cap = page.get_by_test_id("key-KeyW")
    page.keyboard.down("KeyW")
    assert "pressed" in (cap.get_attribute("class") or "")
    seen_key(page, "KeyW")
    page.keyboard.up("KeyW")
    assert "pressed" not in (cap.get_attribute("class") or "")
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW")


DELIVERED = """() =>
    JSON.parse(document.querySelector("[data-hud]").dataset.hud).delivered_fps > 5"""


def test_hud_measures_what_the_player_feels(
    page: Page, tiny_server: ServerProcess, transport: str
) -> None:
    enter(page, tiny_server)
    for _ in range(6):  # none is measured before the page knows which frame it shows
        press_and_see(page, "KeyW")
    expect(page.get_by_test_id("hud-k2p-p50")).not_to_have_text("not measured", timeout=10_000)
    # Of the last two seconds, in which the machine may have slept.
    page.wait_for_function(DELIVERED)
    figures = hud(page)
    assert figures["key_to_photon_p50_ms"] > 0
    assert figures["transport"] == transport


def test_leaving_the_window_releases_every_key(page: Page, tiny_server: ServerProcess) -> None:
    """Row B1."""
    enter(page, tiny_server)
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW", timeout=5_000)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    grab_frames(page, 12)
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW")


def test_alt_is_never_held(page: Page, tiny_server: ServerProcess) -> None:
    """Row N2."""
    enter(page, tiny_server)
    page.keyboard.down("AltLeft")
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.keyboard.up("AltLeft")
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("Alt")
    page.keyboard.up("KeyW")


def test_reload_in_mid_press_keeps_the_session_and_measures_nothing_across_it(
    page: Page, tiny_server: ServerProcess
) -> None:
    enter(page, tiny_server)
    session = hud(page)["session"]
    page.keyboard.down("KeyW")
    page.reload()
    wait_for(page, "playing")
    assert hud(page)["session"] == session
    grab_frames(page, 20)
    expect(page.get_by_test_id("hud-k2p-p50")).to_have_text("not measured")
    page.keyboard.up("KeyW")


def test_reset_returns_to_the_start(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server, "hut")
    start = grab_frames(page, 40)[-1]
    page.keyboard.down("KeyL")
    seen_key(page, "KeyL")
    while apart(start, grab_frames(page, 1)[0]) < 16:  # it turns
        pass
    page.keyboard.up("KeyL")
    expect(page.get_by_test_id("shown-keys")).to_have_text("")
    before = hud(page)["epoch"]
    assert apart(start, grab_frames(page, 1)[0]) > 12
    page.keyboard.press("KeyR")
    expect(page.get_by_test_id("hud")).to_have_attribute("data-epoch", str(before + 1))
    while apart(start, grab_frames(page, 1)[0]) > 6:  # a few of before may be on their way
        pass


def apart(one: Seen, other: Seen) -> float:
    """How different two pictures are: the mean over pixels and colours, of 255."""
    return float(np.abs(one.rgb.astype(float) - other.rgb).mean())


def test_plays_with_the_browser_as_it_ships(
    plain_browser: Browser, open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    """Row A1, second finding: no flag of ours helps the browser to connect."""
    page = open_page(within=plain_browser)  # host addresses behind mDNS names
    enter(page, tiny_server)
    assert len(grab_frames(page, 10)) == 10


def test_plays_without_frame_callbacks_and_random_uuid(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    """Rows K2 and K4."""
    page = open_page(
        script="""
        delete HTMLVideoElement.prototype.requestVideoFrameCallback;
        delete window.RTCRtpScriptTransform;
        delete Crypto.prototype.randomUUID;
        """
    )
    enter(page, tiny_server)
    page.keyboard.press("KeyW", delay=300)
    page.wait_for_function("() => document.querySelector('video').currentTime > 1")
    expect(page.get_by_test_id("hud-k2p-p50")).to_have_text("not measured")


def test_a_second_tab_offers_to_take_over(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    """Row F1: a tab that the page opens has its storage. One of them has the controls, always."""
    first = open_page()
    enter(first, tiny_server)
    session = hud(first)["session"]
    with first.expect_popup() as opened:
        first.evaluate("() => { window.open(location.href); }")
    second = opened.value
    wait_for(second, "elsewhere")
    expect(second.get_by_test_id("new-session")).to_be_visible()
    second.keyboard.press("KeyR")  # it has no controls: nothing begins again
    first.keyboard.down("KeyW")
    seen_key(first, "KeyW")
    first.keyboard.up("KeyW")
    assert hud(first)["epoch"] == 0
    wait_for(first, "playing")
    second.get_by_test_id("take-over").click()
    wait_for(second, "playing")
    wait_for(first, "elsewhere")
    assert hud(second)["session"] == session
    first.keyboard.press("KeyR")
    second.keyboard.down("KeyW")
    seen_key(second, "KeyW")
    second.keyboard.up("KeyW")
    assert hud(second)["epoch"] == 0
    first.get_by_test_id("new-session").click()
    first.get_by_test_id("play").click()
    wait_for(first, "playing")
    assert hud(first)["session"] != session
    grab_frames(second, 4)
    wait_for(second, "playing")


def test_a_page_that_was_busy_is_not_behind_afterwards(
    page: Page, make_server: Callable[..., ServerProcess]
) -> None:
    """Row C2: five seconds of nothing, then a reset; nothing old is shown after either."""
    server = make_server(veldt_world="marker")
    enter(page, server)
    page.evaluate("{ const end = performance.now() + 5000; while (performance.now() < end); }")
    behind, shown = behind_the_server(page)
    for _ in range(10):  # each a second later, where the machine itself is still busy
        if behind <= 16 + 4:
            break
        behind, shown = behind_the_server(page)
    assert behind <= 16 + 4, "at most a second, and the chunk that is being played"
    page.keyboard.press("KeyR")
    expect(page.get_by_test_id("hud")).to_have_attribute("data-epoch", "1")
    read = [read_marker(seen.rgb) for seen in grab_frames(page, 32)]
    numbers = [marker.frame for marker in read if marker is not None]
    on_their_way = len(list(takewhile(lambda number: number >= shown, numbers)))
    assert on_their_way <= 16, "no more than a second's, sent before the answer"
    new = numbers[on_their_way:]
    assert len(new) > 8
    assert new == sorted(new)
    assert new[-1] < shown, "a picture of before the reset came back"


# The figures as they are drawn next, and the picture that is on screen at that moment.
BOTH = """() => new Promise(done => {
  const hud = document.querySelector("[data-testid=hud]");
  new MutationObserver((_, observer) => {
    observer.disconnect();
    const video = document.querySelector("video");
    const canvas = document.createElement("canvas");
    canvas.width = video.videoWidth; canvas.height = video.videoHeight;
    canvas.getContext("2d").drawImage(video, 0, 0);
    done([JSON.parse(hud.dataset.hud).chunk_index, canvas.toDataURL().split(",")[1]]);
  }).observe(hud, {attributeFilter: ["data-hud"]});
})"""


def behind_the_server(page: Page) -> tuple[int, int]:
    """How many frames have been made that are not shown yet, and which one is shown."""
    for _ in range(5):
        chunk, png = page.evaluate(BOTH)
        with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
            marker = read_marker(np.asarray(picture.convert("RGB")))
        if marker is not None:
            return 4 * (chunk + 1) - marker.frame, marker.frame
    raise AssertionError("no picture could be read")
