"""Tools that write requirements down, with their citations."""

from contextlib import suppress
from typing import Annotated

from pydantic import Field

from activities.checkpoints import Files
from activities.documents.pages import Page
from activities.documents.quotes import FoldedPage
from activities.requirements import requirement_files
from activities.requirements.candidate_list import read_candidates
from activities.requirements.citations import QuotedPassage, record_all_citations, render_citation
from activities.requirements.coverage import refuted_rules
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement import (
    MAX_CITATIONS,
    Citation,
    Priority,
    Requirement,
    RequirementKind,
    Verification,
    normalized_words,
)
from activities.requirements.requirement_files import readable_requirements
from activities.requirements.requirement_survey import view_document
from activities.requirements.set_aside_rules import read_set_aside_rules
from activities.requirements.store_sync import sync_store_or_defer
from activities.requirements.text.candidate_sentences import (
    Candidate,
    Force,
    candidate_binding_force,
)
from activities.requirements.text.meaning import statement_faults
from activities.requirements.text.statements import lead_ins_of_passage
from activities.stores.outbox import OutboxWriter
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools import workspace_documents

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

CandidateId = Annotated[
    str | None,
    Field(
        max_length=1000,
        description="Id of the open candidate it is from, such as C-012. Without quotes its "
        "words are cited, with those before its list; so are those of a number as V6.2.1.",
    ),
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
    candidate: CandidateId = None,
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
    negation and force of the statement have to be in the passages. The passages of a statement
    that is there already, such as of a second document, are added to it. The store takes its
    content from `final.json`: what is edited or deleted there follows with the next call, or when
    the job completes.
    """
    if candidate and not (quotes or citations):
        quotes = _passages_of_candidate(context, candidate, document)
    cited = record_all_citations(context, quotes, citations)
    if candidate:
        _check_open_candidate(context, candidate, cited)
    _check_statement(context, text, force, cited)
    force = force or candidate_binding_force(cited[0].quote) or "must"
    if known := _same_statement(context, text, force):
        return _add_passages(context, known, cited)
    requirement_files.note_requirement_numbers(context.state, context.files)
    requirement = Requirement(
        id=f"REQ-{context.state.last_requirement + 1:03d}",
        text=text,
        force=force,
        type=type,
        source=cited[0].document,
        citations=cited,
        reasoning=reasoning,
        confidence=confidence,
        candidate=candidate or None,
        digest=workspace_documents.document_digest(context.files, cited[0].document),
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
    record = _read_requirement(context, requirement)
    return _add_passages(context, record, record_all_citations(context, quotes, citations))


def _read_requirement(context: ToolContext, id: str) -> Requirement:
    path, _ = requirement_files.list_requirement_files(context.files).get(id, ("", ""))
    if not path:
        raise ToolError(f"There is no requirement {id} in this workspace.")
    return requirement_files.read_requirement_file(context.files, path, id, context.job)


def _add_passages(context: ToolContext, record: Requirement, cited: list[Citation]) -> str:
    """Add passages to a requirement. Raises ToolError if it has one of them, or would have too
    many.
    """
    have = {(each.document, each.page, each.quote): each for each in record.citations}
    for each in cited:
        if double := have.get((each.document, each.page, each.quote)):
            raise ToolError(
                f"{record.id} cites that already: {render_citation(double)}. Nothing was written."
            )
    if len(record.citations) + len(cited) > MAX_CITATIONS:
        raise ToolError(f"{record.id} would have more than {MAX_CITATIONS} citations.")
    record.citations = [*record.citations, *cited]
    path = requirement_files.final_requirement_path(record.id)
    return _write_requirement(context, record, path, f"{record.id} cites also", cited)


def _same_statement(context: ToolContext, text: str, force: Force) -> Requirement | None:
    """Return the requirement with the same words and force; None if there is none."""
    for id, known in readable_requirements(context.files):
        if normalized_words(known.text) == normalized_words(text):
            record = _read_requirement(context, id)
            if record.force == force:
                return record
    return None


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
    by_document: dict[str, list[tuple[int, str]]] = {}
    for path in [document] if document else workspace_documents.input_document_paths(context.files):
        with suppress(*(() if document else (ToolError,))):
            if passages := view_document(context, path).passages_of(id):
                by_document[path] = passages
    if len(by_document) != 1:
        raise ToolError(
            f"candidate: {' and '.join(by_document)} have {id}. Say of which document."
            if by_document
            else f"candidate: {document or 'the job'} has no {id}. Give its words in quotes."
        )
    [(path, passages)] = by_document.items()
    return [QuotedPassage(path=path, page=page, quote=quote) for page, quote in passages]


def _check_statement(
    context: ToolContext, text: str, force: Force | None, cited: list[Citation]
) -> None:
    """Refuse a statement that says what its passages do not."""
    passages = [each.quote for each in cited]
    around = [f"{each.document} {each.section or ''} {each.source_id or ''}" for each in cited]
    for each in cited:
        if each.url is None:
            pages = workspace_documents.read_workspace_pages(context, each.document)
            passages += lead_ins_of_passage(pages, each.page, each.quote)
            _check_quote_says_enough(pages, each.quote)
    faults = statement_faults(text, force, " \n".join(passages), " ".join(around))
    if faults:
        raise ToolError(
            f"text: it says {'; it says '.join(faults)}. Nothing was written. Say what the "
            "passages say, or quote the passage that says it as well."
        )


def _check_quote_says_enough(pages: list[Page], quote: str) -> None:
    if len(quote.split()) > FEW_WORDS:
        return
    count = sum(len(FoldedPage(page.text).find_spans(quote)) for page in pages)
    if count >= OFTEN:
        raise ToolError(
            f"“{quote}” stands {count} times in the document, so it shows no place. Nothing was "
            "written. Quote more of its sentence."
        )


def _check_open_candidate(context: ToolContext, id: str, cited: list[Citation]) -> None:
    """Refuse a candidate that is open in none of the cited documents.

    It is in the text, or an agent added it to the list.
    """
    paths = list(dict.fromkeys(each.document for each in cited))
    fault = f"{', '.join(paths)} has no candidate {id}"
    for path in paths:
        view = view_document(context, path)
        if view.entry(id):
            return
        listed = (each for each in read_candidates(context.files) if each.document == path)
        known = [*view.candidates, *(each for of_path in listed for each in of_path.candidates)]
        if earlier := next((each for each in known if each.id == id), None):
            if not (settled := _settled_by(context.files, view, earlier)):
                return
            fault = f"{id} of {path} is settled: {settled}"
    raise ToolError(
        f"candidate: {fault}. Nothing was written. collect_requirements names those that are open. "
        "Leave `candidate` out for what no candidate says, or for another statement of a settled "
        "one."
    )


def _settled_by(files: Files, view: DocumentView, candidate: Candidate) -> str:
    """Return by what a candidate is settled; empty if it is open."""
    for requirement, known in readable_requirements(files):
        if known.candidate == candidate.id and known.citations[0][0] == view.path:
            return f"{requirement} is from it"
    rules = read_set_aside_rules(files)
    refuted = refuted_rules(view, rules)
    for number, rule in enumerate(rules):
        if number not in refuted and rule.sets_aside(view.path, candidate):
            return f"set aside by the rule {rule.description.rstrip('.')}"
    return ""
