"""Whether sessions that saturate one stage are served alike: largest difference of their counts.

Every session always has its next chunk waiting; half of them are three times as slow as the rest.
The difference is looked at after each chunk, so a favour that evens out later shows as well. With a
plain round robin it is 1 while a round is under way, and never more.
"""

from __future__ import annotations

import asyncio
import json

from benchmarks.micro.emulated import EmulatedStage
from pipeline.streaming import (
    LocalStageActor,
    StageCompleted,
    StreamingEdgeSpec,
    StreamingPipelineOrchestrator,
    StreamingPipelineSpec,
    StreamingStageSpec,
)

SESSIONS = 12
ROUNDS = 40
SECONDS = 0.000_5
DEPTH = 4  # chunks of a session that wait: the loop may be late by so many rounds

SPEC = StreamingPipelineSpec(
    "fairness",
    stages=(StreamingStageSpec("work", ("control",), ("frames",)),),
    edges=(
        StreamingEdgeSpec("control", capacity=DEPTH),
        StreamingEdgeSpec("frames", capacity=DEPTH),
    ),
)


async def spread() -> tuple[int, dict[str, int]]:
    """The largest difference seen at any moment, and the counts at the end."""
    actor = LocalStageActor("work", EmulatedStage(("frames",), SECONDS))
    pipeline = StreamingPipelineOrchestrator(SPEC, {"work": actor})
    await pipeline.start()
    everyone = [f"session-{number}" for number in range(SESSIONS)]
    for number, session in enumerate(everyone):
        await pipeline.open_session(session, {"work": 3.0 if number % 2 else 1.0})
    served = dict.fromkeys(everyone, 0)
    submitted = dict.fromkeys(everyone, 0)
    largest = 0
    done = asyncio.Event()

    def feed(session: str) -> None:
        while pipeline.try_submit(session, submitted[session], {"control": 0}):
            submitted[session] += 1

    def over(note: StageCompleted) -> None:
        nonlocal largest
        if done.is_set():
            return
        while pipeline.take_nowait(note.session) is not None:
            pass
        feed(note.session)
        served[note.session] += 1
        largest = max(largest, max(served.values()) - min(served.values()))
        if sum(served.values()) >= SESSIONS * ROUNDS:
            done.set()

    pipeline.subscribe(over)
    for session in everyone:
        feed(session)
    await done.wait()
    await pipeline.aclose()
    return largest, served


def figures() -> dict[str, float]:
    """`fair_spread`."""
    return {"fair_spread": float(asyncio.run(spread())[0])}


def main() -> None:
    """Print the counts, then the figure beside its target."""
    largest, served = asyncio.run(spread())
    for session, count in served.items():
        print(f"{session:12} {count:4} chunks")
    print(f"largest difference at any moment {largest} (target ≤ 1)")
    print(json.dumps({"fair_spread": float(largest)}))


if __name__ == "__main__":
    main()
