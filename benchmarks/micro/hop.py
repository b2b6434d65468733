"""What the scheduler costs per hop: one invocation of one stage, from ready to done.

A three-stage chain with stages that do nothing, on actors that run inline, through the public
orchestrator: submit, three hops with lock, clock, events and metrics, take. What it cannot show is
the switch between threads (about 10-20 µs, the kernel's), which `overlap.py` includes. The cost
must not grow with the number of sessions: the ratio of 512 to 8 sessions would be 64 if anything
scanned them; cache misses alone make it somewhat more than 1. Processor time of the one thread
is what is counted, so that a busy machine changes the figure little.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from statistics import median

from pipeline.service import Emit
from pipeline.streaming import (
    InlineStageActor,
    StreamingEdgeSpec,
    StreamingPipelineOrchestrator,
    StreamingPipelineSpec,
    StreamingStageSpec,
)

STAGES = 3
HOPS = 6_000  # of one measurement
ROUNDS = 7


class Nothing:
    """A stage that hands its input on."""

    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = source, target

    def entered(self) -> AbstractContextManager[object]:
        """Nothing lasts."""
        return nullcontext()

    def open(self, start: object) -> object:
        """No state."""
        return None

    def run(
        self, state: object, inputs: Mapping[str, object], emit: Emit
    ) -> tuple[Mapping[str, object], object]:
        """Hand on."""
        return {self._target: inputs[self._source]}, state

    def release(self, state: object) -> None:
        """No state."""


async def hop_seconds(sessions: int) -> float:
    """Seconds per hop with so many sessions in turn, each with one chunk under way at a time."""
    names = [f"a{index}" for index in range(STAGES + 1)]
    stages = tuple(
        StreamingStageSpec(f"s{index}", inputs=(names[index],), outputs=(names[index + 1],))
        for index in range(STAGES)
    )
    edges = tuple(StreamingEdgeSpec(name) for name in names)
    spec = StreamingPipelineSpec("hop", stages, edges, latency_anchor_artifact="a0")
    pipeline = StreamingPipelineOrchestrator(
        spec,
        {
            f"s{index}": InlineStageActor(f"s{index}", Nothing(names[index], names[index + 1]))
            for index in range(STAGES)
        },
    )
    await pipeline.start()
    everyone = [f"session-{number}" for number in range(sessions)]
    for session in everyone:
        await pipeline.open_session(session, {})
    chunks = max(2, HOPS // STAGES // sessions)
    seconds = 0.0
    for sequence in range(chunks + 1):
        began = time.thread_time()
        for session in everyone:
            assert pipeline.try_submit(session, sequence, {"a0": sequence})
        for session in everyone:
            output = pipeline.take_nowait(session)
            assert output is not None
            assert output.sequence == sequence
        if sequence:  # the first round warms up
            seconds += time.thread_time() - began
        await asyncio.sleep(0)  # the wake-ups of this round
    await pipeline.aclose()
    return seconds / (chunks * sessions * STAGES)


async def _measure() -> dict[int, float]:
    sizes = (1, 8, 128, 512)
    samples: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(ROUNDS):  # alternating: drift of the machine hits all sizes
        for size in sizes:
            samples[size].append(await hop_seconds(size))
    return {size: median(taken) for size, taken in samples.items()}


def figures() -> dict[str, float]:
    """`hop_us_1`, `hop_us_128`, `hop_ratio_512_8`."""
    seconds = asyncio.run(_measure())
    return {
        "hop_us_1": seconds[1] * 1e6,
        "hop_us_128": seconds[128] * 1e6,
        "hop_ratio_512_8": seconds[512] / seconds[8],
    }


def main() -> None:
    """Print the figures beside their targets."""
    found = figures()
    print(f"one session      {found['hop_us_1']:6.1f} µs a hop (target ≤ 30)")
    print(f"128 sessions     {found['hop_us_128']:6.1f} µs a hop (target ≤ 30)")
    print(f"512 : 8 sessions {found['hop_ratio_512_8']:6.2f}          (target ≤ 2)")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
