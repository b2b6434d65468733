"""Key-to-photon of everything but the model: a world of zero compute, a frame every 62.5 ms."""

from __future__ import annotations

import json

from benchmarks.browser.page import latencies, playing, press_at_random


def figures() -> dict[str, float]:
    """Measure once, about 30 s."""
    options = json.dumps({"fps": 16, "frames_per_chunk": 1})
    with playing(veldt_world="marker", veldt_world_options=options) as (page, _):
        page.wait_for_timeout(2000)
        press_at_random(page, "KeyW", "AD", 50)
        p50, p95, samples = latencies(page)
    return {
        "transport_k2p_p50_ms_webrtc": p50,
        "transport_k2p_p95_ms_webrtc": p95,
        "transport_k2p_samples_webrtc": float(samples),
    }


def main() -> None:
    """Print for people, then one line for scripts."""
    measured = figures()
    print("zero-compute world, one frame a chunk, direct WebRTC on loopback:")
    for name, value in measured.items():
        print(f"  {name:<32}{value:8.2f}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
