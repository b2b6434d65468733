"""The embedded world in a browser: key-to-photon, compute factor, pacing, loop lag.

One page plays on two shared cores, server and browser together; W is held, and other keys are
tapped at random phases of the chunk. Arrival of frames is `receiveTime` of the browser's frame
callback (what the network delivered; the screen's own refresh adds its 16.7 ms grid to anything).
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks.browser.page import intervals_ms, latencies, observed, playing, press_at_random

PRESSES = 60


def figures() -> dict[str, float]:
    """Measure once, about 40 s."""
    with playing() as (page, server):
        page.wait_for_timeout(3000)
        page.evaluate("window.observed.chunks.length = window.observed.received.length = 0")
        press_at_random(page, "KeyW", "JL", PRESSES)
        p50, p95, samples = latencies(page)
        seen = observed(page)
        lag_front = server.metric("veldt_loop_lag_seconds", process="front", quantile="0.99")
        lag_worker = server.metric("veldt_worker_loop_lag_p99_seconds")
        fps = float(
            page.evaluate("JSON.parse(document.querySelector('[data-hud]').dataset.hud).target_fps")
        )
    chunk_ms = 4 / fps * 1e3
    compute = [chunk["compute_ms"] / chunk_ms for chunk in seen["chunks"]]
    gaps = intervals_ms(seen["received"])
    return {
        "tiny_fps": fps,
        "tiny_compute_factor": float(np.percentile(compute, 95)),
        "tiny_real_time_factor": seen["chunks"][-1]["real_time_factor"],
        "k2p_p50_ms_webrtc": p50,
        "k2p_p95_ms_webrtc": p95,
        "k2p_samples_webrtc": float(samples),
        "pace_p50_ms": float(np.percentile(gaps, 50)),
        "pace_p99_minus_p50_ms": float(np.percentile(gaps, 99) - np.percentile(gaps, 50)),
        "loop_lag_p99_ms_front": lag_front * 1e3,
        "loop_lag_p99_ms_worker": lag_worker * 1e3,
    }


def main() -> None:
    """Print for people, then one line for scripts."""
    measured = figures()
    print(f"embedded world at {measured['tiny_fps']:.0f} fps in one browser:")
    for name, value in measured.items():
        print(f"  {name:<28}{value:8.2f}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
