"""`make bench`: measures every figure, prints it beside its target, writes `results/latest.json`.

A figure that misses its target is printed as a miss; nothing here fails for being slow. Each
module runs in a process of its own, one after the other, so that none disturbs another.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results" / "latest.json"
MODULES = (
    "micro.hop",
    "micro.overlap",
    "micro.fairness",
    "micro.tiny",
    "micro.play",
    "micro.transport_k2p",
    "browser.open_to_motion",
    "micro.livekit",
    "micro.cycles",
)


@dataclass(frozen=True)
class Target:
    """What a figure should reach."""

    unit: str
    limit: float

    def met(self, value: float) -> bool:
        """Whether the figure is there; one that could not be measured is not."""
        return math.isfinite(value) and value <= self.limit


TARGETS: Mapping[str, Target] = {
    "hop_us_1": Target("µs", 30),
    "hop_us_128": Target("µs", 30),
    "hop_ratio_512_8": Target("×", 2),
    "fair_spread": Target("chunks", 1),
    "overlap_ratio": Target("×", 1.05),
    "tiny_compute_factor": Target("×", 0.6),
    "tiny_real_time_factor": Target("×", 1.05),
    "k2p_p50_ms_webrtc": Target("ms", 200),
    "k2p_p95_ms_webrtc": Target("ms", 300),
    "transport_k2p_p50_ms_webrtc": Target("ms", 70),
    "k2p_p50_ms_livekit": Target("ms", 200),
    "k2p_p95_ms_livekit": Target("ms", 300),
    "transport_k2p_p50_ms_livekit": Target("ms", 70),
    "open_to_motion_ms": Target("ms", 3000),
    "pace_p99_minus_p50_ms": Target("ms", 15),
    "loop_lag_p99_ms_front": Target("ms", 10),
    "loop_lag_p99_ms_worker": Target("ms", 30),
    "cycles_leak": Target("left over", 0),
}


def measure(module: str, note: Callable[[str], None]) -> dict[str, float]:
    """Run one module in its own process; its last line is JSON."""
    command = [sys.executable, "-m", f"benchmarks.{module}"]
    note(f"$ python -m benchmarks.{module}")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        note(f"benchmarks.{module} ended with {done.returncode}: its figures are missing")
        return {}
    note("\n".join(lines[:-1]))
    return {name: float(value) for name, value in json.loads(lines[-1]).items()}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=MODULES, default=MODULES)
    options = parser.parse_args()
    console = Console()
    measured: dict[str, float] = {}
    for module in options.only:
        measured |= measure(module, lambda line: console.print(line, markup=False, style="dim"))
    table = Table("figure", "value", "unit", "target", "")
    rows: dict[str, dict[str, object]] = {}
    for name, target in TARGETS.items():
        if name not in measured:
            if set(options.only) == set(MODULES):
                table.add_row(name, "not measured", target.unit, f"≤ {target.limit:g}", "MISS")
                rows[name] = {
                    "value": None,
                    "unit": target.unit,
                    "target": target.limit,
                    "ok": False,
                }
            continue
        value, ok = measured[name], target.met(measured[name])
        rows[name] = {"value": value, "unit": target.unit, "target": target.limit, "ok": ok}
        table.add_row(
            name, f"{value:.4g}", target.unit, f"≤ {target.limit:g}", "ok" if ok else "MISS"
        )
    for name in measured.keys() - TARGETS.keys():
        table.add_row(name, f"{measured[name]:.4g}", "", "", "")
        rows[name] = {"value": measured[name], "unit": "", "target": None, "ok": True}
    console.print(table)
    if set(options.only) == set(MODULES):
        machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(rows, indent=2) + "\n")
        console.print(f"wrote {RESULTS.relative_to(Path.cwd())} on {machine}")


if __name__ == "__main__":
    main()
