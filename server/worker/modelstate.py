"""One session's state in the pipeline: built, built again, given back.

Building works on the exclusive actor too, so it waits for its turn like a chunk does; the other
sessions then lose what that one stage takes, and nothing of what the other stages do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pipeline.service import SessionPolicy, SessionStart
from server.worker.loaded import LoadedWorker

log = logging.getLogger(__name__)


class ModelState:
    """The orchestrator's session, and the policy that translates for it."""

    def __init__(
        self,
        session: str,
        worker: LoadedWorker,
        start: SessionStart,
        on_stage: Callable[[str], None],
    ) -> None:
        """Nothing is built yet. Raises `BadStart` for what the world cannot start from.

        `on_stage` hears which stage is being built.
        """
        self._session = session
        self._worker = worker
        self._start = start
        self._on_stage = on_stage
        self._policy = worker.world.policy(start)
        self._touched = False

    async def open(self) -> tuple[SessionPolicy, int]:
        """Build it for the first time: the policy to play with, and its epoch."""
        await self._turn()
        self._touched = True
        try:
            epoch = await self._worker.orchestrator.open_session(
                self._session, self._policy.openings(), on_stage=self._stage_begins
            )
        finally:
            self._worker.lease.hand_on()
        return self._policy, epoch

    async def rebuild(self) -> tuple[SessionPolicy, int]:
        """Begin again from the same start; a chunk that runs is finished first, for nobody."""
        self._policy = self._worker.world.policy(self._start)
        await self._turn()
        try:
            epoch = await self._worker.orchestrator.reset_session(
                self._session, self._policy.openings(), on_stage=self._stage_begins
            )
        finally:
            self._worker.lease.hand_on()
        return self._policy, epoch

    async def close(self) -> bool:
        """Give everything back; whether that was clean. May be called again where it was not."""
        self._worker.lease.leave(self._session)
        try:
            if not self._touched:
                return True
            report = await self._worker.orchestrator.close_session(self._session)
        finally:
            self._worker.lease.gone(self._session)
        for stage, fault in report.failures.items():
            log.error("session %s: %s kept its state", self._session, stage, exc_info=fault)
        return report.clean

    async def _turn(self) -> None:
        """Wait in line with everybody's chunks, so that no session builds more than its share."""
        orchestrator, stage = self._worker.orchestrator, self._worker.exclusive_stage
        await self._worker.lease.wait_turn(self._session, lambda: orchestrator.stage_free(stage))

    def _stage_begins(self, stage: str) -> None:
        self._on_stage(stage)
        self._worker.lease.hand_on()  # the stage before it is free again
