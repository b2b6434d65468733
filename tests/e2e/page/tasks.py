"""What keeps a page's main thread busy, and for how long it really had the processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page

_CATEGORIES = ["disabled-by-default-devtools.timeline", "blink.user_timing"]
_HERE = "main thread of the traced page"
LIMIT_SECONDS = 30.0


@dataclass(frozen=True)
class Task:
    """One task of the main thread. What others took from it counts to its length only."""

    length_ms: float
    processor_ms: float


@dataclass
class Tasks:
    """The tasks of one page over a while, known once `traced` is left."""

    all: list[Task] = field(default_factory=list)

    def holding(self, milliseconds: float) -> list[Task]:
        """Those that had the processor for longer."""
        return [task for task in self.all if task.processor_ms > milliseconds]


@contextmanager
def traced(browser: Browser, page: Page) -> Iterator[Tasks]:
    """Trace the page's process while this is open."""
    tasks = Tasks()
    events: list[dict[str, Any]] = []
    over: list[bool] = []
    cdp = browser.new_browser_cdp_session()
    cdp.on("Tracing.dataCollected", lambda some: events.extend(some["value"]))
    cdp.on("Tracing.tracingComplete", lambda _: over.append(True))
    config = {"includedCategories": _CATEGORIES, "excludedCategories": ["*"]}
    cdp.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
    page.evaluate("name => { performance.mark(name); }", _HERE)
    try:
        yield tasks
    finally:
        cdp.send("Tracing.end")
        for _ in range(int(LIMIT_SECONDS * 20)):
            if over:
                break
            page.wait_for_timeout(50)
        cdp.detach()
    assert over, "the trace never came"
    tasks.all.extend(_of_page(events))


def _of_page(events: list[dict[str, Any]]) -> Iterator[Task]:
    """The tasks of the thread that made the mark."""
    [main] = [(event["pid"], event["tid"]) for event in events if event["name"] == _HERE]
    for event in events:
        if event["name"] == "RunTask" and (event["pid"], event["tid"]) == main:
            yield Task(event.get("dur", 0) / 1000, event.get("tdur", 0) / 1000)
