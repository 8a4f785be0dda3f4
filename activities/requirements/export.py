"""Export of requirements: Markdown pages, a table, CSV rows."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO

from activities.requirements.requirement import Citation, Requirement, place_word
from activities.requirements.requirement_store import StoredRequirement
from protocol.short_text import table_cell

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
    kept_lines: Sequence[str] = (),
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
    if kept_lines:
        lines += ["", "## Kept of the earlier version", "", *(f"- {line}" for line in kept_lines)]
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
    values = {
        **each.model_dump(),
        **vars(entry),
        **citation.model_dump(),
        "id": each.ref if each.job else each.id,
        "digest": each.digest if citation.document == each.source and not origin else "",
        "place": place_word(citation.document),
        "passage": number,
        "decided_at": f"{decided:%Y-%m-%dT%H:%M:%SZ}" if decided else "",
        "confidence": f"{each.confidence:g}",
        "from": origin,
    }
    return {name: "" if values[name] is None else str(values[name]) for name in COLUMNS}


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
        "id", "source_id", "force", "document", "section", "page", "text", "status",
    ),
) -> str:  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(table_cell(row[name]) for name in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _escape_formula(value: str) -> str:
    # Spreadsheets would run such text as a formula, and it comes from strangers' documents.
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
