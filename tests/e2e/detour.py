"""A page whose media passes a relay, and what of it is seen there."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import Page, Route

from tests.fakes.relay import LossyRelay

# PORT is the relay's. `window.peers` are the page's connections, oldest first.
DETOUR: Final = """
{
  const peer = RTCPeerConnection.prototype;
  const detour = line => {
    const fields = line.split(" ");
    if (fields[2].toLowerCase() !== "udp") return null;
    fields[4] = "127.0.0.1";
    fields[5] = "PORT";
    return fields.join(" ");
  };
  const without = sdp => sdp.replace(/^a=candidate:.*\\r\\n/gm, "");
  const detoured = sdp => sdp.replace(/^a=candidate:.*\\r\\n/gm, line => {
    const other = detour(line.trim());
    return other === null ? "" : other + "\\r\\n";
  });
  const set = peer.setRemoteDescription;
  peer.setRemoteDescription = function ({type, sdp}) {
    return set.call(this, {type, sdp: detoured(sdp)});
  };
  const add = peer.addIceCandidate;
  peer.addIceCandidate = async function (one) {
    if (!one || !one.candidate) return;
    const candidate = detour(one.candidate);
    if (candidate !== null) await add.call(this, {...one, candidate});
  };
  for (const name of ["localDescription", "pendingLocalDescription"]) {
    const {get} = Object.getOwnPropertyDescriptor(peer, name);
    Object.defineProperty(peer, name, {configurable: true, get() {
      const own = get.call(this);
      return own && {type: own.type, sdp: without(own.sdp)};
    }});
  }
  Object.defineProperty(peer, "onicecandidate", {configurable: true, set() {}, get() {}});
  window.peers = [];
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...given) {
      super(...given);
      window.peers.push(this);
      this.addEventListener("connectionstatechange", () => {
        if (this.connectionState === "connected") this.upAt ??= performance.now();
      });
    }
  };
}
"""

# When each picture was shown, by the page's own clock (ms).
PICTURES: Final = """
addEventListener("DOMContentLoaded", () => {
  const video = document.querySelector("video");
  window.pictures = [];
  const next = now => { window.pictures.push(now); video.requestVideoFrameCallback(next); };
  video.requestVideoFrameCallback(next);
});
"""
RECEIVED: Final = """async () => {
  const all = {};
  for (const peer of window.peers) {
    for (const stat of (await peer.getStats()).values()) {
      if (stat.type === "inbound-rtp" && stat.kind === "video") Object.assign(all, stat);
    }
  }
  return all;
}"""
LONGEST_GAP: Final = """since => {
  const shown = window.pictures.filter(at => at >= since);
  return Math.max(...shown.slice(1).map((at, before) => at - shown[before])) / 1000;
}"""
FIRST_PICTURE: Final = (
    "() => (window.pictures[0] - Math.max(...window.peers.map(p => p.upAt))) / 1000"
)
LOST_PACKETS: Final = 16  # on their way to the page, that a trial waits for
LONGEST_FREEZE_SECONDS: Final = 1.0


def detour(relay: LossyRelay) -> str:
    """The script that lets a page know the relay as the only way to the server.

    The server is told no address of the page, so that it finds no way around either.
    """
    return DETOUR.replace("PORT", str(relay.port))


def follow_answers(page: Page, relay: LossyRelay) -> None:
    """Direct WebRTC opens a port for each connection: carry to the one that the answer names."""

    def learn(route: Route) -> None:
        response = route.fetch()
        port = re.search(r"a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 (\d+)", response.json()["sdp"])
        assert port is not None
        relay.target = int(port[1])
        route.fulfill(response=response)

    page.route("**/v1/sessions/*/connect", learn)


def received(page: Page) -> dict[str, Any]:
    """What the browser says of the video that it receives."""
    return dict(page.evaluate(RECEIVED))


def first_picture_after(page: Page) -> float:
    """Seconds from the moment that the media path was up until there was something to see."""
    page.wait_for_function("() => window.pictures.length > 0")
    return float(page.evaluate(FIRST_PICTURE))


def no_loss_freezes(page: Page, relay: LossyRelay, beside: Page) -> None:
    """Lose one packet in twenty, both ways, until enough were lost; the page must play on.

    `beside` plays on the same machine and loses nothing: for as long as its picture stands, the
    machine was busy with something else. Enough is when some of it was the picture's, and asked
    for again.
    """
    page.wait_for_function("() => window.pictures.length > 30")
    before = received(page)
    since, since_beside = _now(page), _now(beside)
    lost = relay.counters["down_lost"]
    relay.loss = 0.05
    after = before
    with held_up() as late:  # the relay is in this process
        while not (
            relay.counters["down_lost"] - lost >= LOST_PACKETS
            and after["framesDecoded"] - before["framesDecoded"] > 5 * LOST_PACKETS
            and after.get("nackCount", 0) > before.get("nackCount", 0)
        ):
            beside.wait_for_timeout(250)
            after = received(page)
    froze, stood = _longest_gap(page, since), max(_longest_gap(beside, since_beside), max(late))
    relay.loss = 0.0
    figures = {
        name: after.get(name, 0) - before.get(name, 0)
        for name in ("freezeCount", "totalFreezesDuration", "packetsLost", "nackCount", "pliCount")
    }
    print(f"longest gap {froze:.2f} s, beside it {stood:.2f} s", figures, relay.counters)
    assert froze <= LONGEST_FREEZE_SECONDS + stood
    # What the browser itself calls freezes adds up to no more than that for each of them.
    longest = LONGEST_FREEZE_SECONDS + stood
    assert figures["totalFreezesDuration"] <= longest * figures["freezeCount"] + 0.001


@contextmanager
def held_up() -> Iterator[list[float]]:
    """For how long a thread of this process could do nothing: seconds, one after the other."""
    late, over = [0.0], threading.Event()

    def watch() -> None:
        before = time.monotonic()
        while not over.wait(0.02):
            now = time.monotonic()
            late.append(max(0.0, now - before - 0.05))
            before = now

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield late
    finally:
        over.set()
        thread.join()


def _now(page: Page) -> float:
    return float(page.evaluate("() => performance.now()"))


def _longest_gap(page: Page, since: float) -> float:
    return float(page.evaluate(LONGEST_GAP, since))
