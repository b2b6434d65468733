"""A player walks through the embedded world: judged by what is on screen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from pipeline.testworlds.marker import read_marker
from tests.e2e.picture import grab_frames, shift_per_second, zoom_per_second
from tests.e2e.player import enter, hud, seen_key, wait_for
from tests.e2e.server import ServerProcess

# 45° a second at 166.8 pixels of focal length turn the middle of the picture by this much.
TURN_PIXELS_PER_SECOND = np.radians(45) * 166.8


def test_holding_w_walks_forward(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server, "open-plain")
    standing = zoom_per_second(grab_frames(page, 16))
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    walking = zoom_per_second(grab_frames(page, 24))
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
    moved = sign * shift_per_second(grab_frames(page, 16))
    page.keyboard.up(key)
    assert moved == pytest.approx(TURN_PIXELS_PER_SECOND, rel=0.2)


@pytest.mark.parametrize(("key", "sign"), [("KeyA", +1), ("KeyD", -1)])
def test_strafing_moves_the_picture_the_other_way(
    page: Page, tiny_server: ServerProcess, key: str, sign: int
) -> None:
    enter(page, tiny_server, "waterhole")
    page.keyboard.down(key)
    seen_key(page, key)
    moved = sign * shift_per_second(grab_frames(page, 20))
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


def test_hud_measures_what_the_player_feels(
    page: Page, tiny_server: ServerProcess, transport: str
) -> None:
    enter(page, tiny_server)
    for _ in range(6):
        page.keyboard.press("KeyW", delay=120)
        seen_or_gone = page.get_by_test_id("shown-keys")
        expect(seen_or_gone).not_to_contain_text("KeyW")
    expect(page.get_by_test_id("hud-k2p-p50")).not_to_have_text("not measured", timeout=10_000)
    figures = hud(page)
    assert 0 < figures["key_to_photon_p50_ms"] < 5000
    assert figures["delivered_fps"] > 5
    assert figures["transport"] == transport


def test_leaving_the_window_releases_every_key(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server)
    page.keyboard.down("KeyW")
    seen_key(page, "KeyW")
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW", timeout=5_000)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    grab_frames(page, 12)
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyW")


def test_alt_is_never_held(page: Page, tiny_server: ServerProcess) -> None:
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
    grab_frames(page, 40)
    page.keyboard.down("KeyL")
    seen_key(page, "KeyL")
    grab_frames(page, 24)
    page.keyboard.up("KeyL")
    before = hud(page)["epoch"]
    away = grab_frames(page, 1)[0].rgb.astype(float)
    page.keyboard.press("KeyR")
    expect(page.get_by_test_id("hud")).to_have_attribute(
        "data-epoch", str(before + 1), timeout=10_000
    )
    back = grab_frames(page, 6)[-1].rgb.astype(float)
    assert np.abs(back - away).mean() > 8


def test_plays_with_the_browser_as_it_ships(
    plain_browser: Browser, open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    page = open_page(within=plain_browser)  # host addresses behind mDNS names
    enter(page, tiny_server)
    assert len(grab_frames(page, 10)) == 10


def test_plays_without_frame_callbacks_and_random_uuid(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
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
    first = open_page()
    enter(first, tiny_server)
    stored = first.evaluate("JSON.stringify({...sessionStorage})")
    second = open_page(
        context=first.context,
        script=f"for (const [k, v] of Object.entries({stored})) sessionStorage.setItem(k, v);",
    )
    second.goto(tiny_server.url)
    wait_for(second, "elsewhere")
    wait_for(first, "playing")
    second.get_by_test_id("take-over").click()
    wait_for(second, "playing")
    wait_for(first, "elsewhere")
    second.keyboard.down("KeyW")
    seen_key(second, "KeyW")
    second.keyboard.up("KeyW")


def test_a_page_that_was_busy_is_not_behind_afterwards(
    page: Page, make_server: Callable[..., ServerProcess]
) -> None:
    server = make_server(veldt_world="marker")
    enter(page, server)
    page.evaluate("{ const end = performance.now() + 5000; while (performance.now() < end); }")
    page.wait_for_timeout(2000)
    shown = read_marker(grab_frames(page, 1)[0].rgb)
    made = 4 * (hud(page)["chunk_index"] + 1)
    assert shown is not None
    assert made - shown.frame <= 16 + 4, "at most a second, and the chunk that is being played"
