"""Groups the statements of a long brief, so that the ledger stays short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from activities.job.brief_statements import MAX_TEXT, Statement
from protocol.short_text import one_line

MAX_GROUPS = 40
MAX_IN_GROUP = 8
"""Most statements of a heading that stay one group while there is room for more groups."""


@dataclass(frozen=True, slots=True)
class StatementGroup:
    """Neighbouring statements that make one item."""

    title: str
    statements: tuple[Statement, ...]


def group_statements(
    statements: Sequence[Statement], most: int = MAX_GROUPS
) -> list[StatementGroup]:
    """Return the statements in at most `most` groups of neighbours, by headings if there are more.

    Headings share a group if they are too many; one with many statements is divided if there is
    room. No statement is lost or moved.
    """
    if len(statements) <= most:
        return [StatementGroup(each.text, (each,)) for each in statements]
    headed = groupby(statements, key=lambda each: (each.path, each.heading))
    runs = [list(run) for _, run in headed]
    if len(runs) > most:
        runs = _join_runs(runs, most)
    return [_group_of(run) for run in _divide_runs(runs, most)]


def _join_runs(runs: list[list[Statement]], most: int) -> list[list[Statement]]:
    """Join neighbours to at most `most` runs of about the same size."""
    total = sum(map(len, runs))
    joined: dict[int, list[Statement]] = {}
    before = 0
    for run in runs:
        joined.setdefault(before * most // total, []).extend(run)
        before += len(run)
    return list(joined.values())


def _divide_runs(runs: list[list[Statement]], most: int) -> list[list[Statement]]:
    """Divide runs of too many statements as long as there is room; those without heading most."""
    fewest = -(-sum(map(len, runs)) // most)
    for limit in range(fewest, max(map(len, runs)) + 1):
        divided = [
            part
            for run in runs
            for part in _even_parts(run, max(limit, MAX_IN_GROUP) if run[0].heading else limit)
        ]
        if len(divided) <= most:
            return divided
    return runs


def _even_parts(run: list[Statement], limit: int) -> Iterator[list[Statement]]:
    count = -(-len(run) // limit)
    for number in range(count):
        yield run[len(run) * number // count : len(run) * (number + 1) // count]


def _group_of(run: list[Statement]) -> StatementGroup:
    titles = list(dict.fromkeys(each.heading for each in run if each.heading))
    title = one_line("; ".join(titles), MAX_TEXT) if titles else run[0].text
    return StatementGroup(title, tuple(run))
