"""Searches the stored requirements by words and likeness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.root_access import run_with_root

if TYPE_CHECKING:
    from activities.requirements.requirement_store import StoredRequirement

MIN_LIKENESS = 0.2
"""Minimum similarity of a search result."""


def rank_requirements(words: str, entries: list[StoredRequirement]) -> list[StoredRequirement]:
    """Sort requirements with all of the words first, then similar ones; drop the rest."""
    from activities.search.text_likeness import compute_text_likeness  # noqa: PLC0415 - loads the activities

    texts = [
        f"{entry.requirement.text} {entry.requirement.citations[0].quote}".casefold()
        for entry in entries
    ]
    query_words = words.casefold().split()
    alike = compute_text_likeness(words, texts, rarity=True)
    has_all_words = [all(word in text for word in query_words) for text in texts]
    ranked = sorted(
        range(len(entries)), key=lambda place: (not has_all_words[place], -alike[place])
    )
    return [
        entries[place] for place in ranked if has_all_words[place] or alike[place] >= MIN_LIKENESS
    ]


def read_stored_requirements(only: dict[str, Any]) -> list[StoredRequirement]:
    from activities.requirements import requirement_store as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    return run_with_root(
        lambda root: RelationalStore(root).read(lambda c: rows.search_requirement_store(c, **only))
    )
