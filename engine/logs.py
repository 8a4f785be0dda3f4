"""What workers log: lines of text, or of JSON with job, phase and step; without credentials."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from temporalio import activity
from temporalio.runtime import LogForwardingConfig, LoggingConfig

from engine.errors import SetupError

LEVEL = "LONGHAUL_LOG"
FORMAT = "LONGHAUL_LOG_FORMAT"
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

NATIVE = LoggingConfig(
    filter=LoggingConfig.default.filter,
    forwarding=LogForwardingConfig(logger=logging.getLogger("temporalio")),
)
"""The log of the SDK's native part: with ours, as it would else be among results."""


def log_level(otherwise: str) -> str:
    """The least that is logged: what the environment names, or else this.

    Raises:
        SetupError: there is no such level.
    """
    configured = os.environ.get(LEVEL, "").strip()
    if configured and configured.upper() not in LEVELS:
        raise SetupError(f"{LEVEL}: found {configured!r}, expected one of {', '.join(LEVELS)}")
    return configured.upper() or otherwise


def log_format() -> str:
    """`text` or `json`, as the environment says.

    Raises:
        SetupError: there is no such form.
    """
    configured = os.environ.get(FORMAT, "").strip().lower() or "text"
    if configured not in ("json", "text"):
        raise SetupError(f"{FORMAT}: found {configured!r}, expected json or text")
    return configured


def set_up_logging(otherwise: str = "WARNING", *, force: bool = False) -> None:
    """Log to standard error as the environment says.

    Args:
        otherwise: The level where it names none.
        force: Whether to take the place of what was set up before.

    Raises:
        SetupError: there is no such level, or no such form.
    """
    handler = logging.StreamHandler()
    # By name and late, like all activities (`engine.service`).
    redacting = import_module("activities.redaction.secrets").RedactingFormatter
    handler.setFormatter(JsonFormatter() if log_format() == "json" else redacting(TEXT))
    logging.basicConfig(level=log_level(otherwise), handlers=[handler], force=force)


def log_line(text: str, level: str = "INFO") -> str:
    """What a process says of itself whatever the level, in the log's form: its readers read lines
    of JSON, and no others."""
    try:
        if log_format() == "text":
            return text
    except SetupError:
        return text
    record = {"name": __name__, "levelname": level, "msg": text}
    return JsonFormatter().format(logging.makeLogRecord(record))


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; fields that are not known are left out."""

    def format(self, record: logging.LogRecord) -> str:
        redact = import_module("activities.redaction.secrets").redact
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
            **{name: value for name, value in _record_place(record).items() if value is not None},
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _record_place(record: logging.LogRecord) -> dict[str, Any]:
    """Where in which job the record comes from."""
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
