"""`make trace`: two players of the embedded world for ten seconds, as a trace for ui.perfetto.dev.

One worker in this process, players in memory, the real scheduler: what ran when on each actor, what
each session waited for, how full each edge was, an arrow along every chunk.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from pipeline.streaming.trace import TraceRecorder
from tests.fakes.rig import WorkerRig

OUT = Path("var/trace.json")


async def record(world: str, seconds: float, trace: TraceRecorder) -> None:
    """Play: both hold W, one turns left, the other right."""
    async with WorkerRig(world, trace=trace) as rig:
        players = [await rig.play(name) for name in ("a", "b")]
        for player, turn in zip(players, ("KeyJ", "KeyL"), strict=True):
            player.keys("KeyW", turn)
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            for player, turn in zip(players, ("KeyJ", "KeyL"), strict=True):
                player.keys("KeyW", turn)  # held keys expire unless they are repeated
            await asyncio.sleep(min(0.2, left))
        for name in ("a", "b"):
            await rig.close(name)


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", default="tiny")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    trace = TraceRecorder()
    asyncio.run(record(options.world, options.seconds, trace))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    trace.write(options.out)
    print(f"{len(trace)} events in {options.out}: open it in ui.perfetto.dev")


if __name__ == "__main__":
    main()
