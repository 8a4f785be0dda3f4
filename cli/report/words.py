"""Texts of others made fit to be shown."""

from __future__ import annotations

from typing import Any

from activities.guards.secrets import redact
from cli.output import visible
from protocol.text import one_line

LINE = 300
TEXT = 4000


def line(value: object, limit: int = LINE) -> str:
    """On one line, bounded, credentials hidden."""
    return one_line(visible(redact(_text(value))), limit)


def text(value: object, limit: int = TEXT) -> str:
    """The same with its line breaks."""
    shown = visible(redact(_text(value))).strip()
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def tidy(value: Any) -> Any:
    """Plain data with every text in it made fit, as deep as it goes."""
    if isinstance(value, dict):
        return {line(key): tidy(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [tidy(held) for held in value[:100]]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return text(value, 1000)


def _text(value: object) -> str:
    # Patterns for credentials run over it: lone surrogates are no text to them.
    whole = "" if value is None else str(value)
    return whole[:100_000].encode("utf-8", "backslashreplace").decode()
