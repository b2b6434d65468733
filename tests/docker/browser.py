"""Plays in a browser on another machine and prints as JSON what it used to be reached.

`python -m tests.docker.browser CHROMIUM URL NAME ADDRESS`: NAME leads to ADDRESS there.
"""

from __future__ import annotations

import json
import sys

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import sync_playwright

from tests.e2e.conftest import FLAGS

TRIES = 2  # the page gives up after 12 s, which a busy machine may need
KEEP = """
const Plain = RTCPeerConnection;
window.connections = [];
window.RTCPeerConnection = class extends Plain {
  constructor(...all) { super(...all); window.connections.push(this); }
};
"""
MOVES = """() => [...document.querySelectorAll("video")].some(
  (video) => video.videoWidth > 0 && video.getVideoPlaybackQuality().totalVideoFrames > 12)"""
USED = """async () => {
  const used = [];
  for (const connection of window.connections) {
    const reports = await connection.getStats();
    for (const pair of reports.values()) {
      if (pair.type === "candidate-pair" && pair.nominated && pair.bytesReceived > 0) {
        const local = reports.get(pair.localCandidateId);
        used.push([local.relayProtocol, local.url]);
      }
    }
  }
  return used;
}"""


def play(chromium: str, url: str, name: str, address: str) -> list[list[str | None]]:
    """The relay's protocol and address, for each connection that brought something."""
    names = f"--host-resolver-rules=MAP {name} {address}"
    flags = [*FLAGS, names, "--ignore-certificate-errors"]  # the name's certificate is a test's
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=flags, ignore_default_args=["--headless"]
        )
        for _ in range(TRIES):
            page = browser.new_page()
            page.add_init_script(KEEP)
            page.goto(url)
            page.get_by_role("button", name="Play", exact=True).click()
            try:
                page.wait_for_function(MOVES, timeout=60_000)
                break
            except PlaywrightTimeout:
                print(page.inner_text("body"), file=sys.stderr)
                page.close()
        else:
            sys.exit("no picture came")
        used: list[list[str | None]] = page.evaluate(USED)
        browser.close()
    return used


if __name__ == "__main__":
    print(json.dumps(play(*sys.argv[1:])))
