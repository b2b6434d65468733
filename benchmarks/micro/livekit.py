"""Key-to-photon through a real livekit-server on loopback: without compute, and of the tiny world.

The same pages and presses as transport_k2p.py and play.py, so that the transports can be compared.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.browser.page import latencies, playing, press_at_random
from tests.livekit_server import LiveKitServer


def figures() -> dict[str, float]:
    """Measure once, about 70 s."""
    options = json.dumps({"fps": 16, "frames_per_chunk": 1})
    bare = {"veldt_world": "marker", "veldt_world_options": options}
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        livekit = LiveKitServer(Path(folder)).start()
        try:
            for name, keys, settings in (("transport_k2p", "AD", bare), ("k2p", "JL", {})):
                with playing(**settings, **livekit.settings) as (page, _):
                    page.wait_for_timeout(2000)
                    press_at_random(page, "KeyW", keys, 50)
                    p50, p95, samples = latencies(page)
                measured[f"{name}_p50_ms_livekit"] = p50
                measured[f"{name}_p95_ms_livekit"] = p95
                measured[f"{name}_samples_livekit"] = float(samples)
        finally:
            livekit.stop()
    return measured


def main() -> None:
    """Print for people, then one line for scripts."""
    measured = figures()
    print("one browser, LiveKit on loopback:")
    for name, value in measured.items():
        print(f"  {name:<32}{value:8.2f}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
