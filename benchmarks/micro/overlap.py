"""Whether the stages of one session overlap: steady chunk period over the slowest stage's time.

encode, denoise and decode of emulated length run on a thread each. Without overlap a chunk would
take their sum (1.9 × the slowest here); with perfect overlap the slowest stage never waits and the
ratio is 1. What is above 1 is what the scheduler and the switch of threads cost.
"""

from __future__ import annotations

import asyncio
import json
from statistics import mean, median

from benchmarks.micro.emulated import EmulatedStage
from pipeline.streaming import (
    LocalStageActor,
    StageCompleted,
    StreamingEdgeSpec,
    StreamingPipelineOrchestrator,
    StreamingPipelineSpec,
    StreamingStageSpec,
)

SECONDS = {"encode": 0.006, "denoise": 0.020, "decode": 0.012}
CHUNKS = 60
WARM_UP = 10
ROUNDS = 3

SPEC = StreamingPipelineSpec(
    "overlap",
    stages=(
        StreamingStageSpec("encode", ("condition_request",), ("condition",)),
        StreamingStageSpec("denoise", ("condition", "control"), ("latent",)),
        StreamingStageSpec("decode", ("latent",), ("frames",)),
    ),
    edges=tuple(
        StreamingEdgeSpec(name)
        for name in ("condition_request", "condition", "control", "latent", "frames")
    ),
    latency_anchor_artifact="control",
)


async def overlap() -> tuple[float, float]:
    """The steady chunk period and the slowest stage's time, both measured, in seconds."""
    outputs = {stage.name: stage.outputs for stage in SPEC.stages}
    pipeline = StreamingPipelineOrchestrator(
        SPEC,
        {
            name: LocalStageActor(name, EmulatedStage(outputs[name], seconds))
            for name, seconds in SECONDS.items()
        },
    )
    await pipeline.start()
    await pipeline.open_session("one", {})
    runs: dict[str, list[float]] = {name: [] for name in SECONDS}
    ends: list[float] = []
    room = asyncio.Event()

    def over(note: StageCompleted) -> None:
        runs[note.stage].append(note.ended - note.started)
        if note.stage == "decode":
            ends.append(note.ended)
        room.set()

    pipeline.subscribe(over)

    async def feed() -> None:
        for sequence in range(CHUNKS):
            while not pipeline.try_submit(
                "one", sequence, {"condition_request": sequence, "control": sequence}
            ):
                room.clear()
                await room.wait()

    feeding = asyncio.create_task(feed())
    async for output in pipeline.outputs("one"):
        if output.sequence == CHUNKS - 1:
            break
    await feeding
    await pipeline.aclose()
    slowest = max(mean(taken[WARM_UP:]) for taken in runs.values())
    return (ends[-1] - ends[WARM_UP]) / (len(ends) - 1 - WARM_UP), slowest


async def _measure() -> list[tuple[float, float]]:
    return [await overlap() for _ in range(ROUNDS)]


def figures() -> dict[str, float]:
    """`overlap_ratio`: the median of several runs."""
    return {
        "overlap_ratio": median(period / slowest for period, slowest in asyncio.run(_measure()))
    }


def main() -> None:
    """Print each run, then the figure beside its target."""
    runs = asyncio.run(_measure())
    for period, slowest in runs:
        print(f"period {period * 1e3:6.2f} ms, slowest stage {slowest * 1e3:6.2f} ms")
    found = {"overlap_ratio": median(period / slowest for period, slowest in runs)}
    print(f"ratio  {found['overlap_ratio']:6.3f}    (target ≤ 1.05)")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
