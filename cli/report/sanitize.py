"""Makes foreign text safe to show."""

from typing import Any, TypeVar

from activities.redaction.secrets import redact
from cli.output import escape_controls
from protocol.data_model import Data
from protocol.short_text import one_line

D = TypeVar("D", bound=Data)

LINE = 300
TEXT = 4000
MOST_ENTRIES = 500


def sanitize_line(value: object, limit: int = LINE) -> str:
    """Return the value on one line, cut to `limit`, with credentials redacted."""
    return one_line(escape_controls(redact(_sanitize_unicode(value))), limit)


def sanitize_text(value: object, limit: int = TEXT) -> str:
    """Like `sanitize_line`, but keeps line breaks."""
    shown = escape_controls(redact(_sanitize_unicode(value))).strip()
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def sanitize_data(value: Any) -> Any:
    """Sanitise all texts in plain data, at any depth."""
    if isinstance(value, dict):
        return {sanitize_line(key): sanitize_data(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [sanitize_data(entry) for entry in value[:MOST_ENTRIES]]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return sanitize_text(value)


def sanitize_model(model: D) -> D:
    """Sanitise all texts of a model, at any depth."""
    return type(model).model_validate(sanitize_data(model.model_dump(mode="json")))


def _sanitize_unicode(value: object) -> str:
    # The patterns for credentials need valid Unicode, so escape lone surrogates.
    text = "" if value is None else str(value)
    return text[:100_000].encode("utf-8", "backslashreplace").decode()
