"""Exports that need more than the store: the marked document, and the matrix from the graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from cli.output import UserError, print_note
from cli.root_access import run_with_root
from protocol.short_text import table_cell

if TYPE_CHECKING:
    from activities.checkpoints import Root
    from activities.documents.pages import Page
    from activities.requirements.graph.neighbours import Relations
    from activities.requirements.requirement_store import StoredRequirement


def export_marked_document(entries: list[StoredRequirement], document: str) -> str:
    """Return the document's text with the requirements marked, as HTML.

    Raises UserError: the requirements are from several documents, or its text is no longer there.
    """
    from activities.requirements.marked_document import mark_document  # noqa: PLC0415 - loads the activities

    cited = Counter(
        (entry.requirement.job, citation.document)
        for entry in entries
        for citation in entry.requirement.citations
        if citation.document.endswith(document)
    )
    if not cited:
        raise UserError("--format html: no requirement to mark; name a document with --document")
    names = {name for _, name in cited}
    if len(names) > 1:
        raise UserError(
            f"--format html: one document at a time, with --document: {', '.join(sorted(names))}"
        )
    (job, name), _ = cited.most_common(1)[0]
    pages, statement = run_with_root(lambda root: _read_cited_pages(root, job, name))
    of_document = [
        each for each in entries if any(c.document == name for c in each.requirement.citations)
    ]
    return mark_document(name, pages, of_document, statement)


def _read_cited_pages(root: Root, job: str, name: str) -> tuple[list[Page], str]:
    """Return a document's pages from the job's folder, and what is said of its completeness."""
    from activities.documents.bounded_reader import read_document_bounded  # noqa: PLC0415
    from activities.documents.pages import DocumentError, parse_pages  # noqa: PLC0415
    from activities.job.input_documents import input_document_text_name  # noqa: PLC0415

    folder = root.workspace(job)
    try:
        beside = folder / input_document_text_name(name)
        pages = (
            parse_pages(beside.read_text(encoding="utf-8"))
            if beside.exists()
            else read_document_bounded(name, (folder / name).read_bytes()).pages
        )
    except (OSError, DocumentError) as error:
        raise UserError(f"--format html: {name} of {job} cannot be read: {error}") from None
    page = folder / "output/requirements.md"
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    return pages, next((line[2:] for line in lines if line.startswith(f"- {name} is ")), "")


def read_relations(refs: list[str]) -> dict[str, Relations]:
    """Return the relations of requirements in the graph; empty, with a note, if it is away."""
    from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError  # noqa: PLC0415
    from activities.requirements.graph.neighbours import requirement_neighbours  # noqa: PLC0415
    from config.agent_files import load_agent  # noqa: PLC0415

    schema = load_agent("validator").graph_schema
    try:
        return run_with_root(lambda root: requirement_neighbours(root, schema, refs))
    except (GraphQueryError, GraphUnavailableError) as error:
        print_note(f"without what the graph has: {error}")
        return {}


def contradicting_pairs(refs: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of these requirements that the graph relates as contradicting."""
    return [
        (ref, str(relation["to"]).partition(" ")[2])
        for ref, relations in read_relations(refs).items()
        for relation in relations
        if relation["relation"] == "CONTRADICTS" and "to" in relation
    ]


def export_matrix(entries: list[StoredRequirement]) -> str:
    """Return a Markdown table: requirement, source, and what fulfils it in the graph."""
    known = read_relations([each.requirement.ref for each in entries])
    lines = [
        "| requirement | status | source | number | text | fulfilled by | other relations |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        requirement = entry.requirement
        relations = known.get(requirement.ref, [])
        fulfils = [each for each in relations if each["relation"] == "FULFILLED_BY"]
        others = [each for each in relations if each["relation"] != "FULFILLED_BY"]
        first = requirement.citations[0]
        cells = [
            requirement.ref,
            f"{requirement.status}{', suspect' if entry.suspect else ''}",
            f"{first.document.rpartition('/')[2]}, {first.place}",
            requirement.source_id,
            requirement.text,
            "; ".join(map(_relation_words, fulfils)) or "nothing",
            "; ".join(map(_relation_words, others)),
        ]
        lines.append(f"| {' | '.join(map(table_cell, cells))} |")
    return "\n".join(lines) + "\n"


def _relation_words(relation: dict[str, Any]) -> str:
    end = relation.get("to") or f"from {relation.get('from')}"
    name = "" if relation["relation"] == "FULFILLED_BY" else f"{relation['relation']} "
    degree = f" ({relation['degree']})" if relation.get("degree") else ""
    return f"{name}{end}{degree}"
