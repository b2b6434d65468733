"""What runs for one session beside its calls, and how all of it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine


class SessionTasks:
    """Tasks of one session; `release` ends them and then gives its model state back."""

    def __init__(
        self, give_back: Callable[[], Awaitable[bool]], failed: Callable[[BaseException], None]
    ) -> None:
        """Nothing runs.

        Args:
            give_back: Releases the model state, and says whether that was clean.
            failed: Hears what a task raised.
        """
        self._give_back = give_back
        self._failed = failed
        self._running: set[asyncio.Task[None]] = set()
        self._releasing: asyncio.Task[bool] | None = None

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run something until it ends or the session is released."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def release(self) -> asyncio.Task[bool]:
        """End everything and give the model state back, once; again only where it was not clean."""
        done = self._releasing is not None and self._releasing.done()
        if self._releasing is None or (done and not self._released_cleanly()):
            self._releasing = asyncio.create_task(self._release())
        return self._releasing

    def _released_cleanly(self) -> bool:
        task = self._releasing
        return task is not None and task.exception() is None and task.result()

    async def _release(self) -> bool:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        return await self._give_back()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._failed(fault)
