"""Arguments of a call as people are shown them: redacted, and cut to a bounded size."""

from __future__ import annotations

import json
from typing import Any

from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates

MAX_CHARACTERS = 16_000
"""Total size of all arguments, since they go into history and onto a screen."""


def show_arguments(arguments: dict[str, Any]) -> dict[str, str]:
    """Return each argument as redacted text; cut ones say how many characters are missing."""
    most = MAX_CHARACTERS // max(1, len(arguments))
    return {
        name: _cut_argument(redact(_argument_text(value)), most)
        for name, value in arguments.items()
    }


def _argument_text(value: Any) -> str:
    if isinstance(value, str):
        return replace_surrogates(value)
    return replace_surrogates(
        json.dumps(value, ensure_ascii=False, default=lambda model: model.model_dump())
    )


def _cut_argument(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]} [{len(text) - most:,} more characters are not shown]"
