"""The workers' log: lines of text, or of JSON with job, phase and step; without credentials."""

import json
import logging
import os
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.runtime import LogForwardingConfig, LoggingConfig

from engine.setup_errors import SetupError
from protocol.short_text import one_line

LEVEL = "LONGHAUL_LOG"
FORMAT = "LONGHAUL_LOG_FORMAT"
MAX_SHOWN = 600
"""Characters of a failure's first line in the log."""
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

NATIVE = LoggingConfig(
    filter=LoggingConfig.default.filter,
    forwarding=LogForwardingConfig(logger=logging.getLogger("temporalio")),
)
"""Sends the log of the SDK's native part to ours; it would otherwise mix with results."""


def log_level(otherwise: str) -> str:
    """Return the log level of the environment, else `otherwise`.

    Raises SetupError: the level is unknown.
    """
    configured = os.environ.get(LEVEL, "").strip()
    if configured and configured.upper() not in LEVELS:
        raise SetupError(f"{LEVEL}: found {configured!r}, expected one of {', '.join(LEVELS)}")
    return configured.upper() or otherwise


def log_format() -> str:
    """Return the log format of the environment: `text` or `json`.

    Raises SetupError: the format is unknown.
    """
    configured = os.environ.get(FORMAT, "").strip().lower() or "text"
    if configured not in ("json", "text"):
        raise SetupError(f"{FORMAT}: found {configured!r}, expected json or text")
    return configured


def set_up_logging(otherwise: str = "WARNING", *, force: bool = False) -> None:
    """Log to standard error, with level and format from the environment.

    Args:
        otherwise: The level if the environment names none.
        force: Whether to replace an earlier set-up.

    Raises:
        SetupError: the level or the format is unknown.
    """
    handler = logging.StreamHandler()
    # Imported by name and late, like all activities (`engine.service`).
    redacting = import_module("activities.redaction.secrets").RedactingFormatter
    handler.addFilter(shorten_logged_failure)
    handler.setFormatter(JsonFormatter() if log_format() == "json" else redacting(TEXT))
    logging.basicConfig(level=log_level(otherwise), handlers=[handler], force=force)


def shorten_logged_failure(record: logging.LogRecord) -> bool:
    """Replace the traceback of an activity's typed failure by one line.

    Such a failure says what is wrong and what to do. Where it was raised says nothing to people.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_end = getattr(record, "__temporal_error_identifier", "") == "ActivityFailure"
    if not (is_end and isinstance(error, ApplicationError)) or error.type in (None, "Unforeseen"):
        return True
    place = getattr(record, "temporal_activity", {})
    delay = error.next_retry_delay
    again = f"; next attempt in {delay.total_seconds():g} s" if delay else ""
    record.msg, record.args = (
        "%s of %s failed (%s), attempt %s%s: %s",
        (
            place.get("activity_type"),
            place.get("workflow_id"),
            error.type,
            place.get("attempt"),
            again,
            one_line(error.message.partition("\n")[0], MAX_SHOWN),
        ),
    )
    record.exc_info = record.exc_text = None
    return True


def log_line(text: str, level: str = "INFO") -> str:
    """Format a process's own message like a log line, since readers of a JSON log expect only
    JSON."""
    try:
        if log_format() == "text":
            return text
    except SetupError:
        return text
    record = {"name": __name__, "levelname": level, "msg": text}
    return JsonFormatter().format(logging.makeLogRecord(record))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON without unknown fields."""

    def format(self, record: logging.LogRecord) -> str:
        redact = import_module("activities.redaction.secrets").redact
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
            **{
                name: value
                for name, value in _log_record_place(record).items()
                if value is not None
            },
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _log_record_place(record: logging.LogRecord) -> dict[str, Any]:
    """Return the job, phase and step of a record, as far as known."""
    if activity.in_activity():
        info = activity.info()
        now = import_module("activities.runtime.tracing").PLACE.get() or {}
        return {
            "job": info.workflow_id,
            **now,
            "activity": info.activity_type,
            "attempt": info.attempt,
        }
    details = getattr(record, "temporal_workflow", None) or getattr(
        record, "temporal_activity", None
    )
    return {"job": details.get("workflow_id")} if isinstance(details, dict) else {}
