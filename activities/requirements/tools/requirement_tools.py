"""Tools that write requirements down, with their citations."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from pydantic import Field

from activities.documents import FoldedPage, Page
from activities.requirements import requirement_files
from activities.requirements.citations import (
    QuotedPassage,
    record_all_citations,
    render_citation,
)
from activities.requirements.open_candidates import open_candidate_fault
from activities.requirements.requirement import (
    MAX_CITATIONS,
    Citation,
    Priority,
    Requirement,
    RequirementKind,
    Verification,
    normalized_words,
)
from activities.requirements.requirement_files import stated_requirements
from activities.requirements.requirement_survey import view_document
from activities.requirements.store_sync import sync_store_or_defer
from activities.requirements.text.candidate_sentences import Force, candidate_binding_force
from activities.requirements.text.meaning import statement_faults
from activities.requirements.text.statements import lead_ins_of_passage
from activities.stores.outbox import OutboxWriter
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.workspace_documents import (
    document_digest,
    input_document_paths,
    read_workspace_pages,
)

FEW_WORDS = 3
"""Words of a quote that has to be rare in its document."""
OFTEN = 3
Quotes = Annotated[
    list[QuotedPassage] | None,
    Field(
        max_length=MAX_CITATIONS,
        description="Passages to cite, each with path, page and quote; all or none are recorded.",
    ),
]
Citations = Annotated[
    list[str] | None,
    Field(max_length=MAX_CITATIONS, description="Ids of citations that were made before."),
]


@tool("requirements", effect="outside", local=False, seconds=120, owns=("citations/",))
def add_requirement(
    context: ToolContext,
    text: Annotated[str, Field(min_length=10, max_length=4000, description="One statement.")],
    type: RequirementKind,
    reasoning: Annotated[str, Field(min_length=1, max_length=4000)],
    confidence: Annotated[float, Field(ge=0, le=1)],
    quotes: Quotes = None,
    citations: Citations = None,
    force: Annotated[
        Force | None, Field(description="By the words of the first passage, unless given.")
    ] = None,
    candidate: Annotated[
        str | None,
        Field(
            max_length=1000,
            description="Id of the open candidate it is from, such as C-012. Without quotes its "
            "words are cited, with those before its list; so are those of a number as V6.2.1.",
        ),
    ] = None,
    document: Annotated[
        str | None, Field(description="Path of the candidate's document, if there are several.")
    ] = None,
    rationale: Annotated[
        str | None, Field(max_length=4000, description="Why it is demanded, if the source says so.")
    ] = None,
    verification: Verification | None = None,
    priority: Priority | None = None,
) -> str:
    """Write a requirement down under requirements/ and in the store, with its citations.

    The system gives the id. `quotes` are cited in the same call; if one of them does not stand
    where it says, nothing is written, and the answer says what stands there. Numbers, units,
    negation and force of the statement have to be in the passages. The store takes its
    content from `final.json`: what is edited or deleted there follows with the next call, or when
    the job completes.
    """
    if candidate and not (quotes or citations):
        quotes = _passages_of_candidate(context, candidate, document)
    cited = record_all_citations(context, quotes, citations)
    if candidate:
        _check_open_candidate(context, candidate, [each.document for each in cited])
    _check_statement(context, text, force, cited)
    requirement_files.note_requirement_numbers(context.state, context.files)
    requirement = Requirement(
        id=f"REQ-{context.state.last_requirement + 1:03d}",
        text=text,
        force=force or candidate_binding_force(cited[0].quote) or "must",
        type=type,
        source=cited[0].document,
        citations=cited,
        reasoning=reasoning,
        confidence=confidence,
        candidate=candidate or None,
        digest=document_digest(context.files, cited[0].document),
        rationale=rationale,
        verification=verification,
        priority=priority,
    )
    path = requirement_files.final_requirement_path(requirement.id)
    written = f"{requirement.id} ({requirement.force}) written to {path};"
    return _write_requirement(context, requirement, path, written, cited)


@tool("requirements", effect="outside", local=False, seconds=120, owns=("citations/",))
def add_citation(
    context: ToolContext,
    requirement: Annotated[str, Field(pattern=r"^REQ-\d{3,9}$", description="Such as REQ-001.")],
    quotes: Quotes = None,
    citations: Citations = None,
) -> str:
    """Add passages to a requirement of this job that also say it.

    As with add_requirement, all of them are recorded or none.
    """
    known = requirement_files.list_requirement_files(context.files)
    if requirement not in known:
        raise ToolError(f"There is no requirement {requirement} in this workspace.")
    path, _ = known[requirement]
    record = requirement_files.read_requirement_file(context.files, path, requirement, context.job)
    cited = record_all_citations(context, quotes, citations)
    have = {(each.document, each.page, each.quote) for each in record.citations}
    if double := [each for each in cited if (each.document, each.page, each.quote) in have]:
        raise ToolError(f"{requirement} cites that already: {render_citation(double[0])}")
    if len(record.citations) + len(cited) > MAX_CITATIONS:
        raise ToolError(f"{requirement} would have more than {MAX_CITATIONS} citations.")
    record.citations = [*record.citations, *cited]
    return _write_requirement(context, record, path, f"{requirement} cites also", cited)


def _write_requirement(
    context: ToolContext, record: Requirement, path: str, done: str, cited: list[Citation]
) -> str:
    context.files = context.files.write(path, record.final_json.encode())
    remarks = sync_store_or_defer(OutboxWriter.for_call(context))
    return "\n".join([f"{done} {'; '.join(map(render_citation, cited))}", *remarks])


def _passages_of_candidate(
    context: ToolContext, id: str, document: str | None
) -> list[QuotedPassage]:
    """Return the words of a candidate or a number, with those before its list."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in [document] if document else input_document_paths(context.files):
        with suppress(*(() if document else (ToolError,))):
            if passages := view_document(context, path).passages_of(id):
                found[path] = passages
    if len(found) != 1:
        raise ToolError(
            f"candidate: {' and '.join(found)} have {id}. Say of which document."
            if found
            else f"candidate: {document or 'the job'} has no {id}. Give its words in quotes."
        )
    [(path, passages)] = found.items()
    return [QuotedPassage(path=path, page=page, quote=quote) for page, quote in passages]


