"""Texts within a line: folded, closed, cut and listed."""

from __future__ import annotations

from collections.abc import Sequence


def one_line(text: str, limit: int) -> str:
    """White space folded, and no longer than `limit`."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else f"{folded[: limit - 1]}…"


def sentence(text: str) -> str:
    """Closed by a full stop unless it ends in a mark of its own, so that another can follow."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…", ":", ";")) else f"{text}."


def first_few(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: no more than `most` of the names."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
