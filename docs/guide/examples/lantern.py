"""A whole world: a lantern in the dark, moved with W, A, S and D, drawn with numpy."""
# ruff: noqa: D102

from contextlib import nullcontext

import numpy as np

from pipeline.service import Control, ControlSnapshot, Idle, SessionStart, WorldInfo
from pipeline.streaming.spec import StreamingEdgeSpec, StreamingPipelineSpec, StreamingStageSpec

W, H, FRAMES = 256, 160, 4
WAYS = {"KeyW": (0, -3), "KeyA": (-3, 0), "KeyS": (0, 3), "KeyD": (3, 0)}  # pixels a frame


class Paint:
    """The one stage. A session's state is where its lantern is; it is handed in and handed on."""

    def entered(self):
        return nullcontext()  # held by the actor's thread; for torch: torch.inference_mode()

    def open(self, start):
        return start

    def run(self, state, inputs, emit):
        (x, y), (dx, dy) = state, inputs["step"]
        rows, columns = np.mgrid[:H, :W]
        for _ in range(FRAMES):
            x, y = (x + dx) % W, (y + dy) % H
            light = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 800)
            emit("frames", np.uint8(light[None, ..., None] * (255, 190, 90)))  # leaves at once
        return {}, (x, y)

    def release(self, state):
        pass


class Policy:
    """One session: what its stages open with, and how controls become model input."""

    idle = Idle.HOLD  # without input the last frame stands

    def openings(self):
        return {"paint": (W / 2, H / 2)}

    def conditions(self, index):
        return {}  # nothing to prefetch

    def bind(self, index, control: ControlSnapshot):
        ways = [WAYS[code] for code in control.held | control.presses.keys() if code in WAYS]
        return {"step": tuple(np.sum(ways, 0)) if ways else (0, 0)}

    def settled(self, index):
        return True


class Lantern:
    """What the service sees: a spec, an executor for each stage, a policy for each session."""

    edges = (
        StreamingEdgeSpec("step"),
        StreamingEdgeSpec("frames", streaming=True, max_pieces=FRAMES),
    )
    stage = StreamingStageSpec("paint", inputs=("step",), outputs=("frames",))
    spec = StreamingPipelineSpec("lantern", (stage,), edges, latency_anchor_artifact="step")
    exclusive_stage, frames_artifact = "paint", "frames"
    controls = tuple(map(Control, WAYS, ("Up", "Left", "Down", "Right")))
    info = WorldInfo("lantern", "Lantern", "Drawn, not dreamt.", W, H, 16.0, FRAMES, (), controls)

    def stages(self):
        return {"paint": Paint()}

    def warm_up(self, progress):
        progress("warming up", 1.0)  # a model runs here until its speed is steady

    def policy(self, start: SessionStart):
        return Policy()

    def close(self):
        pass
