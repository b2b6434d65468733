"""One session on its worker: who plays it, what they command, and the parts that make its chunks.

Everything happens on the event loop. The session hears its players as a `TransportSink`, and never
waits for them. Its tasks all end with `close`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from admission.session import END_STATE, EndReason, State
from pipeline.service import SessionStart
from pipeline.streaming.messages import StageCompleted, StreamOutput
from server.media.pacing import PacedFrame, Pacer
from server.media.playout import PlayoutMeter
from server.protocol.http import Connect
from server.protocol.worker import SessionFact
from server.transports.base import ConnectAnswer, ConnectOffer, Identity, LeaveReason, Topic
from server.worker.chunkloop import ChunkLoop, Hooks
from server.worker.facts import Facts
from server.worker.feed import feed
from server.worker.inbound import Refusal
from server.worker.intake import ControlIntake, Received
from server.worker.loaded import LoadedWorker, Picture
from server.worker.modelstate import ModelState
from server.worker.notices import Notices
from server.worker.publisher import Flow, Publisher
from server.worker.reception import Reception
from server.worker.tasks import SessionTasks

RESERVE_CHUNKS: Final = (
    3  # that may wait to be published: two under way when a pause begins, one before
)

log = logging.getLogger(__name__)


class SessionRuntime:
    """A session from its first connect until its close is acknowledged."""

    def __init__(
        self,
        session: str,
        start: SessionStart,
        worker: LoadedWorker,
        emit: Callable[[SessionFact], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Nothing is built before a player is there. Raises `BadStart`.

        `failed` hears why the world could not go on, after the session has ended.
        """
        self.session = session
        self._start = start
        self._worker = worker
        self._failed_hook = failed
        self._facts = Facts(session, emit, worker.clock)
        self._model = ModelState(session, worker, start, self._on_stage)
        self._tasks = SessionTasks(self._model.close, self._fail)
        self._intake = ControlIntake()
        self._transport = worker.make_transport(session, self)
        self._notices = Notices(session, worker, self._transport)
        info = worker.info
        pacer = Pacer[Picture](
            info.fps,
            info.frames_per_chunk,
            reserve_frames=RESERVE_CHUNKS * info.frames_per_chunk,
        )
        self._publisher = Publisher(self._transport, pacer, worker.clock, self._on_new_picture)
        self._playout = PlayoutMeter(info.fps)
        self._chunks = ChunkLoop(
            session,
            worker,
            self._intake,
            Hooks(
                may_run=lambda: self._somebody_plays and not self._paused,
                prompt=lambda: self._prompt,
                playout_end=lambda: pacer.playout_end(worker.clock()),
                period=lambda: worker.period(session),
                granted=self._on_granted,
                failed=self._fail,
            ),
        )
        self._reception = Reception(self, self._intake, self._transport.send_message, worker.clock)
        self._on_their_way = 0  # connects that were answered and neither came up nor failed yet
        self._ever_joined = False
        self._epoch = 0
        self._prompt = start.prompt
        self._paused = False
        self._stage: str | None = None  # what is being built, in words; None once it plays
        self._building = True
        self._running = False  # a picture of this incarnation is out
        self._ended: EndReason | None = None
        self._pictures_stale = 0

    # ------------------------------------------------------------------ what the worker asks
    @property
    def unused(self) -> bool:
        """Whether nobody has come and nobody is on the way."""
        return not (self._ever_joined or self._on_their_way)

    @property
    def ended(self) -> EndReason | None:
        """Why it is over, once it is."""
        return self._ended

    @property
    def playing(self) -> bool:
        """Whether it makes chunks now."""
        return self._chunks.playing

    @property
    def state(self) -> State:
        """Where it is, as its players see it."""
        if self._ended is not None:
            return END_STATE[self._ended]
        if not self._ever_joined:
            return State.CONNECTING
        if not self._running and (self._building or not self._paused):
            return State.STARTING
        return State.RUNNING if self._somebody_plays and not self._paused else State.SUSPENDED

    @property
    def figures(self) -> dict[str, float]:
        """Numbers for the worker's metrics."""
        pacer = self._publisher.pacer
        return {
            "chunks_granted": self._chunks.granted,
            "frames_sent": self._publisher.sent,
            "frames_dropped": self._publisher.dropped,
            "frames_stale": pacer.dropped_stale,
            "pacing_restarts": pacer.restarts,
            "keys_newer": self._intake.received[Received.NEWER],
            "keys_repeated": self._intake.received[Received.REPEATED],
            "keys_stale": self._intake.received[Received.STALE],
            "keys_foreign": self._intake.received[Received.FOREIGN],
            "keys_expired": self._intake.expiries,
            "pictures_stale": self._pictures_stale,
            **self._reception.counters,
        }

    async def connect(self, body: Connect) -> ConnectAnswer:
        """Let a player come; raises `TransportError` where that cannot be."""
        self._on_their_way += 1
        try:
            return await self._transport.connect(ConnectOffer(**body.model_dump()))
        except BaseException:
            self._on_their_way -= 1
            raise

    async def watch(self) -> ConnectAnswer:
        """Let a spectator come; raises `TransportError` where that cannot be."""
        return await self._transport.invite()

    def doubt(self) -> None:
        """Its players may be gone without a word: the transport finds out."""
        self._transport.doubt()

    def stage_completed(self, event: StageCompleted) -> None:
        """One of its chunks has passed a stage."""
        self._chunks.stage_completed(event)

    def tick(self) -> None:
        """Once a second: tell the players what has changed slowly."""
        if self._running and self._ended is None:
            self._notices.lease()

    async def close(self, reason: EndReason) -> bool:
        """End it, give everything back; whether that was clean. May be called again."""
        if self._ended is None:
            self._ended = reason
            self._facts.silence()
            self._stop()
        clean, _ = await asyncio.gather(
            asyncio.shield(self._tasks.release()), self._transport.aclose()
        )
        return clean

    # ------------------------------------------------------------------ TransportSink
    def joined(self, who: Identity) -> None:
        """A player is there: it gets a picture at once, whatever the session is at."""
        self._on_their_way = max(0, self._on_their_way - 1)
        if self._ended is not None:
            return
        first, self._ever_joined = not self._ever_joined, True
        self._reception.joined(who)
        self._notices.hello(who, self._epoch)
        self._facts.tell("connected")
        if first:
            self._tasks.spawn(self._play())
        self._switch()
        self._publisher.again()
        self._tell_state()
        if self._running and not self._paused:
            self._facts.tell("running")
        self._chunks.nudge()

    def received(self, who: Identity, topic: Topic, payload: bytes) -> None:
        """Bytes from somebody; only the controller's may change anything."""
        if self._ended is not None:
            return
        try:
            self._reception.received(who, topic, payload)
        except Exception as fault:  # a fault of ours: this session's, not its transport's
            self._fail(fault)

    def left(self, who: Identity, reason: LeaveReason) -> None:
        """A player is gone, or never came."""
        if not self._reception.left(who):
            self._on_their_way = max(0, self._on_their_way - 1)
            if reason is LeaveReason.FAILED and self.unused:
                self._end(EndReason.CONNECT_FAILED, "no media path to the player was found")
        elif not self._somebody_plays and reason is not LeaveReason.REPLACED:
            self._switch()  # replaced: the newer one joins in this same moment
            self._facts.tell("lost")
            self._chunks.nudge()

    # ------------------------------------------------------------------ Playable
    @property
    def epoch(self) -> int:
        """Of the incarnation that is played, or being built."""
        return self._epoch

    def reset(self) -> None:
        """Begin again; nothing of what was is published from here on."""
        self._facts.active()
        if not self._building:
            self._epoch += 1
            self._building, self._running = True, False
            self._chunks.halt()
            self._wait_by_choice()
            self._publisher.begin(self._epoch, self._worker.posters[self._start.start_point])
            self._tasks.spawn(self._play_again())
        # else nothing has been played since the last one: it is built from the start already
        self._intake.reset(self._epoch)

    def pause(self, paused: bool) -> None:
        """Let the picture stand, or go on."""
        if paused is self._paused:
            return
        self._paused = paused
        self._facts.tell("paused" if paused else "resumed")
        self._switch()
        self._tell_state()
        self._chunks.nudge()

    def set_prompt(self, text: str) -> Refusal | None:
        """Change the prompt from the next chunk on, where the world takes one."""
        if not self._worker.info.prompt:
            return Refusal("unsupported_by_world", "this world takes no prompt")
        self._prompt = text
        self._facts.active()
        self._chunks.nudge()
        return None

    def stop(self) -> None:
        """End it as the player wishes."""
        self._end(EndReason.STOPPED)

    def hand_over(self, by: Identity, to: Identity) -> bool:
        """Give the controls to a spectator, or take them back."""
        return self._transport.hand_over(by, to)

    def input_changed(self) -> None:
        """A world that stood still may want a chunk now."""
        self._chunks.nudge()

    def input_given(self) -> None:
        """Somebody is really playing."""
        self._facts.active()

    # ------------------------------------------------------------------ model state
    async def _play(self) -> None:
        """Build the session, then take what it makes until it is closed."""
        start_point = self._start.start_point
        loop = asyncio.get_running_loop()
        poster = await loop.run_in_executor(
            self._worker.converters, self._worker.poster, start_point
        )
        self._publisher.begin(self._epoch, poster)
        policy, epoch = await self._model.open()
        self._built()
        self._chunks.begin(policy, epoch)
        await feed(self.session, self._worker, self._on_pictures, self._on_chunk)

    async def _play_again(self) -> None:
        policy, epoch = await self._model.rebuild()
        if epoch != self._epoch:
            raise RuntimeError(f"the pipeline is at epoch {epoch}, the session at {self._epoch}")
        self._built()
        self._chunks.begin(policy, epoch)

    def _built(self) -> None:
        """Nothing is prepared any more; while it is paused, no picture will say so."""
        self._building, self._stage = False, None
        if self._paused:
            self._facts.tell("starting", stage=None)
            self._tell_state()

    def _on_stage(self, stage: str) -> None:
        self._stage = f"preparing {stage}"
        self._facts.tell("starting", stage=self._stage)
        self._tell_state()

    def _on_granted(self, index: int) -> None:
        self._publisher.pacer.set_period(self._worker.period(self.session))
        self._publisher.pacer.expect(index, self._worker.info.frames_per_chunk)
        self._playout.granted(self._epoch, index)

    def _on_pictures(self, output: StreamOutput, pictures: list[Picture]) -> None:
        record = self._chunks.frames_decoded(output.epoch, output.sequence, len(pictures))
        if record is None:
            self._pictures_stale += len(pictures)
            return
        self._publisher.push(
            pictures, epoch=output.epoch, chunk=output.sequence, receipt=record.receipt, last=False
        )

    def _on_chunk(self, output: StreamOutput) -> None:
        record = self._chunks.chunk_decoded(output.epoch, output.sequence)
        if record is None:
            return
        self._publisher.push(
            [], epoch=output.epoch, chunk=output.sequence, receipt=record.receipt, last=True
        )
        if not self._chunks.playing:
            self._wait_by_choice()
        self._notices.chunk(record, self._playout.real_time_factor)

    def _on_new_picture(self, paced: PacedFrame[Picture]) -> None:
        self._playout.shown(paced)
        if self._running or paced.chunk < 0:
            return
        self._running, self._stage = True, None
        self._facts.tell("running")
        self._tell_state()

    # ------------------------------------------------------------------ states and ends
    @property
    def _somebody_plays(self) -> bool:
        return self._reception.controller is not None

    def _switch(self) -> None:
        """Let pictures flow, stand or stop, as the players are."""
        flow = Flow.HELD if self._paused else Flow.PLAYING
        if not self._somebody_plays:
            flow = Flow.OFF
        if flow is not Flow.PLAYING:
            self._wait_by_choice()
        self._publisher.switch(flow)

    def _wait_by_choice(self) -> None:
        """The time until the next chunk of what is played is no chunk period."""
        if not self._building and self._ended is None:
            self._playout.waits()
            self._worker.orchestrator.note_pause(self.session)

    def _tell_state(self) -> None:
        self._notices.state(self.state, reason=self._ended, paused=self._paused, stage=self._stage)

    def _fail(self, fault: BaseException) -> None:
        """The world cannot go on with this session."""
        if self._ended is None:
            log.error("session %s: its world failed", self.session, exc_info=fault)
            self._end(EndReason.WORLD_FAILED, f"{type(fault).__name__}: {fault}"[:300])
        self._failed_hook(fault)

    def fail(self, reason: str) -> None:
        """The worker cannot go on with any session."""
        self._end(EndReason.WORLD_FAILED, reason)

    def _end(self, reason: EndReason, detail: str | None = None) -> None:
        """It is over for a reason found here; the front door hears it and closes the session."""
        if self._ended is not None:
            return
        self._ended = reason
        self._facts.tell("ended", reason=reason, detail=detail)
        self._stop()
        self._tasks.release()

    def _stop(self) -> None:
        """Make and send nothing more; the players hear why."""
        self._chunks.halt()
        self._publisher.close()
        self._intake.discard()
        self._tell_state()
        self._reception.close()
