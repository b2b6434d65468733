"""What the page says of a frame is what that frame shows: receipt, frame id and marker agree."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from pipeline.testworlds.marker import Marker, read_marker
from tests.e2e.player import enter, hud
from tests.e2e.server import ServerProcess

pytestmark = pytest.mark.timeout(180)

FPS = 16
TAPS = 30
# Records each displayed frame with the moment that the page gives it, what the page says of it,
# what is in it (its luma, from a second sink of the same track: the video may be at the next frame
# already when a callback runs), and the moments of key presses.
RECORD = """
() => {
  const video = document.querySelector("video");
  const seen = window.seen = {frames: [], pictures: [], said: [], pressed: []};
  addEventListener("keydown", e => {
    // An event that waited for longer than a second counts from when the page had it.
    const now = performance.now();
    if (!e.repeat) seen.pressed.push(now - e.timeStamp < 1000 ? e.timeStamp : now);
  }, true);
  video.addEventListener("veldt-frame", ({detail}) => seen.said.push(detail));
  const take = (now, meta) => {
    seen.frames.push({atMs: Math.max(now, meta.expectedDisplayTime),
                      us: Math.round(meta.mediaTime * 1e6)});
    video.requestVideoFrameCallback(take);
  };
  video.requestVideoFrameCallback(take);
  const [track] = video.srcObject.getVideoTracks();
  const frames = new MediaStreamTrackProcessor({track: track.clone(), maxBufferSize: 64}).readable;
  const read = async () => {
    for await (const frame of frames) {
      const {timestamp: us, format, codedWidth, codedHeight} = frame;
      const bytes = new Uint8Array(frame.allocationSize());
      const [luma] = await frame.copyTo(bytes);
      frame.close();
      let rows = "";
      for (let y = 0; y < 96; y++)
        rows += String.fromCharCode(
          ...bytes.subarray(luma.offset + y * luma.stride, luma.offset + y * luma.stride + 256));
      seen.pictures.push({us, format, luma: btoa(rows)});
    }
  };
  read();
}
"""
# The panel is drawn anew about once a second.
ALL_MEASURED = """taps => {
  const {hud} = document.querySelector("[data-testid=hud]").dataset;
  return JSON.parse(hud).key_to_photon_samples >= taps;
}"""


@dataclass(frozen=True)
class Displayed:
    """One displayed frame: when, what it shows, and what the page said of it."""

    at_ms: float
    marker: Marker
    said: dict[str, Any] | None


@dataclass(frozen=True)
class Play:
    """What was seen while keys were tapped."""

    frames: list[Displayed]
    pressed: list[float]
    hud: dict[str, Any]


def marker_of(picture: dict[str, Any]) -> Marker:
    assert picture["format"] in ("I420", "NV12")
    luma = np.frombuffer(base64.b64decode(picture["luma"]), np.uint8).reshape(96, 256)
    marker = read_marker(np.repeat(luma[..., None], 3, axis=2))
    assert marker is not None, "a picture that cannot be read"
    return marker


def play(page: Page, make_server: Callable[..., ServerProcess]) -> Play:
    """Thirty taps, each of them seen in the end."""
    server = make_server(
        veldt_world="marker", veldt_world_options=f'{{"fps": {FPS}}}', veldt_log_level="warning"
    )
    enter(page, server)
    page.wait_for_function("() => document.querySelector('video').srcObject !== null")
    page.evaluate(RECORD)
    page.wait_for_function("() => window.seen.said.length > 20")
    for number in range(TAPS):
        page.keyboard.press("KeyW" if number % 2 else "KeyA", delay=40 + 7 * number)
        page.wait_for_timeout(60 + 13 * (number % 5))
    page.wait_for_function(ALL_MEASURED, arg=TAPS)
    page.wait_for_function("() => window.seen.said.length > 120")
    figures = hud(page)
    seen = page.evaluate("() => window.seen")
    said = {each["atMs"]: each for each in seen["said"]}
    pictures = {picture["us"]: picture for picture in seen["pictures"]}
    shift = clock_shift([frame["us"] for frame in seen["frames"]], list(pictures))
    displayed = [{**frame, "us": frame["us"] + shift} for frame in seen["frames"]]
    whole = next(
        k for k, one in enumerate(displayed) if one["us"] in pictures and one["atMs"] in said
    )
    frames = [
        Displayed(frame["atMs"], marker_of(pictures[frame["us"]]), said.get(frame["atMs"]))
        for frame in displayed[whole:]
        if frame["atMs"] <= max(said)
        and frame["us"] <= max(pictures)  # the newest are on their way
    ]
    return Play(frames, seen["pressed"], figures)


def clock_shift(displayed: list[int], decoded: list[int]) -> int:
    """What lies between the two clocks, in µs: constant, and 0 on some transports."""
    votes = Counter(other - one for one in displayed for other in decoded)
    return votes.most_common(1)[0][0]


def test_receipt_frame_id_and_marker_agree_on_every_displayed_frame(
    page: Page, make_server: Callable[..., ServerProcess]
) -> None:
    seen = play(page, make_server)
    assert len(seen.frames) > 100
    for frame in seen.frames:
        assert frame.said is not None, "a displayed frame of which nothing was said"
        assert frame.marker.seq == frame.said["seq"]
    ids = {int(one.said["frameId"]) - one.marker.frame for one in seen.frames if one.said}
    assert len(ids) == 1, "ids and markers do not count alike"
    assert len({frame.marker.seq for frame in seen.frames}) > TAPS // 4, "they hardly changed"
    key_to_photon_is_what_the_marker_says(seen)


def key_to_photon_is_what_the_marker_says(seen: Play) -> None:
    """Within one frame interval; from each press to the first frame that has applied it."""
    latencies = [
        next(frame.at_ms for frame in seen.frames if frame.marker.presses >= number) - pressed
        for number, pressed in enumerate(seen.pressed, start=1)
    ]
    assert len(latencies) == TAPS
    assert seen.hud["key_to_photon_samples"] == TAPS
    interval = 1000 / FPS
    for share in (50, 95):
        of_the_marker = np.percentile(latencies, share, method="inverted_cdf")
        assert seen.hud[f"key_to_photon_p{share}_ms"] == pytest.approx(of_the_marker, abs=interval)
    assert seen.hud["key_to_photon_now_ms"] == pytest.approx(latencies[-1], abs=interval)
