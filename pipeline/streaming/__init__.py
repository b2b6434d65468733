"""Runs a pipeline of stages for many sessions at once: bounded, in order, fair.

A spec declares stages and the artifacts between them; each stage has one actor, the sole owner of
every session's state there. Chunks of a session pass the stages strictly in order, chunks of
different sessions overlap, and a session that nobody reads from stops without stopping others.

Read spec.py (what is declared; rules.py says what makes it valid), plan.py (what follows from it),
slots.py (one bounded lane), scheduler.py (who runs next), flow.py (how artifacts move),
lifecycle.py (how state comes and goes), core.py (the state machine of all that: events in, commands
out), actors.py (who does the work), orchestrator.py (lock, clock and asyncio around it, with
waiting.py). messages.py, errors.py and records.py are their vocabulary; metrics.py and trace.py say
what happened. docs/guide/orchestrator.md tells it as a story.

Knows nothing of worlds, leases, players, transports or torch: values pass through untouched.

>>> import asyncio
>>> from contextlib import nullcontext
>>> class Double:
...     def entered(self): return nullcontext()
...     def open(self, start): return start
...     def run(self, total, inputs, emit):
...         total += inputs["number"]
...         return {"twice": 2 * total}, total
...     def release(self, total): pass
>>> spec = StreamingPipelineSpec(
...     name="demo",
...     stages=(StreamingStageSpec("double", inputs=("number",), outputs=("twice",)),),
...     edges=(StreamingEdgeSpec("number", int), StreamingEdgeSpec("twice", int)),
... )
>>> async def main():
...     actors = {"double": LocalStageActor("double", Double())}
...     pipeline = StreamingPipelineOrchestrator(spec, actors)
...     await pipeline.start()
...     await pipeline.open_session("ada", {"double": 100})
...     taken = []
...     for sequence in range(2):
...         assert pipeline.try_submit("ada", sequence, {"number": sequence + 1})
...     async for output in pipeline.outputs("ada"):
...         taken.append((output.sequence, output.value))
...         if len(taken) == 2:
...             break
...     report = await pipeline.close_session("ada")
...     await pipeline.aclose()
...     return taken, report.clean
>>> asyncio.run(main())
([(0, 202), (1, 206)], True)
"""

from pipeline.streaming.actors import InlineStageActor, LocalStageActor, StageActor
from pipeline.streaming.errors import (
    ActorDied,
    BadOutput,
    CallerError,
    PipelineError,
    SequenceDuplicated,
    SequenceSkipped,
    SessionBusy,
    SessionClosed,
    SessionExists,
    SessionFailed,
    SpecError,
    SpecFault,
    StageError,
    StageFailed,
    UnknownName,
    WrongType,
)
from pipeline.streaming.messages import CloseReport, Outcome, StageCompleted, StreamOutput
from pipeline.streaming.metrics import (
    IdleReason,
    SchedulerDiagnostics,
    StreamingSessionMetrics,
)
from pipeline.streaming.orchestrator import StreamingPipelineOrchestrator
from pipeline.streaming.plan import PipelinePlan, Transport, plan_of
from pipeline.streaming.spec import (
    Placement,
    ReleaseOn,
    StageOrdering,
    StreamingEdgeSpec,
    StreamingPipelineSpec,
    StreamingResourceGroupSpec,
    StreamingStageSpec,
)
from pipeline.streaming.trace import TraceRecorder

__all__ = [
    "ActorDied",
    "BadOutput",
    "CallerError",
    "CloseReport",
    "IdleReason",
    "InlineStageActor",
    "LocalStageActor",
    "Outcome",
    "PipelineError",
    "PipelinePlan",
    "Placement",
    "ReleaseOn",
    "SchedulerDiagnostics",
    "SequenceDuplicated",
    "SequenceSkipped",
    "SessionBusy",
    "SessionClosed",
    "SessionExists",
    "SessionFailed",
    "SpecError",
    "SpecFault",
    "StageActor",
    "StageCompleted",
    "StageError",
    "StageFailed",
    "StageOrdering",
    "StreamOutput",
    "StreamingEdgeSpec",
    "StreamingPipelineOrchestrator",
    "StreamingPipelineSpec",
    "StreamingResourceGroupSpec",
    "StreamingSessionMetrics",
    "StreamingStageSpec",
    "TraceRecorder",
    "Transport",
    "UnknownName",
    "WrongType",
    "plan_of",
]
