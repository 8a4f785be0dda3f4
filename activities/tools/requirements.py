"""Requirement tools: candidates found by their language, requirements with their citations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.documents import identify, unread_told
from activities.plain import as_json
from activities.requirements import folder, listing
from activities.requirements.requirement import Citation, Kind, Requirement
from activities.stores.deferring import Writer
from activities.stores.workspace import bring_up
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError
from activities.toolkit.registry import tool
from activities.tools.documents import DocumentPath, document_of, document_pages

LISTED = 120
LISTED_TEXT = 110


@tool("requirements", effect="writes", phases=("tactical",), local=False, seconds=180)
def identify_requirement_candidates(context: ToolContext, path: DocumentPath) -> str:
    """Find sentences that may be requirements, by obligation language in English and German.

    Answers with the list, and keeps those of all documents identified so far in
    candidates/candidates.json and, to be read, in candidates/candidates.md; asked about a document
    again, it replaces what it had there. Indicators of GoBD and GDPR are named. Recall comes before
    precision: decide on each, and read the document for what no wording shows, such as tables.
    """
    path = document_of(context, path)
    threshold = context.config.settings.confidence_threshold
    pages = document_pages(context, path)
    every = identify(page for page in pages if not page.unread)
    found = [c for c in every if c.confidence >= threshold]
    try:
        context.files = listing.put(context.files, path, found)
    except folder.Unusable as problem:
        raise ToolError(f"{problem}. Mend it, or move it away and identify again.") from None
    # Unsaid, the numbers that are missing would pass for sentences that ask for nothing.
    weak = len(every) - len(found)
    left_out = (
        f" {weak} below confidence {threshold:g} left out, such as permissions." if weak else ""
    )
    left_out += unread_told(pages)
    if not found:
        return f"No candidates in {path}.{left_out}"
    lines = [listing.told(candidate, LISTED_TEXT) for candidate in found[:LISTED]]
    if len(found) > LISTED:
        lines.append(f"[TRUNCATED {len(found) - LISTED} more in {listing.MARKDOWN}]")
    head = f"{len(found)} candidates in {path}, all in {listing.MARKDOWN}.{left_out}"
    return "\n".join([head, *lines])


@tool("requirements", effect="outside", phases=("tactical",), local=False, seconds=120)
def add_requirement(
    context: ToolContext,
    text: Annotated[str, Field(min_length=10, max_length=4000, description="One statement.")],
    type: Kind,
    citations: Annotated[list[str], Field(min_length=1, max_length=20, description="Their ids.")],
    reasoning: Annotated[str, Field(min_length=1, max_length=4000)],
    confidence: Annotated[float, Field(ge=0, le=1)],
    candidate: Annotated[
        str | None, Field(max_length=1000, description="Id of the candidate it is from.")
    ] = None,
) -> str:
    """Write a requirement down under requirements/ and in the store, with its citations.

    The system gives the id. Every citation must have been made with cite_document or cite_web.
    The store takes its content from `final.json`: what is edited or deleted there follows with the
    next call, or when the job completes.
    """
    cited = [_citation(context, name) for name in citations]
    present = context.files.children("requirements") if _exists(context, "requirements") else []
    number = 1 + max((_number(entry.path) for entry in present), default=0)
    place = f"requirements/req_{number:03d}"
    made = Requirement(
        id=f"REQ-{number:03d}",
        text=text,
        type=type,
        source=cited[0].document,
        citations=cited,
        reasoning=reasoning,
        confidence=confidence,
        candidate=candidate,
    )
    quotes = "\n".join(f"> {c.quote}\n> ({c.document}, page {c.page})\n" for c in cited)
    for name, content in {
        "draft.md": f"# {made.id}\n\n{text}\n",
        "research.md": f"# Research for {made.id}\n\n{reasoning}\n\n{quotes}",
        "citations.json": as_json([citation.model_dump(exclude_none=True) for citation in cited]),
        "final.json": made.final_json,
    }.items():
        context.files = context.files.write(f"{place}/{name}", content.encode())
    remarks = bring_up(Writer.of(context))
    return "\n".join([f"{made.id} written to {place}/", *remarks])


def _citation(context: ToolContext, name: str) -> Citation:
    path = f"citations/{name}.json"
    if "/" in name or not _exists(context, path):
        raise ToolError(f"There is no citation {name}. Make it first with cite_document.")
    return Citation.model_validate_json(context.files.read(path))


def _exists(context: ToolContext, path: str) -> bool:
    return context.files.entry(path) is not None


def _number(path: str) -> int:
    digits = path.rpartition("_")[2]
    return int(digits) if digits.isdecimal() else 0
