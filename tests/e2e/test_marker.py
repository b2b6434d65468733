"""What the page says of a frame is what that frame shows: receipt, frame id and marker agree."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from pipeline.testworlds.marker import Marker, read_marker
from tests.e2e.player import enter, hud
from tests.e2e.server import ServerProcess

pytestmark = pytest.mark.timeout(180)

FPS = 16
# Records each displayed frame with the moment that the page gives it, what the page says of it,
# and the moments of key presses.
RECORD = """
() => {
  const video = document.querySelector("video");
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const seen = window.seen = {frames: [], said: [], pressed: []};
  addEventListener("keydown", e => e.repeat || seen.pressed.push(e.timeStamp), true);
  video.addEventListener("veldt-frame", ({detail}) => seen.said.push(detail));
  const take = (now, meta) => {
    canvas.width = video.videoWidth; canvas.height = 96;
    // The video may be at the next frame already: then what is drawn is not what this call is of.
    const frame = new VideoFrame(video);
    const exact = Math.abs(frame.timestamp - meta.mediaTime * 1e6) < 2000;
    context.drawImage(frame, 0, 0);
    frame.close();
    const {data} = context.getImageData(0, 0, canvas.width, 96);
    let red = "";
    for (let i = 0; i < data.length; i += 4) red += String.fromCharCode(data[i]);
    seen.frames.push({atMs: Math.max(now, meta.expectedDisplayTime), exact, w: canvas.width,
                      red: btoa(red)});
    video.requestVideoFrameCallback(take);
  };
  video.requestVideoFrameCallback(take);
}
"""


def marker_of(frame: dict[str, Any]) -> Marker | None:
    red = np.frombuffer(base64.b64decode(frame["red"]), np.uint8).reshape(96, frame["w"])
    return read_marker(np.repeat(red[..., None], 3, axis=2))


@pytest.fixture
def seen(page: Page, make_server: Callable[..., ServerProcess]) -> dict[str, Any]:
    """Thirty taps, of which each is waited for."""
    server = make_server(
        veldt_world="marker", veldt_world_options=f'{{"fps": {FPS}}}', veldt_log_level="warning"
    )
    enter(page, server)
    page.evaluate(RECORD)
    page.wait_for_function("() => window.seen.said.length > 20")
    for number in range(30):
        page.keyboard.press("KeyW" if number % 2 else "KeyA", delay=40 + 7 * number)
        page.wait_for_timeout(60 + 13 * (number % 5))
    page.wait_for_timeout(800)
    figures = hud(page)
    return {**page.evaluate("() => window.seen"), "hud": figures}


def test_receipt_frame_id_and_marker_agree_on_every_displayed_frame(seen: dict[str, Any]) -> None:
    exact = [frame for frame in seen["frames"] if frame["exact"]]
    assert len(exact) > 0.7 * len(seen["frames"])
    shown = {frame["atMs"]: marker_of(frame) for frame in exact}
    said = {each["atMs"]: each for each in seen["said"] if each["atMs"] in shown}
    first = min(said)
    settled = [at for at in shown if at >= first]
    told = [at for at in settled if at in said]
    assert len(told) > 60
    assert len(told) >= len(settled) - 3, "a displayed frame of which nothing was said"
    assert all(shown[at] is not None for at in told)
    offsets = {int(said[at]["frameId"]) - shown[at].frame for at in told if shown[at]}
    assert len(offsets) == 1
    assert all(shown[at].seq == said[at]["seq"] for at in told if shown[at])
    assert len({said[at]["seq"] for at in told}) > 20, "the receipts never changed"


def test_key_to_photon_is_what_the_marker_says(seen: dict[str, Any]) -> None:
    frames = [(frame["atMs"], marker_of(frame)) for frame in seen["frames"]]
    read = [(at, marker.presses) for at, marker in frames if marker is not None]
    latencies = []
    for number, pressed in enumerate(seen["pressed"], start=1):
        first = next((at for at, presses in read if presses >= number), None)
        if first is not None:
            latencies.append(first - pressed)
    assert len(latencies) == 30
    p50 = float(np.percentile(latencies, 50))
    assert seen["hud"]["key_to_photon_samples"] >= 25
    assert seen["hud"]["key_to_photon_p50_ms"] == pytest.approx(p50, abs=1000 / FPS)
