"""What a new job owes: the items that a person listed, else the statements of its brief."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from activities.job.brief_statements import MAX_TEXT, brief_statements, unread_sentences
from activities.job.brief_statements import Statement as ReadStatement
from activities.job.input_documents import InputDocument
from activities.job.named_results import named_results
from activities.job.scope_list import scope_list
from protocol.scope_ledger import (
    STATEMENT_CHARACTERS,
    TEXT_CHARACTERS,
    ScopeItem,
    Statement,
    scope_from_texts,
)
from protocol.short_text import count_noun, first_few, one_line

MAX_GROUPS = 40
MAX_IN_GROUP = 8
"""Most statements of a heading that stay one group while there is room for more groups."""

_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#:]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StatementGroup:
    title: str
    statements: tuple[ReadStatement, ...]


def group_statements(statements: Sequence[ReadStatement]) -> list[StatementGroup]:
    """Return at most `MAX_GROUPS` groups of neighbouring statements, by headings if there are more.

    Headings share a group if they are too many; one with many statements is divided if there is
    room. No statement is lost or moved.
    """
    if len(statements) <= MAX_GROUPS:
        return [StatementGroup(each.text, (each,)) for each in statements]
    headed = groupby(statements, key=lambda each: (each.path, each.heading))
    runs = [list(run) for _, run in headed]
    if len(runs) > MAX_GROUPS:
        runs = _join_runs(runs)
    return [_group_of(run) for run in _divide_runs(runs)]


def _join_runs(runs: list[list[ReadStatement]]) -> list[list[ReadStatement]]:
    total = sum(map(len, runs))
    joined: dict[int, list[ReadStatement]] = {}
    before = 0
    for run in runs:
        joined.setdefault(before * MAX_GROUPS // total, []).extend(run)
        before += len(run)
    return list(joined.values())


def _divide_runs(runs: list[list[ReadStatement]]) -> list[list[ReadStatement]]:
    """Divide runs of too many statements as long as there is room; those without heading most."""
    fewest = -(-sum(map(len, runs)) // MAX_GROUPS)
    for limit in range(fewest, max(map(len, runs)) + 1):
        divided = [
            part
            for run in runs
            for part in _even_parts(run, max(limit, MAX_IN_GROUP) if run[0].heading else limit)
        ]
        if len(divided) <= MAX_GROUPS:
            return divided
    return runs


def _even_parts(run: list[ReadStatement], limit: int) -> Iterator[list[ReadStatement]]:
    count = -(-len(run) // limit)
    for number in range(count):
        yield run[len(run) * number // count : len(run) * (number + 1) // count]


def _group_of(run: list[ReadStatement]) -> StatementGroup:
    titles = list(dict.fromkeys(each.heading for each in run if each.heading))
    title = one_line("; ".join(titles), MAX_TEXT) if titles else run[0].text
    return StatementGroup(title, tuple(run))


INSTRUCTIONS = "instructions.md"
UNREAD_SCOPE = (
    "scope: instructions.md has a heading for the scope, and nothing below it could be read as a "
    "list; the statements of the brief are the items"
)
MAX_UNREAD = 3
"""Sentences named in which nothing was found that is asked for."""
WHOLE_BRIEF = "What {place} asks for"


@dataclass
class JobScope:
    items: list[ScopeItem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def read_job_scope(
    given: Sequence[str],
    instructions: str,
    brief: str,
    documents: Iterable[InputDocument] = (),
    earlier: Sequence[ScopeItem] | None = None,
    *,
    by_statement: bool = True,
) -> JobScope:
    """Return the items of a job's start.

    Args:
        brief: The part of it that is the job's own; empty if the agent's template says it all.
        documents: Input documents that are part of the brief.
        earlier: Items of the job that this one is a fork of, for which `brief` is the amendment;
            new ones are numbered after them.
        by_statement: Otherwise the brief is one item, of whose files code knows nothing.
    """
    is_fork, earlier = earlier is not None, earlier or ()
    first = 1 + sum(item.source == "given" for item in earlier)
    if listed := [text for text in given if text.strip()]:
        return JobScope(scope_from_texts(listed, first))
    # Of a fork only the amendment is new.
    scope = scope_list(brief if is_fork else instructions)
    if scope.entries:
        return JobScope(scope_from_texts(scope.entries, first))
    notices = [UNREAD_SCOPE] if scope.found else []
    statements = _brief_of_instructions(instructions, brief) if by_statement else []
    for document in documents if by_statement else ():
        statements += brief_statements(document.text, f"documents/{document.name}")
    number = 1 + sum(item.source == "brief" for item in earlier)
    if not statements and is_fork and not brief.strip():
        return JobScope([], notices)
    if not statements:
        plain = _HEADING.sub(r"\1:", brief.strip()).rstrip(":")
        text = one_line(plain, 120) or WHOLE_BRIEF.format(place=INSTRUCTIONS)
        # Code checks the files of a brief in a form or language that it cannot read, too.
        named = named_results(brief) if by_statement else []
        paths = [path for path in named if path.startswith("output/")]
        said = one_line(plain, STATEMENT_CHARACTERS) or text
        whole = Statement(text=said, place=INSTRUCTIONS, paths=paths)
        return JobScope(
            [ScopeItem(id=f"B{number}", text=text, source="brief", statements=[whole])], notices
        )
    groups = group_statements(statements)
    items = [_brief_item(f"B{n}", group) for n, group in enumerate(groups, number)]
    if len(groups) < len(statements):
        notices.append(
            f"scope: the brief has {count_noun(len(statements), 'statement')}, which "
            f"{count_noun(len(groups), 'item')} group by heading"
        )
    if unread := unread_sentences(brief):
        quoted = first_few([f'"{each}"' for each in unread], MAX_UNREAD)
        notices.append(f"scope: not taken as asked for: {quoted}")
    return JobScope(items, notices)


def _brief_of_instructions(instructions: str, brief: str) -> list[ReadStatement]:
    text = brief.strip()
    before = instructions.partition(text)[0] if text and text in instructions else ""
    offset = before.count("\n")
    return [replace(each, line=each.line + offset) for each in brief_statements(text, INSTRUCTIONS)]


def _brief_item(id: str, group: StatementGroup) -> ScopeItem:
    kept = [
        Statement(
            text=one_line(each.text, STATEMENT_CHARACTERS),
            place=f"{each.path}:{each.line}",
            paths=list(each.paths),
        )
        for each in group.statements
    ]
    text = kept[0].text
    if len(kept) > 1:
        first, last = group.statements[0], group.statements[-1]
        lines = f"{first.path}:{first.line}-{last.line}"
        text = f"{one_line(group.title, 200)} ({len(kept)} statements, {lines})"
    return ScopeItem(
        id=id,
        text=one_line(text, TEXT_CHARACTERS),
        source="brief",
        weight=len(kept),
        statements=kept,
    )
