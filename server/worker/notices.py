"""What one session tells its players of itself, in the words of the wire."""

from __future__ import annotations

from admission.session import EndReason, State
from server.protocol.status import Chunk, HelloStatus, Lease, StateStatus
from server.transports.base import Identity, MediaTransport
from server.worker.chunkloop import ChunkRecord
from server.worker.loaded import LoadedWorker


class Notices:
    """Status messages of one session. Where nobody can hear them, they are dropped."""

    def __init__(self, session: str, worker: LoadedWorker, transport: MediaTransport) -> None:
        self._session = session
        self._worker = worker
        self._transport = transport
        self._told_lease: Lease | None = None

    def hello(self, who: Identity, epoch: int) -> None:
        """Greet somebody who has joined; the lease is news to them too."""
        info = self._worker.info
        self._told_lease = None
        greeting = HelloStatus(
            world=info.name,
            session=self._session,
            epoch=epoch,
            fps=info.fps,
            frames_per_chunk=info.frames_per_chunk,
        )
        self._transport.send_message(greeting, who)

    def state(
        self, state: State, *, reason: EndReason | None, paused: bool, stage: str | None
    ) -> None:
        """Say where the session is."""
        self._transport.send_message(
            StateStatus(state=state, reason=reason, paused=paused, stage=stage)
        )

    def lease(self) -> None:
        """Say whose turn it is and how many play, where that has changed."""
        told = Lease(
            position=self._worker.lease.position(self._session) or 0,
            players=len({self._session, *self._worker.playing()}),
        )
        if told != self._told_lease and self._transport.send_message(told):
            self._told_lease = told

    def chunk(self, record: ChunkRecord, real_time_factor: float | None) -> None:
        """A chunk has just left the model."""
        self._transport.send_message(
            Chunk(
                epoch=record.epoch,
                index=record.index,
                receipt=record.receipt,
                frame_count=record.frames,
                compute_ms=round(1000 * (self._worker.clock() - record.granted), 2),
                real_time_factor=round(real_time_factor or 0.0, 3),
            )
        )
