"""What a player takes away, and what is said where a browser cannot; all of it by keyboard."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from pipeline.testworlds.marker import read_marker
from tests.e2e.page.sight import axe_faults, misplaced, resize, unreadable
from tests.e2e.page.test_feel import marker
from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, hud, press_and_see, seen_key, told, wait_for
from tests.e2e.server import ServerProcess

LACKING = """
delete Navigator.prototype.clipboard;
delete Navigator.prototype.getGamepads;
delete Navigator.prototype.keyboard;
delete Crypto.prototype.randomUUID;
delete window.MediaRecorder;
delete window.AudioContext;
document.execCommand = () => false;
Object.defineProperty(Document.prototype, "fullscreenEnabled", {get: () => false});
Element.prototype.requestFullscreen = () => Promise.reject(new Error("no"));
"""


def test_the_last_seconds_are_a_video(
    page: Page, tiny_server: ServerProcess, tmp_path: Path
) -> None:
    enter(page, tiny_server, "hut")
    grab_frames(page, 40)
    page.keyboard.down("KeyL")
    seen_key(page, "KeyL")
    grab_frames(page, 24)
    page.keyboard.up("KeyL")
    with page.expect_download() as download:
        page.keyboard.press("KeyC")
    told(page, re.compile(r"^Saved the last \d+ s$"))
    assert download.value.suggested_filename.startswith("veldt hut ")
    path = tmp_path / "clip.webm"
    download.value.save_as(path)
    with av.open(str(path)) as clip:
        frames = [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]
        assert clip.duration is not None
        seconds = clip.duration / 1e6
    assert 0 < seconds < 20
    assert len(frames) > 20
    assert frames[0].shape == (160, 256, 3)
    assert np.abs(frames[0].astype(float) - frames[-1]).mean() > 8, "it shows the turn"


def test_a_picture_is_a_png_in_the_world_s_own_pixels(
    page: Page, tiny_server: ServerProcess, tmp_path: Path
) -> None:
    enter(page, tiny_server, "waterhole")
    grab_frames(page, 1)  # there is a picture
    with page.expect_download() as download:
        page.keyboard.press("KeyG")
    path = tmp_path / "picture.png"
    download.value.save_as(path)
    picture = Image.open(path)
    assert (picture.format, picture.size) == ("PNG", (256, 160))
    assert np.asarray(picture.convert("RGB")).std() > 20


def test_the_end_still_has_its_last_seconds(page: Page, tiny_server: ServerProcess) -> None:
    enter(page, tiny_server)
    grab_frames(page, 40)
    page.get_by_test_id("leave").click()
    wait_for(page, "ended")
    with page.expect_download() as download:
        page.get_by_test_id("save-clip-here").click()
    assert download.value.suggested_filename.endswith(".webm")


def test_a_link_leads_to_the_same_place(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    enter(page, tiny_server, "giraffes")
    page.get_by_test_id("share").click()
    told(page, re.compile("Link copied; it works on this computer"))
    link = page.evaluate("() => navigator.clipboard.readText()")
    assert link == f"{tiny_server.url}/?start=giraffes"
    friend = open_page()
    friend.goto(link)
    expect(friend.get_by_test_id("start-giraffes")).to_have_attribute("aria-checked", "true")
    expect(friend.get_by_test_id("start-giraffes")).to_be_focused()
    friend.keyboard.press("Enter")
    wait_for(friend, "playing")


def test_figures_are_shown_traced_and_copied(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    enter(page, tiny_server)
    page.keyboard.press("KeyH")
    expect(page.get_by_test_id("hud-k2p-p50")).to_have_text("not measured")
    line = page.get_by_test_id("hud-sparkline").locator("path")
    expect(line).to_have_attribute("d", "")
    for _ in range(3):  # none is measured before the page knows which frame it shows
        press_and_see(page, "KeyW")
    expect(page.get_by_test_id("hud-k2p-p50")).not_to_have_text("not measured", timeout=10_000)
    expect(line).not_to_have_attribute("d", "")
    page.get_by_test_id("hud-copy").click()
    told(page, "Copied")
    copied = json.loads(page.evaluate("() => navigator.clipboard.readText()"))
    assert copied["session"] == hud(page)["session"]
    assert copied["key_to_photon_samples"] >= 1
    assert axe_faults(page) == []


def test_what_a_browser_cannot_do_is_said_in_words(
    open_page: Callable[..., Page], tiny_server: ServerProcess
) -> None:
    page = open_page(script=LACKING)
    enter(page, tiny_server)
    for key, words in (
        ("KeyC", "This browser cannot record WebM video."),
        ("KeyF", "This browser does not let the page fill the screen."),
    ):
        page.keyboard.press(key)
        told(page, words)
    page.get_by_test_id("share").click()
    by_hand = page.get_by_test_id("copy-by-hand")
    expect(by_hand).to_contain_text("This browser does not let the page copy.")
    expect(page.get_by_test_id("copy-field")).to_be_focused()
    assert page.evaluate("String(getSelection())") == f"{tiny_server.url}/?start=waterhole"
    assert axe_faults(page) + misplaced(page) == []
    page.keyboard.press("KeyW")  # typed into the field: it moves nothing, and changes nothing
    page.keyboard.press("Escape")
    expect(by_hand).to_be_hidden()
    page.keyboard.press("?")
    sheet = page.get_by_test_id("help")
    for words in (
        "This browser offers no gamepads to this page.",
        "This browser cannot record the world as a video.",
        "This browser does not let the page fill the screen.",
    ):
        expect(sheet).to_contain_text(words)
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    wait_for(page, "playing")


# Gives a tool the focus, and waits until the tools are there: they may have faded before.
SHOWN_FOR_FOCUS = """() => new Promise((done, failed) => {
    const help = document.querySelector("[data-testid=help-open]");
    const limit = performance.now() + 10000;
    help.blur();
    help.focus();
    const look = () => {
        if (getComputedStyle(document.querySelector("#topbar")).opacity === "1")
            done(document.activeElement?.dataset.testid);
        else if (performance.now() > limit) failed(new Error("the tools stay away"));
        else requestAnimationFrame(look);
    };
    look();
})"""


def test_everything_by_keyboard(page: Page, tiny_server: ServerProcess) -> None:
    """From the address bar to the end, without a pointer; what has the focus can be seen."""
    page.goto(tiny_server.url)
    expect(page.get_by_test_id("play")).to_be_enabled()
    first = page.locator(".card").first
    expect(first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".card").nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_test_id("play")).to_be_focused()
    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    wait_for(page, "playing")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement?.dataset.testid ?? ''"))
    wanted = {"clip", "picture", "share", "pause", "fullscreen", "hud-toggle", "help-open", "leave"}
    assert wanted <= set(reached)
    assert page.evaluate(SHOWN_FOR_FOCUS) == "help-open", "what has the focus cannot be seen"
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_be_visible()
    faults = axe_faults(page) + unreadable(page)
    for width, height in ((320, 568), (844, 390), (1280, 800)):
        resize(page, width, height)
        faults += misplaced(page)
    assert faults == []
    page.keyboard.press("Escape")
    page.keyboard.press("KeyP")
    wait_for(page, "paused")
    page.keyboard.press("KeyX")  # any key
    wait_for(page, "playing")
    page.keyboard.press("Escape")
    page.get_by_test_id("menu-leave").focus()
    page.keyboard.press("Enter")
    wait_for(page, "ended")
    expect(page.get_by_test_id("play-again")).to_be_focused()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_reduced_motion_is_respected(
    browser: Browser, open_page: Callable[..., Page], tiny_server: ServerProcess, motion: str
) -> None:
    context = browser.new_context(reduced_motion=motion)  # type: ignore[arg-type]
    page = open_page(context=context)
    page.goto(tiny_server.url)
    card = page.locator(".card").first
    expect(card).to_be_visible()
    seconds = page.evaluate(
        "() => parseFloat(getComputedStyle(document.querySelector('.card')).transitionDuration)"
    )
    assert (seconds < 0.001) == (motion == "reduce")
    context.close()


def test_colours_are_those_of_the_place(page: Page, tiny_server: ServerProcess) -> None:
    page.goto(tiny_server.url)
    expect(page.get_by_test_id("play")).to_be_enabled()
    accent = "document.documentElement.style.getPropertyValue('--accent-rgb')"
    page.wait_for_function(f"() => {accent} !== ''")
    red, green, blue = (float(part) for part in page.evaluate(f"() => {accent}").split())
    assert red > green > blue, "a savanna at sunset"


# Plays a file in the browser: how long it is, and which frames stand at its middle and its end.
PLAYED = """async bytes => {
    const video = document.createElement("video");
    const data = Uint8Array.from(atob(bytes), one => one.charCodeAt(0));
    const begun = new Promise(done => video.requestVideoFrameCallback(done));
    video.src = URL.createObjectURL(new Blob([data], {type: "video/webm"}));
    await new Promise((done, failed) => { video.onloadeddata = done; video.onerror = failed; });
    await begun;  // from now on each frame is one that was sought
    const canvas = document.createElement("canvas");
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    const context = canvas.getContext("2d");
    const at = async seconds => {
        const shown = new Promise(done => video.requestVideoFrameCallback(done));
        await new Promise(done => { video.onseeked = done; video.currentTime = seconds; });
        await shown;  // sought is not drawn yet
        context.drawImage(video, 0, 0);
        return [...context.getImageData(0, 0, canvas.width, canvas.height).data];
    };
    const {duration, seekable} = video;
    return {duration, seekable: [seekable.start(0), seekable.end(0)],
            size: [video.videoHeight, video.videoWidth],
            middle: await at(duration / 2), end: await at(duration)};
}"""


def test_a_clip_can_be_sought_and_ends_with_what_was_on_screen(
    page: Page, open_page: Callable[..., Page], make_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:  # fmt: skip
    enter(page, make_server("--world", "marker"))
    grab_frames(page, 40)
    seen = marker(page)
    with page.expect_download() as download:
        page.keyboard.press("KeyC")
    path = tmp_path / "clip.webm"
    download.value.save_as(path)
    blank = open_page()
    blank.goto("about:blank")
    played = blank.evaluate(PLAYED, base64.b64encode(path.read_bytes()).decode())
    assert played["seekable"] == [0, played["duration"]]
    assert 1 < played["duration"] < 20
    shape = (*played["size"], 4)
    middle, end = (
        read_marker(np.array(played[at], np.uint8).reshape(shape)[..., :3])
        for at in ("middle", "end")
    )
    assert middle is not None
    assert end is not None
    assert 0 < middle.frame < end.frame
    half = 16 * played["duration"] / 2
    assert end.frame - middle.frame <= half + 8, "the middle is that of the clip"
    # The newest frames may still have been on their way through the browser's encoder.
    assert end.frame >= seen.frame - 4, "it ends with what was on screen, or later"
