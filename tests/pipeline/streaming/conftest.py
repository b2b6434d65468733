from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest


def _tasks() -> set[asyncio.Task[object]]:
    """All tasks but those of the test runner itself."""
    return {
        task
        for task in asyncio.all_tasks()
        if "TestRunner" not in getattr(task.get_coro(), "__qualname__", "")
    }


def _threads() -> set[threading.Thread]:
    """All threads but those that `asyncio.to_thread` keeps for the loop."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


@pytest.fixture
async def leaves_nothing() -> AsyncIterator[None]:
    """Fails a test that leaves a task or a thread behind."""
    threads, tasks = _threads(), _tasks()
    yield
    assert not _tasks() - tasks
    for thread in _threads() - threads:  # its last word is out, the system may still be ending it
        thread.join(20)
    assert not _threads() - threads