def _check_statement(
    context: ToolContext, text: str, force: Force | None, cited: list[Citation]
) -> None:
    """Refuse a statement that says what its passages do not, or that is there already."""
    passages = [each.quote for each in cited]
    around = [f"{each.document} {each.section or ''} {each.source_id or ''}" for each in cited]
    for each in cited:
        if each.url is None:
            pages = read_workspace_pages(context, each.document)
            passages += lead_ins_of_passage(pages, each.page, each.quote)
            _check_quote_says_enough(pages, each.quote)
    if faults := statement_faults(text, force, " \n".join(passages), " ".join(around)):
        raise ToolError(
            f"text: it says {'; it says '.join(faults)}. Nothing was written. Say what the "
            "passages say, or quote the passage that says it as well."
        )
    said = (normalized_words(text), frozenset(normalized_words(each.quote) for each in cited))
    for id, known in stated_requirements(context.files):
        if known == said:
            raise ToolError(f"{id} says that already, by the same passage. Nothing was written.")


def _check_quote_says_enough(pages: list[Page], quote: str) -> None:
    if len(quote.split()) > FEW_WORDS:
        return
    count = sum(len(FoldedPage(page.text).find_spans(quote)) for page in pages)
    if count >= OFTEN:
        raise ToolError(
            f"“{quote}” stands {count} times in the document, so it shows no place. Nothing was "
            "written. Quote more of its sentence."
        )


def _check_open_candidate(context: ToolContext, candidate: str, documents: list[str]) -> None:
    views = [view_document(context, path) for path in dict.fromkeys(documents)]
    if fault := open_candidate_fault(context.files, candidate, views):
        raise ToolError(
            f"candidate: {fault}. Nothing was written. Leave `candidate` out for what no candidate "
            "says, or for another statement of a settled one."
        )
