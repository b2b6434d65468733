"""A progress bar for people; models and loaders only know the `Progress` callback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from pipeline.service import Progress


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Progress]:
    """Show a bar for each thing that reports (what, share done); stderr by default."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console or Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=share)

        yield report
