"""Row F2 of the reports: a connection that breaks five times costs nothing and doubles nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from pipeline.testworlds.marker import Marker, read_marker
from pipeline.testworlds.prompt import prompt_colour
from tests.e2e.detour import detour, follow_answers
from tests.e2e.livekit.breaks import through_reconnecting
from tests.e2e.picture import grab_frames
from tests.e2e.player import enter, hud, seen_key, wait_for
from tests.e2e.server import ServerProcess
from tests.fakes.places import STRIP
from tests.fakes.relay import LossyRelay
from tests.livekit_server import LiveKitServer

pytestmark = pytest.mark.timeout(240)
PROMPT = "rain over the plain"
TOP = 96  # above it is the marker's grid
# What the page sends as `keys` (inside LiveKit's packets too), when it shows frames, and of which
# of them it knows what they show.
RECORD = """
{
  window.seen = {keys: [], frames: [], displayed: []};
  const {send} = RTCDataChannel.prototype;
  RTCDataChannel.prototype.send = function (data) {
    const text = typeof data === "string" ? data : new TextDecoder("latin1").decode(data);
    const keys = text.search(/{"(nonce|epoch)"/);
    for (let end = text.length; keys >= 0 && end > keys; end = text.lastIndexOf("}", end - 1)) {
      try { seen.keys.push(JSON.parse(text.slice(keys, end + 1))); break; } catch { continue; }
    }
    return send.call(this, data);
  };
  addEventListener("DOMContentLoaded", () => {
    const video = document.querySelector("video");
    video.addEventListener("veldt-frame", ({detail}) => seen.frames.push(detail.atMs));
    const next = (now, {expectedDisplayTime}) => {
      seen.displayed.push(Math.max(now, expectedDisplayTime));
      video.requestVideoFrameCallback(next);
    };
    video.requestVideoFrameCallback(next);
  });
}
"""


@pytest.fixture(scope="session", params=["webrtc", "livekit"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def relay() -> Iterator[LossyRelay]:
    with LossyRelay() as relay:
        yield relay


@pytest.fixture
def break_it(
    transport: str, relay: LossyRelay, page: Page, request: pytest.FixtureRequest
) -> list[Callable[[], None]]:
    """Five ways to break the connection of the page."""

    def cut_the_cable() -> None:
        relay.loss = 1.0
        wait_for(page, "reconnecting")
        relay.loss = 0.0

    if transport == "webrtc":
        follow_answers(page, relay)
        kill = lambda: page.evaluate("() => window.peers.at(-1).close()")  # noqa: E731
        return [kill, cut_the_cable, kill, kill, kill]
    livekit: LiveKitServer = request.getfixturevalue("own_livekit")
    relay.target = livekit.udp_port
    return [cut_the_cable, livekit.restart, cut_the_cable, livekit.restart, cut_the_cable]


@pytest.fixture
def page(open_page: Callable[..., Page], relay: LossyRelay) -> Page:
    page = open_page(script=RECORD + detour(relay))

    def with_prompt(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        route.continue_(post_data=json.dumps({**body, "prompt": PROMPT}))

    page.route("**/v1/sessions", with_prompt)
    return page


@dataclass(frozen=True)
class Shown:
    """What a picture says: what was applied, where one is, which prompt is in force."""

    marker: Marker
    x: float  # of the dot, in pixels
    strip: tuple[float, ...]


def shown(page: Page) -> Shown:
    """The newest picture that can be read."""
    for _ in range(20):
        rgb = grab_frames(page, 1)[0].rgb
        marker = read_marker(rgb)
        _, columns = np.nonzero(rgb[TOP:-STRIP].min(2) > 236)
        if marker is not None and len(columns) > 40:
            strip = rgb[4 - STRIP : -4].mean((0, 1))
            return Shown(marker, float(np.median(columns)), tuple(map(float, strip)))
    raise AssertionError("no picture could be read")


def test_five_drops_change_nothing_and_double_nothing(
    page: Page,
    make_server: Callable[..., ServerProcess],
    break_it: list[Callable[[], None]],
    transport: str,
    request: pytest.FixtureRequest,
) -> None:
    """F2. The page offers no prompt yet, so it is put into what the page asks for."""
    settings = {} if transport == "webrtc" else request.getfixturevalue("own_livekit").settings
    server = make_server(
        veldt_world="tests.fakes.places:make_world",
        veldt_disconnect_grace_seconds="60",
        veldt_lost_seconds="2",
        **settings,
    )
    enter(page, server, "far")
    start = shown(page)
    page.keyboard.press("KeyH")
    walk(page)
    before, figures = shown(page), hud(page)
    assert before.marker.presses == 1
    assert abs(before.x - start.x) > 16
    for drop in break_it:
        through_reconnecting(page, drop)
        grab_frames(page, 2)

    after = shown(page)
    assert after.marker.frame > before.marker.frame
    assert after.marker.presses == before.marker.presses
    assert after.x == pytest.approx(before.x, abs=2)
    assert after.strip == pytest.approx(prompt_colour(PROMPT), abs=12)
    assert {key: hud(page)[key] for key in ("session", "epoch", "key_to_photon_samples")} == {
        key: figures[key] for key in ("session", "epoch", "key_to_photon_samples")
    }
    expect(page.get_by_test_id("hud")).to_be_visible()

    page.wait_for_function("nonce => seen.keys.at(-1).nonce === nonce", arg=hud(page)["nonce"])
    said = len(seen(page, "keys"))
    last = seen(page, "keys")[-1]
    walk(page)
    for _ in range(2):  # and once more a little later
        assert shown(page).marker.presses == before.marker.presses + 1
        grab_frames(page, 12)
    assert last["nonce"] == hud(page)["nonce"]
    pressed = {"held": ["KeyD"], "presses": {"KeyD": 1}}
    base = {**last, "presses": {"KeyD": 1}}
    assert changes(seen(page, "keys")[said:], last) == [
        {**base, **pressed, "seq": last["seq"] + 1},
        {**base, "seq": last["seq"] + 2},
    ]
    assert hud(page)["key_to_photon_samples"] == figures["key_to_photon_samples"] + 1
    assert page.evaluate("() => told.lines") == []
    page.keyboard.press("KeyR")
    epoch = str(last["epoch"] + 1)
    expect(page.get_by_test_id("hud")).to_have_attribute("data-epoch", epoch)
    grab_frames(page, 12)
    assert shown(page).x == pytest.approx(start.x, abs=2)
    assert shown(page).strip == pytest.approx(prompt_colour(PROMPT), abs=12)
    assert page.evaluate("() => told.lines") == ["Back at the start"]
    # Two frames may be due at one moment, of a picture that is repeated: then there were two.
    told, displayed = Counter(seen(page, "frames")), Counter(seen(page, "displayed"))
    assert told <= displayed, "a frame was told of twice"


def walk(page: Page) -> None:
    """Press one key once, until it is seen, and wait until its end is seen.

    Only once the page knows what its frames show: a press before that gives no sample.
    """
    page.wait_for_function("n => seen.frames.length > n", arg=len(seen(page, "frames")))
    page.keyboard.down("KeyD")
    seen_key(page, "KeyD")
    page.keyboard.up("KeyD")
    expect(page.get_by_test_id("shown-keys")).not_to_contain_text("KeyD")
    grab_frames(page, 4)


def seen(page: Page, what: str) -> list[Any]:
    """What the page has recorded."""
    return list(page.evaluate("what => window.seen[what]", what))


def changes(messages: list[dict[str, Any]], last: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that are not what was said before."""
    new: list[dict[str, Any]] = []
    for message in messages:
        if message not in (last, *new):
            new.append(message)
    return new
