"""The worker's log on its standard error: one JSON object a line, read by the front door."""

from __future__ import annotations

import json
import logging


class LogLines(logging.Formatter):
    """Level, logger and event; a traceback is a field, so that it stays one line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)
