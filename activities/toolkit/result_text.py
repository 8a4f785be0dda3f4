"""The text of a call's result: cut to size for the model, and its error in one line."""

from __future__ import annotations

from activities.redaction.secrets import redact
from activities.text.safe_text import cut_middle


def result_error_line(text: str) -> str:
    """Return the error's first line, redacted and cut: all that workflow code sees of it."""
    return redact(text.splitlines()[0][:5000])[:200]


def truncate_result(text: str, limit: int) -> str:
    """Cut a result to `limit` characters, replacing the middle by a line that says so."""
    if len(text) <= limit:
        return text
    mark = "[TRUNCATED {gone} characters; ask for a part: offset, limit and column, pages, a path]"
    return cut_middle(text, limit - 200, mark)
