"""Export of requirements: Markdown pages, a table, CSV rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from activities.requirements.requirement import Requirement

COLUMNS = (
    "id", "force", "type", "text", "document", "section", "page", "label", "quote", "status",
    "confidence", "reasoning", "duplicate_of", "url",
)  # fmt: skip


def requirements_as_pages(
    requirements: Iterable[Requirement],
    statements: Sequence[str],
    set_aside: Sequence[str],
    sample: Sequence[str],
) -> str:
    """Return a Markdown page of requirements with their passages, grouped by source in the order in
    which the sources first appear.

    Args:
        requirements: In order.
        statements: What is complete of each document and on which ground.
        set_aside: What each rule sets aside.
        sample: What was read of the sentences that nothing touches.
    """
    lines = ["# Requirements", "", *(f"- {line}" for line in statements)]
    source, listed = "", list(requirements)
    sources = list(dict.fromkeys(each.source for each in listed))
    for each in sorted(listed, key=lambda each: sources.index(each.source)):
        if each.source != source:
            source = each.source
            lines += ["", f"## {source}"]
        lines += ["", f"### {each.id} · {each.force} · {each.type}", "", each.text, ""]
        for citation in each.citations:
            lines += [f"> {citation.quote}", ">", f"> ({citation.document}, {citation.place})", ""]
        lines.append(f"Confidence {each.confidence:g}. {each.reasoning}")
    lines += ["", "## Set aside", "", *([f"- {line}" for line in set_aside] or ["Nothing."])]
    lines += ["", "## Sample", "", *([f"- {line}" for line in sample] or ["None."])]
    return "\n".join(lines) + "\n"


def requirement_rows(requirements: Iterable[Requirement]) -> list[dict[str, str]]:
    """Return a row per requirement with its first passage; `id` includes the job where known."""
    return [
        {
            "id": each.ref if each.job else each.id,
            "force": each.force,
            "type": each.type,
            "text": each.text,
            "document": first.document,
            "section": first.section or "",
            "page": str(first.page),
            "label": first.label or "",
            "quote": first.quote,
            "status": each.status,
            "confidence": f"{each.confidence:g}",
            "reasoning": each.reasoning,
            "duplicate_of": each.duplicate_of or "",
            "url": first.url or "",
        }
        for each in requirements
        for first in each.citations[:1]
    ]


def requirements_as_csv(requirements: Iterable[Requirement]) -> str:
    """Return CSV with a header, formulas escaped."""
    out = StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in requirement_rows(requirements):
        writer.writerow({name: _escape_formula(value) for name, value in row.items()})
    return out.getvalue()


def requirements_as_table(
    requirements: Iterable[Requirement],
    columns: Sequence[str] = ("id", "force", "document", "section", "page", "text", "status"),
) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [
        f"| {' | '.join(_export_table_cell(row[name]) for name in columns)} |"
        for row in requirement_rows(requirements)
    ]
    return "\n".join(lines) + "\n"


def _escape_formula(value: str) -> str:
    # Spreadsheets would run such text as a formula, and it comes from strangers' documents.
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _export_table_cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")
