"""The message of a commit: a subject, the full text and trailers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protocol.short_text import one_line, shorten_to_start

SUBJECT = 72
"""Most characters of a commit's first line."""


def commit_message(story: str, trailers: Mapping[str, str | Sequence[str]]) -> str:
    """A commit message: the first sentence as subject, the text, and trailers.

    The text leaves out a first line that is nothing but the subject.
    """
    text = story.strip()
    first = text.partition("\n")[0].partition(". ")[0].strip().removesuffix(".")
    subject = first if len(first) <= SUBJECT else shorten_to_start(first, SUBJECT)
    opening, _, rest = text.partition("\n")
    if opening.strip().removesuffix(".") == subject:
        text = rest.strip()
    parts = [subject, *([text] if text else [])]
    lines = [
        f"{name}: {one_line(value, 300)}"
        for name, values in trailers.items()
        for value in ([values] if isinstance(values, str) else values)
        if value
    ]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])]) + "\n"
