"""Structured logs on standard error: lines for people, or one JSON object a line."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from kvstrata.store.config import LogConfig

_TEXT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up_logs(config: LogConfig) -> None:
    """Send the process's logs to standard error, replacing what was set up before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if config.format == "json" else TextFormatter(_TEXT))
    logging.basicConfig(level=config.level.upper(), handlers=[handler], force=True)


class TextFormatter(logging.Formatter):
    """A line for people; fields given by `extra` follow the message as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, with its traceback if it has one."""
        line = super().format(record)
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        return f"{line} {fields}" if fields else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the fields of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One record; a traceback becomes the field `traceback`."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}
