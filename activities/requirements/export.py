"""Export of requirements: Markdown pages, a table, CSV rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO

from activities.requirements.requirement import Citation, Requirement, place_word
from activities.requirements.requirement_store import StoredRequirement

COLUMNS = (
    "id", "source_id", "force", "type", "text", "document", "digest", "section", "place", "page",
    "label", "quote", "passage", "status", "suspect", "decided_by", "decided_at", "confidence",
    "reasoning", "rationale", "verification", "priority", "owner", "duplicate_of", "from", "url",
)  # fmt: skip
"""`passage` counts the passages of a requirement; `from` names the duplicate that one is of."""


def requirements_as_pages(
    requirements: Iterable[Requirement],
    statements: Sequence[str],
    set_aside: Sequence[str],
    sample: Sequence[str],
    kept: Sequence[str] = (),
) -> str:
    """Return a Markdown page of requirements with their passages, grouped by source in the order in
    which the sources first appear.

    Args:
        requirements: In order.
        statements: What is complete of each document and on which ground.
        set_aside: What each rule sets aside.
        sample: What was read of the sentences that nothing cites.
        kept: The requirements of an earlier version that still stand, a line each.
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
    if kept:
        lines += ["", "## Kept of the earlier version", "", *(f"- {line}" for line in kept)]
    lines += ["", "## Set aside", "", *([f"- {line}" for line in set_aside] or ["Nothing."])]
    lines += ["", "## Sample", "", *([f"- {line}" for line in sample] or ["None."])]
    return "\n".join(lines) + "\n"


def requirement_rows(
    entries: Iterable[StoredRequirement], duplicates: Mapping[str, Sequence[Requirement]]
) -> list[dict[str, str]]:
    """Return a row for each passage of each requirement.

    Args:
        entries: In order.
        duplicates: The requirements that were found to be duplicates, by what they are of: their
            passages are further sources of the original.
    """
    rows = []
    for entry in entries:
        requirement = entry.requirement
        sources = [("", each) for each in requirement.citations]
        sources += [
            (other.ref, each)
            for other in duplicates.get(requirement.ref, [])
            for each in other.citations
        ]
        for number, (origin, citation) in enumerate(sources, 1):
            rows.append(_passage_row(entry, citation, number, origin))
    return rows


def _passage_row(
    entry: StoredRequirement, citation: Citation, number: int, origin: str
) -> dict[str, str]:
    each = entry.requirement
    decided = datetime.fromtimestamp(entry.decided_at / 1000, UTC) if entry.decided_at else None
    return {
        "id": each.ref if each.job else each.id,
        "source_id": citation.source_id or "",
        "force": each.force,
        "type": each.type,
        "text": each.text,
        "document": citation.document,
        "digest": (each.digest or "") if citation.document == each.source and not origin else "",
        "section": citation.section or "",
        "place": place_word(citation.document),
        "page": str(citation.page),
        "label": citation.label or "",
        "quote": citation.quote,
        "passage": str(number),
        "status": each.status,
        "suspect": entry.suspect or "",
        "decided_by": entry.decided_by or "",
        "decided_at": f"{decided:%Y-%m-%dT%H:%M:%SZ}" if decided else "",
        "confidence": f"{each.confidence:g}",
        "reasoning": each.reasoning,
        "rationale": each.rationale or "",
        "verification": each.verification or "",
        "priority": each.priority or "",
        "owner": entry.owner or "",
        "duplicate_of": each.duplicate_of or "",
        "from": origin,
        "url": citation.url or "",
    }


def group_duplicates(entries: Iterable[StoredRequirement]) -> dict[str, list[Requirement]]:
    """Return the duplicates among these, by the requirement that they are duplicates of."""
    groups: dict[str, list[Requirement]] = {}
    for entry in entries:
        if entry.requirement.duplicate_of:
            groups.setdefault(entry.requirement.duplicate_of, []).append(entry.requirement)
    return groups


def requirements_as_csv(rows: Iterable[dict[str, str]]) -> str:
    """Return CSV with a header, formulas escaped."""
    out = StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _escape_formula(value) for name, value in row.items()})
    return out.getvalue()


def requirements_as_table(
    rows: Iterable[dict[str, str]],
    columns: Sequence[str] = (
        "id",
        "source_id",
        "force",
        "document",
        "section",
        "page",
        "text",
        "status",
    ),
) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [
        f"| {' | '.join(_export_table_cell(row[name]) for name in columns)} |" for row in rows
    ]
    return "\n".join(lines) + "\n"


def _escape_formula(value: str) -> str:
    # Spreadsheets would run such text as a formula, and it comes from strangers' documents.
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _export_table_cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")
