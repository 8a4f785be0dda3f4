"""The message of a commit: a subject, the full text and trailers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protocol.short_text import one_line, shorten_to_start

SUBJECT = 72
"""Most characters of a commit's first line."""


def commit_message(story: str, trailers: Mapping[str, str | Sequence[str]]) -> str:
    """A commit message: the first sentence as subject, the full text, and trailers."""
    text = story.strip()
    first = text.partition("\n")[0].partition(". ")[0].strip().removesuffix(".")
    subject = first if len(first) <= SUBJECT else shorten_to_start(first, SUBJECT)
    parts = [subject]
    if text.removesuffix(".") != subject:
        parts.append(text)
    lines = [
        f"{name}: {one_line(value, 300)}"
        for name, values in trailers.items()
        for value in ([values] if isinstance(values, str) else values)
        if value
    ]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])]) + "\n"
