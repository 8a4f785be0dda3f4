"""What a reviewer sees that a brief asks for, and code did not take as a statement."""

import re
from collections.abc import Iterator, Sequence

from activities.acceptance.reviewer_quotes import fold_quote
from protocol.contract import numbered_statements
from protocol.scope_ledger import ScopeItem, Statement

LEAST_WORDS = 3
MAX_ADDED = 10
"""Statements that reviews may add to a job."""


def add_missed_statements(
    scope: Sequence[ScopeItem], brief: str, added: Sequence[Statement]
) -> Iterator[tuple[int, Statement]]:
    """Add a reviewer's statements to the items that stand before them in the brief.

    Words that are not in the brief, or are part of a statement, add nothing. Nor does a review of
    items that a person listed: they are all that is asked for.

    Yields:
        The place of each among all statements, and what the reviewer says of it.
    """
    folded_brief = fold_quote(brief)
    for judged in added[: MAX_ADDED - _added_before(scope)]:
        words = fold_quote(judged.text)
        stated = [
            (item, fold_quote(statement.text))
            for _, item, statement in numbered_statements(scope)
            if item.source == "brief"
        ]
        owed = [(item, text) for item, text in stated if item.status != "dropped"]
        found = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", folded_brief)
        is_known = any(words.strip(".!") in text for _, text in stated)
        if not owed or found is None or is_known or len(words.split()) < LEAST_WORDS:
            continue
        before = [item for item, text in owed if -1 < folded_brief.find(text) < found.start()]
        item = before[-1] if before else owed[0][0]
        item.statements = [
            *(item.statements or [Statement(text=item.text)]),
            Statement(text=judged.text),
        ]
        item.weight += 1
        items = [each for _, each, _ in numbered_statements(scope)]
        yield len(items) - 1 - items[::-1].index(item), judged


def _added_before(scope: Sequence[ScopeItem]) -> int:
    """Return how many statements earlier reviews added, which have no place in a file."""
    statements = [each for item in scope if item.source == "brief" for each in item.statements]
    return min(MAX_ADDED, sum(not each.place for each in statements))
