"""A child's stderr, line by line, into our log."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

MAX_LINE: Final = 16_384
_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "critical"})


async def forward_lines(stream: asyncio.StreamReader, log: FilteringBoundLogger) -> None:
    """Until the stream ends. Lines that are JSON objects keep their fields; longer ones are cut."""
    rest = b""
    while chunk := await stream.read(65_536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            forward_line(line, log)
        if len(rest) > MAX_LINE:
            forward_line(rest, log)
            rest = b""
    forward_line(rest, log)


def forward_line(line: bytes, log: FilteringBoundLogger) -> None:
    """One line: at its own level if it is structured, else as it is."""
    text = line[:MAX_LINE].decode("utf-8", "replace").rstrip()
    if not text:
        return
    fields = _fields(text)
    if fields is None:
        log.info("worker_output", line=text)
        return
    level = str(fields.pop("level", "info")).lower()
    event = str(fields.pop("event"))
    for name in ("timestamp", "self"):
        fields.pop(name, None)
    getattr(log, level if level in _LEVELS else "info")(event, **fields)


def _fields(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or "event" not in fields:
        return None
    return fields
