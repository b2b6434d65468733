"""Logs of the front door: structured, one session id through every line, no secrets."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# Names of fields whose values are never written, wherever they come from.
SECRET_FIELDS: Final = frozenset(
    {
        "authorization",
        "api_key",
        "admin_key",
        "x_api_key",
        "credential",
        "password",
        "sdp",
        "secret",
        "session_token",
        "token",
    }
)
Level = Literal["debug", "info", "warning", "error"]


class CurrentStderr(logging.Handler):
    """Writes to whatever `sys.stderr` is at that moment: a progress display may have taken it."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def configure(level: Level, style: Literal["auto", "console", "json"]) -> None:
    """Send structlog and the standard library's loggers to stderr, in one shape."""
    as_json = style == "json" or (style == "auto" and not sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_secrets,
    ]
    # Tracebacks without local variables: those hold secrets.
    renderer: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = CurrentStderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # uvicorn repeats what our own lines say, and words a bad request as a warning of ours.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def without_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace what must not be written."""
    return {key: _shown(key, value) for key, value in event.items()}


def _shown(key: str, value: Any) -> Any:
    if key.lower().replace("-", "_") in SECRET_FIELDS:
        return "[not shown]"
    if isinstance(value, dict):
        return {inner: _shown(str(inner), item) for inner, item in value.items()}
    return value
