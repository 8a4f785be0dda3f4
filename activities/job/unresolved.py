"""What a job lists as unresolved, and whether that explains what it leaves open."""

from __future__ import annotations

import re
from collections.abc import Sequence

from protocol.scope_ledger import ScopeItem, is_empty_reason, named_item_ids

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


def explained_items(items: Sequence[ScopeItem], entries: Sequence[str]) -> set[str]:
    """Return the ids of the items that have an entry of their own which says something.

    An entry stands for the item that it names first: one that names all explains one.
    """
    texts = {item.id: item.text for item in items}
    explained = set[str]()
    for entry in entries:
        for name in named_item_ids(entry, texts)[:1]:
            reason = re.sub(rf"(?<!\w){name}(?!\w)", " ", entry).replace(texts[name], " ")
            if not is_empty_reason(reason):
                explained.add(name)
    return explained
