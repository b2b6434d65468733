"""A page in headless Chromium that plays, and what it observed. Drives the tests' own harness."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from tests.e2e.conftest import FLAGS, NO_MDNS
from tests.e2e.player import enter, hud
from tests.e2e.server import ServerProcess

# Keeps every `chunk` status and every frame's time of arrival, beside the page's own code.
OBSERVE = """
window.observed = {chunks: [], received: []};
const create = RTCPeerConnection.prototype.createDataChannel;
RTCPeerConnection.prototype.createDataChannel = function (label, options) {
  const channel = create.call(this, label, options);
  if (label === "veldt.status") channel.addEventListener("message", ({data}) => {
    const message = JSON.parse(data);
    if (message.type === "chunk") window.observed.chunks.push(message);
  });
  return channel;
};
addEventListener("DOMContentLoaded", () => {
  const video = document.querySelector("video");
  const seen = (_, meta) => {
    window.observed.received.push([meta.presentedFrames, meta.receiveTime]);
    video.requestVideoFrameCallback(seen);
  };
  video.requestVideoFrameCallback(seen);
});
"""


@contextmanager
def playing(**settings: str) -> Iterator[tuple[Page, ServerProcess]]:
    """A server of its own and a page that plays on it."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        server = ServerProcess(Path(folder) / "server.log", **settings).start()
        browser = driver.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=[*FLAGS, NO_MDNS],
            ignore_default_args=["--headless"],
        )
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.add_init_script(OBSERVE)
            enter(page, server)
            yield page, server
        finally:
            browser.close()
            server.stop()


def press_at_random(page: Page, held: str, keys: str, count: int, seed: int = 1) -> None:
    """Tap keys at random phases of the chunk while another one is held."""
    chance = random.Random(seed)
    page.keyboard.down(held)
    for number in range(count):
        page.keyboard.press(f"Key{keys[number % len(keys)]}", delay=chance.uniform(60, 140))
        page.wait_for_timeout(chance.uniform(250, 550))
    page.keyboard.up(held)


def latencies(page: Page) -> tuple[float, float, int]:
    """Key-to-photon p50 and p95 in ms, and the number of samples, as the HUD has them."""
    figures = hud(page)
    return (
        float(figures["key_to_photon_p50_ms"] or np.nan),
        float(figures["key_to_photon_p95_ms"] or np.nan),
        int(figures["key_to_photon_samples"]),
    )


def observed(page: Page) -> dict[str, Any]:
    """What `OBSERVE` has kept."""
    return dict(json.loads(page.evaluate("JSON.stringify(window.observed)")))


def intervals_ms(received: list[list[float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Times between the arrivals of neighbouring frames; where a callback was missed, none."""
    number, arrived = np.array(received, float).T
    return np.asarray(np.diff(arrived)[np.diff(number) == 1])
