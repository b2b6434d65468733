"""Work that nobody waits for: kept while it runs, and ended with its owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Errands:
    """The tasks of one session's transport. A fault in one is logged and ends that one only."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin `work` now; nothing is begun after `aclose`."""
        if self._over:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def close(self) -> None:
        """Begin nothing more."""
        self._over = True

    async def aclose(self) -> None:
        """End whatever still runs."""
        self.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("session %s: LiveKit errand failed", self._session, exc_info=error)
