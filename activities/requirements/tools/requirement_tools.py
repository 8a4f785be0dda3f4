"""Requirement tools: candidates, requirements with citations, sentences set aside."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.documents import name_unread_pages
from activities.requirements import candidate_list, requirement_files
from activities.requirements.open_candidates import open_candidate_fault
from activities.requirements.requirement import MAX_CITATIONS, Requirement, RequirementKind
from activities.requirements.set_aside_rules import (
    PATH,
    SetAsideRule,
    parse_set_aside_pages,
    put_rules,
    read_set_aside_rules,
)
from activities.requirements.store_sync import sync_store_or_defer
from activities.requirements.text.candidate_sentences import Force, candidate_binding_force
from activities.requirements.text.languages import UNKNOWN_LANGUAGE, is_language_known
from activities.requirements.text.statements import statements_of
from activities.requirements.tools.citation_tools import (
    QuotedPassage,
    record_all_citations,
    render_citation,
)
from activities.stores.outbox import OutboxWriter
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path, read_workspace_pages

MAX_LISTED = 120
LISTED_TEXT = 110
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


@tool("requirements", effect="writes", phases=("tactical",), local=False, seconds=180)
def identify_requirement_candidates(context: ToolContext, path: DocumentPath) -> str:
    """Find sentences that may be requirements, by obligation language in English and German.

    Answers with the list, and keeps those of all documents identified so far in
    candidates/candidates.json and, to be read, in candidates/candidates.md; asked about a document
    again, it replaces what it had there. Indicators of GoBD and GDPR are named. Recall comes before
    precision: decide on each, and read the document for what no wording shows, such as tables.
    Those below the agent's threshold stand at the end of their document.
    """
    path = canonical_document_path(context.files, path)
    threshold = context.config.settings.confidence_threshold
    pages = read_workspace_pages(context, path)
    every = list(statements_of(pages).candidates)
    likely = [c for c in every if c.confidence >= threshold]
    try:
        context.files = candidate_list.put_candidates(context.files, path, every, threshold)
    except requirement_files.InvalidWorkspaceFile as problem:
        raise ToolError(f"{problem}. Mend it, or move it away and identify again.") from None
    weak = len(every) - len(likely)
    further = f" {weak} more below confidence {threshold:g} are listed there." if weak else ""
    further += name_unread_pages(pages)
    if not is_language_known(pages):
        further += f" {UNKNOWN_LANGUAGE}: read all of it."
    if not likely:
        return f"No candidates in {path}.{further}"
    lines = [
        candidate_list.describe_candidate(candidate, LISTED_TEXT)
        for candidate in likely[:MAX_LISTED]
    ]
    if len(likely) > MAX_LISTED:
        lines.append(
            f"[TRUNCATED {len(likely) - MAX_LISTED} more in {candidate_list.MARKDOWN_PATH}]"
        )
    noun = "candidate" if len(likely) == 1 else "candidates"
    head = f"{len(likely)} {noun} in {path}, all in {candidate_list.MARKDOWN_PATH}.{further}"
    return "\n".join([head, *lines])


@tool(
    "requirements",
    effect="outside",
    phases=("tactical",),
    local=False,
    seconds=120,
    owns=("citations/",),
)
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
            description="Id of the open candidate it is from, of a document that it cites.",
        ),
    ] = None,
) -> str:
    """Write a requirement down under requirements/ and in the store, with its citations.

    The system gives the id. `quotes` are cited in the same call; if one of them does not stand
    where it says, nothing is written, and the answer says what stands there. The store takes its
    content from `final.json`: what is edited or deleted there follows with the next call, or when
    the job completes.
    """
    cited = record_all_citations(context, quotes, citations)
    if candidate:
        _check_open_candidate(context, candidate, [each.document for each in cited])
    requirement_files.note_requirement_numbers(context.state, context.files)
    quote_force = candidate_binding_force(cited[0].quote)
    requirement = Requirement(
        id=f"REQ-{context.state.last_requirement + 1:03d}",
        text=text,
        force=force or quote_force or "must",
        type=type,
        source=cited[0].document,
        citations=cited,
        reasoning=reasoning,
        confidence=confidence,
        candidate=candidate or None,
    )
    path = requirement_files.final_requirement_path(requirement.id)
    context.files = context.files.write(path, requirement.final_json.encode())
    remarks = sync_store_or_defer(OutboxWriter.for_call(context))
    if force and quote_force and force != quote_force:
        remarks = [f"Its force is {force}, and its passage says {quote_force}.", *remarks]
    written = f"{requirement.id} ({requirement.force}) written to {path}"
    return "\n".join([f"{written}; {'; '.join(map(render_citation, cited))}", *remarks])


@tool(
    "requirements",
    effect="outside",
    phases=("tactical",),
    local=False,
    seconds=120,
    owns=("citations/",),
)
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
    try:
        record = requirement_files.read_requirement_file(
            context.files, path, requirement, context.job
        )
    except requirement_files.InvalidWorkspaceFile as problem:
        raise ToolError(f"{problem}. Mend it first.") from None
    cited = record_all_citations(context, quotes, citations)
    have = {(each.document, each.page, each.quote) for each in record.citations}
    if double := [each for each in cited if (each.document, each.page, each.quote) in have]:
        raise ToolError(f"{requirement} cites that already: {render_citation(double[0])}")
    if len(record.citations) + len(cited) > MAX_CITATIONS:
        raise ToolError(f"{requirement} would have more than {MAX_CITATIONS} citations.")
    record.citations = [*record.citations, *cited]
    context.files = context.files.write(path, record.final_json.encode())
    remarks = sync_store_or_defer(OutboxWriter.for_call(context))
    return "\n".join(
        [f"{requirement} cites also {'; '.join(map(render_citation, cited))}", *remarks]
    )


@tool("requirements", effect="writes", local=False, seconds=180, owns=(PATH,))
def set_sentences_aside(
    context: ToolContext,
    path: DocumentPath,
    reason: Annotated[
        str, Field(min_length=10, max_length=1000, description="Why they need no requirement.")
    ],
    ids: Annotated[
        list[str] | None, Field(max_length=500, description="Of candidates, such as C-012.")
    ] = None,
    pages: Annotated[str | None, Field(description='"3" or "2-5".')] = None,
    section: Annotated[
        str | None, Field(max_length=200, description="Its number or title; with those below it.")
    ] = None,
    containing: Annotated[
        str | None, Field(min_length=3, max_length=200, description="Words of the sentences.")
    ] = None,
    below: Annotated[
        float | None, Field(gt=0, le=1, description="Only with less confidence than this.")
    ] = None,
    covered_by: Annotated[
        str | None, Field(pattern=r"^REQ-\d{3,9}$", description="The requirement that says it.")
    ] = None,
) -> str:
    """Set sentences of a document aside that need no requirement, by rule and with a reason.

    They are those for which all holds that is given; with nothing given, the whole document is out
    of scope. Each rule is told in the results. A sentence that is cited counts as cited.
    """
    path = canonical_document_path(context.files, path)
    if covered_by and covered_by not in requirement_files.list_requirement_files(context.files):
        raise ToolError(f"covered_by: there is no requirement {covered_by} in this workspace.")
    rule = SetAsideRule(
        document=path,
        reason=reason,
        covered_by=covered_by,
        ids=ids or [],
        pages=pages,
        section=section,
        containing=containing,
        below=below,
    )
    try:
        parse_set_aside_pages(pages)
        rules = read_set_aside_rules(context.files)
    except ValueError as problem:
        raise ToolError(str(problem)) from None
    _check_confidence_threshold(context, below)
    every = statements_of(read_workspace_pages(context, path)).candidates
    if unknown := set(rule.ids) - {each.id for each in every}:
        raise ToolError(f"{path} has no candidate {', '.join(sorted(unknown)[:5])}.")
    matching = [each for each in every if each.binds and rule.sets_aside(path, each)]
    if not matching and not rule.takes_whole_document:
        raise ToolError(f"No sentence of {path} with words of obligation fits that.")
    if rule in rules:
        raise ToolError("That rule is there already.")
    context.files = put_rules(context.files, [*rules, rule])
    lines = [candidate_list.describe_candidate(each, LISTED_TEXT) for each in matching[:10]]
    more = [f"and {len(matching) - 10:,} more"] if len(matching) > 10 else []
    count = f"{len(matching):,} sentence{'' if len(matching) == 1 else 's'}"
    return "\n".join([f"Set aside {count} by the rule {rule.description}", *lines, *more])


def _check_open_candidate(context: ToolContext, candidate: str, documents: list[str]) -> None:
    pages = {path: read_workspace_pages(context, path) for path in dict.fromkeys(documents)}
    try:
        fault = open_candidate_fault(context.files, candidate, pages)
    except requirement_files.InvalidWorkspaceFile as problem:
        raise ToolError(f"{problem}.") from None
    if fault:
        raise ToolError(
            f"candidate: {fault}. Nothing was written. Leave `candidate` out for what no candidate "
            "says, or for another statement of a settled one."
        )


def _check_confidence_threshold(context: ToolContext, below: float | None) -> None:
    threshold = context.config.settings.confidence_threshold
    if below is not None and below > threshold:
        raise ToolError(
            f"below: at most {threshold:g}, the agent's threshold. Name those above it by ids, "
            "pages, section or words."
        )
