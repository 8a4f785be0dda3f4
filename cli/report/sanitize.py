"""Makes foreign text safe to show."""

from __future__ import annotations

from typing import Any

from activities.redaction.secrets import redact
from cli.output import escape_controls
from protocol.text import one_line

LINE = 300
TEXT = 4000


def safe_line(value: object, limit: int = LINE) -> str:
    """Return the value on one line, cut to `limit`, with credentials redacted."""
    return one_line(escape_controls(redact(_value_to_text(value))), limit)


def safe_text(value: object, limit: int = TEXT) -> str:
    """Like `safe_line`, but keeps line breaks."""
    shown = escape_controls(redact(_value_to_text(value))).strip()
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def safe_data(value: Any) -> Any:
    """Sanitise all texts in plain data, at any depth."""
    if isinstance(value, dict):
        return {safe_line(key): safe_data(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [safe_data(entry) for entry in value[:100]]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return safe_text(value, 1000)


def _value_to_text(value: object) -> str:
    # The patterns for credentials need valid Unicode, so escape lone surrogates.
    text = "" if value is None else str(value)
    return text[:100_000].encode("utf-8", "backslashreplace").decode()
