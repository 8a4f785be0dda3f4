"""What a new job owes: the items that a person listed, else the statements of its brief."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from activities.documents.input_documents import InputDocument
from activities.job import brief_statements as brief_reading
from activities.job.brief_statements import brief_statements
from activities.job.named_results import named_results
from activities.job.scope_list import scope_list
from activities.job.statement_groups import StatementGroup, group_statements
from protocol.scope_ledger import (
    STATEMENT_CHARACTERS,
    TEXT_CHARACTERS,
    ScopeItem,
    Statement,
    scope_from_texts,
)
from protocol.short_text import count_noun, one_line

INSTRUCTIONS = "instructions.md"
UNREAD_SCOPE = (
    "scope: instructions.md has a heading for the scope, and nothing below it could be read as a "
    "list; the statements of the brief are the items"
)
WHOLE_BRIEF = "What {place} asks for"


@dataclass
class JobScope:
    """Items with notices for people about where they come from."""

    items: list[ScopeItem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def read_job_scope(
    given: Sequence[str],
    instructions: str,
    brief: str,
    documents: Iterable[InputDocument] = (),
    earlier: Sequence[ScopeItem] | None = None,
) -> JobScope:
    """Return the items of a job's start.

    Args:
        given: Items that the start lists.
        instructions: The text of instructions.md.
        brief: The part of it that is the job's own; empty if the agent's template says it all.
        documents: Input documents that are part of the brief.
        earlier: Items of the job that this one is a fork of, for which `brief` is the amendment;
            new ones are numbered after them.
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
    statements = _brief_of_instructions(instructions, brief)
    for document in documents:
        statements += brief_statements(document.text, f"documents/{document.name}")
    number = 1 + sum(item.source == "brief" for item in earlier)
    if not statements and is_fork and not brief.strip():
        return JobScope([], notices)
    if not statements:
        text = one_line(brief, 120) or WHOLE_BRIEF.format(place=INSTRUCTIONS)
        # Code checks the files of a brief in a form or language that it cannot read, too.
        paths = [path for path in named_results(brief) if path.startswith("output/")]
        said = one_line(brief, STATEMENT_CHARACTERS) or text
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
    return JobScope(items, notices)


def _brief_of_instructions(instructions: str, brief: str) -> list[brief_reading.Statement]:
    """Return the statements of the job's own text, at their lines of instructions.md."""
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
