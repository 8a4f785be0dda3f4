"""What a job lists as unresolved, and whether that explains what it leaves open."""

from __future__ import annotations

import re
from collections.abc import Sequence

MIN_WORDS = 2
"""Words that an entry of `unresolved` must have besides the name to count as a reason."""


def is_named_unresolved(name: str, text: str, entries: Sequence[str]) -> bool:
    """Return whether an entry names this and says more than its own text."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    return any(
        pattern.search(entry)
        and len(re.findall(r"\w{2,}", pattern.sub(" ", entry.replace(text, " ")))) >= MIN_WORDS
        for entry in entries
    )
