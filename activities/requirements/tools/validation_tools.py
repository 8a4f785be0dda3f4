"""Tools of validators: claim other jobs' drafts one at a time, decide on them, and report."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field

from activities.checkpoints import Files
from activities.documents.pages import DocumentError, find_page
from activities.documents.quotes import contains_quote
from activities.job.input_documents import original_document_paths
from activities.requirements import validation_claims
from activities.requirements.graph.graph_writes import REMOVAL, REQUIREMENT, is_written_to_graph
from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError
from activities.requirements.graph.neighbours import Relations, requirement_neighbours
from activities.requirements.requirement import (
    Citation,
    Requirement,
    RequirementVerdict,
    normalized_words,
)
from activities.requirements.requirement_store import ComparableRequirement, find_requirement
from activities.requirements.store_sync import DECIDED
from activities.requirements.text.meaning import compare_statements
from activities.requirements.text.relevance import judge_relevance
from activities.requirements.text.statements import lead_ins_of_passage
from activities.requirements.tools.graph_tools import graph_tool_node_kind
from activities.requirements.tools.graph_writing_tools import put_requirement_node
from activities.requirements.tools.similarity_tool import (
    describe_like,
    list_comparable_requirements,
    rank_like_requirements,
)
from activities.runtime.activity_info import attempt_started_ms
from activities.stores.outbox import OutboxWriter, flush_outbox, write_or_defer
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import (
    StoreRefusedError,
    StoreRejectedError,
    StoreUnavailableError,
)
from activities.text.safe_text import as_readable_json
from activities.toolkit.agent_tools import agent_has_tool
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError
from activities.tools.workspace_documents import document_digest, read_workspace_pages
from protocol.job_state import DeferredWrite
from protocol.short_text import count_noun, shorten_list, tally_words

DECISIONS = "output/decisions.json"
MAX_TAKEN = 20
MAX_LIKE = 3
"""Like requirements shown with each draft."""
INTEGRATE = "create_requirement_node"


@tool("validation", effect="outside", phases=("tactical",), local=False, seconds=60)
def take_requirement(
    context: ToolContext,
    count: Annotated[int, Field(ge=1, le=MAX_TAKEN, description="How many.")] = 10,
) -> str:
    """Take the next draft requirements of the store, to be validated by this job alone.

    Only drafts from documents that this job has. Each is shown with what its passages show, how
    relevant its wording is, and what is like it. They stay with this job until decide_requirement:
    another call answers with the same ones again, and with more. What is taken and not decided
    goes back when the job ends, or after a day without a call.
    """
    writer = OutboxWriter.for_call(context)
    at_hand = documents_at_hand(context.files)
    own_jobs = (context.job, *context.earlier_jobs)
    try:
        remarks = flush_outbox(writer, "relational")
        hours = context.config.settings.take_hours
        now = attempt_started_ms()
        drafts = writer.store.run(
            lambda connection: validation_claims.claim_drafts(
                connection, writer.call, now, hours, at_hand, count, context.earlier_jobs
            )
        )
        elsewhere = (
            {}
            if drafts
            else writer.store.read(
                lambda c: validation_claims.count_drafts_elsewhere(c, own_jobs, at_hand)
            )
        )
    except StoreRefusedError as refusal:
        raise ToolError(str(refusal)) from None
    except StoreUnavailableError as error:
        # Without the store, a validator cannot do anything else.
        raise DependencyUnavailable(str(error)) from None
    if not drafts:
        waiting = ", ".join(f"{name} ({number:,})" for name, number in elsewhere.items())
        other = f" Others wait whose document this job does not have: {waiting}." if waiting else ""
        return "\n".join([*remarks, f"No draft requirement is left to take.{other}"])
    comparable, remark = list_comparable_requirements(context)
    shown = [_requirement_text_to_validate(context, each, comparable) for each in drafts]
    return "\n".join([*remarks, "\n\n".join(shown)]) + remark


@tool("validation", effect="outside", phases=("tactical",), local=False, seconds=180)
def decide_requirement(
    context: ToolContext,
    id: Annotated[str, Field(max_length=2000, description="As take_requirement names it.")],
    status: RequirementVerdict,
    reasons: Annotated[str, Field(min_length=1, max_length=4000)],
    duplicate_of: Annotated[
        str | None, Field(max_length=2000, description="Name of the other, if a duplicate.")
    ] = None,
) -> str:
    """Record the verdict on a requirement that this job has taken; an accepted one is in the graph.

    `duplicate_of` belongs to the status duplicate, and names another requirement as
    find_similar_requirements does: job/REQ-001.
    """
    if (status == "duplicate") != (duplicate_of is not None):
        raise ToolError(
            "duplicate_of names the other requirement when the status is duplicate, and only then."
        )
    if duplicate_of == id:
        raise ToolError(f"duplicate_of: {id} cannot be a duplicate of itself.")
    if duplicate_of is not None:
        _check_duplicate(context, id, duplicate_of)
    data = {"ref": id, "status": status, "reasons": reasons, "duplicate_of": duplicate_of}
    entry = DeferredWrite(kind=DECIDED, key=context.key, at=context.time_ms, about=id, data=data)
    writer = OutboxWriter.for_call(context)
    # The store itself refuses ids without a job.
    concerns = "/" in id and validator_integrates_graph(context)
    placed: list[str] = []
    try:
        if status == "accepted" and concerns:
            # Put it there before the decision: an accepted requirement is no longer a draft, and
            # nobody would notice that its node is missing. None for one that is another job's.
            with suppress(StoreUnavailableError):
                writer.store.read(
                    lambda connection: validation_claims.check_claim_undecided(
                        connection, writer.call, id
                    )
                )
            kind = graph_tool_node_kind(context, REQUIREMENT)
            known = not kind.find_problems({"status": status}, partial=True)
            placed = [put_requirement_node(context, id, {"status": status} if known else {})]
        remarks = write_or_defer(writer, entry)
    except StoreRefusedError as refusal:
        raise ToolError(str(refusal)) from None
    if status != "accepted" and concerns:
        remarks += _remove_unaccepted_from_graph(writer, entry)
    return "\n".join([f"{id} is {status}.", *placed, *remarks])


@tool("validation", effect="outside", local=False, seconds=180)
def collect_decisions(context: ToolContext) -> str:
    """Write output/decisions.json from what the store has of the decisions of this job.

    Each with its reasons, what it is a duplicate of, and what it is related to in the graph.
    Answers with how many there are of each kind, what is accepted and not in the graph or related
    to nothing, what is in the graph and not accepted, and what is not decided. Call it again when
    something has changed.
    """
    writer = OutboxWriter.for_call(context)
    own_jobs = (context.job, *context.earlier_jobs)
    try:
        remarks = flush_outbox(writer, "relational")
        now = attempt_started_ms()
        decisions, undecided, free = writer.store.read(
            lambda store: validation_claims.list_claim_decisions(
                store, own_jobs, now, documents_at_hand(context.files)
            )
        )
    except StoreUnavailableError as error:
        raise DependencyUnavailable(str(error)) from None
    accepted = [each.ref for each in decisions if each.status == "accepted"]
    known: dict[str, Relations] | None = None
    try:
        if validator_integrates_graph(context):
            remarks += flush_outbox(writer, "graph")
            every = [each.ref for each in decisions]
            known = requirement_neighbours(context.root, context.config.graph_schema, every)
    except (StoreUnavailableError, GraphUnavailableError) as error:
        remarks.append(f"The graph does not answer, so what it has is not shown: {error}")
    except GraphQueryError as error:
        raise ToolError(f"The graph refused it: {error}") from None
    content = [_decision_as_data(each, known) for each in decisions]
    context.files = context.files.write(DECISIONS, as_readable_json(content).encode())
    lines = [f"Wrote {count_noun(len(decisions), 'decision')} to {DECISIONS}."]
    if decisions:
        lines.append(f"By verdict: {tally_words(each.status for each in decisions)}.")
    if known is not None:
        lines += _named_decision_lines(
            "Accepted and not in the graph", [r for r in accepted if r not in known]
        )
        alone = [r for r in accepted if r in known and not known[r]]
        lines += _named_decision_lines("In the graph and related to nothing", alone)
        over = [each.ref for each in decisions if each.status != "accepted" and each.ref in known]
        lines += _named_decision_lines(
            "Not accepted and still in the graph; decide on them again", over
        )
    lines += _named_decision_lines("Taken and not decided", undecided)
    lines.append(f"Drafts left to take: {free:,}.")
    return "\n".join([*lines, *remarks])


def _remove_unaccepted_from_graph(writer: OutboxWriter, decision: DeferredWrite) -> list[str]:
    """Remove a requirement that was not accepted from the graph; return remarks for the model."""
    if any(each is decision for each in writer.state.deferred_writes):
        # The store may still refuse the decision, for example because another job holds the
        # requirement.
        return ["If it is in the graph it stays there: decide again when the store answers."]
    entry = DeferredWrite(kind=REMOVAL, key=decision.key, at=decision.at, about=decision.about)
    try:
        if not is_written_to_graph(writer, decision.about):
            return []
        remarks = write_or_defer(writer, entry)
    except StoreRefusedError as refusal:
        return [f"It may still be in the graph: {refusal}"]
    waits = any(each is entry for each in writer.state.deferred_writes)
    outcome = "It comes out of the graph when that answers." if waits else "It is out of the graph."
    return [outcome, *remarks]


def validator_integrates_graph(context: ToolContext) -> bool:
    """Return whether the agent puts the requirements it accepts into the graph."""
    return agent_has_tool(context.config, INTEGRATE)


def documents_at_hand(files: Files) -> validation_claims.DocumentsAtHand:
    """Return the documents of a workspace, those that were fetched as well."""
    paths = original_document_paths(files)
    return validation_claims.DocumentsAtHand(
        paths, [document_digest(files, path) for path in paths]
    )


def _check_duplicate(context: ToolContext, id: str, duplicate_of: str) -> None:
    """Refuse a duplicate that differs in numbers, units, force or negation."""
    store = RelationalStore(context.root)
    try:
        first, other = store.read(
            lambda c: (find_requirement(c, id), find_requirement(c, duplicate_of))
        )
    except (StoreUnavailableError, StoreRejectedError):
        return
    if first is None or other is None:
        return
    difference = compare_statements(first.text, other.text, (first.force, other.force))
    if difference.hard:
        raise ToolError(
            f"{id} is no duplicate of {duplicate_of}: {difference}. Decide on it by what it says; "
            "if the two cannot both hold, relate them by CONTRADICTS."
        )


def _requirement_text_to_validate(
    context: ToolContext, requirement: Requirement, comparable: Sequence[ComparableRequirement]
) -> str:
    number = f", {requirement.source_id}" if requirement.source_id else ""
    return "\n".join(
        [
            f"{requirement.ref} ({requirement.type}, confidence "
            f"{requirement.confidence:g}, from {requirement.source}{number})",
            f"Force: {requirement.force}",
            f"Text: {requirement.text}",
            f"Reasoning: {requirement.reasoning}",
            "Citations:",
            *(_citation_line(context, requirement.text, each) for each in requirement.citations),
            _relevance_line(context, requirement),
            *_like_lines(context, requirement, comparable),
        ]
    )


def _citation_line(context: ToolContext, text: str, citation: Citation) -> str:
    web = f" ({citation.url}, read {citation.accessed})" if citation.url else ""
    try:
        page = find_page(read_workspace_pages(context, citation.document), citation.page)
        stands = contains_quote(page.text, citation.quote)
    except (ToolError, DocumentError):
        stands = False
    shown = "" if stands else " [NOT FOUND there]"
    same = normalized_words(citation.quote) == normalized_words(text)
    words = "(the words of the text)" if same and stands else citation.quote
    return f"- {citation.id}: {citation.document}, page {citation.page}{web}{shown}: {words}"


def _relevance_line(context: ToolContext, requirement: Requirement) -> str:
    settings = context.config.settings
    leads: list[str] = []
    for citation in requirement.citations:
        with suppress(ToolError):
            pages = read_workspace_pages(context, citation.document)
            leads += lead_ins_of_passage(pages, citation.page, citation.quote)
    result = judge_relevance(
        " ".join(each.quote for each in requirement.citations), leads[0] if leads else ""
    )
    known = result.score >= settings.relevance_threshold
    verdict = "relevant" if known else "not relevant by its words"
    return f"Relevance: {result.score:.2f}, {verdict}: {'; '.join(result.signs)}"


def _like_lines(
    context: ToolContext, requirement: Requirement, comparable: Sequence[ComparableRequirement]
) -> list[str]:
    others = [each for each in comparable if each.ref != requirement.ref]
    likes, _, _ = rank_like_requirements(
        context, requirement.text, others, context.config.settings.similar_threshold
    )
    return ["Like it:" if likes else "Like it: nothing.", *map(describe_like, likes[:MAX_LIKE])]


def _decision_as_data(
    each: validation_claims.DecidedRequirement, known: dict[str, Relations] | None
) -> dict[str, Any]:
    statements = {
        "id": each.ref,
        "decision": each.status,
        "reasons": each.reasons,
        "duplicate_of": each.duplicate_of,
        "text": each.text,
    }
    if known is None or each.status != "accepted":
        return statements
    return statements | {"in_graph": each.ref in known, "related": known.get(each.ref, [])}


def _named_decision_lines(what: str, names: list[str]) -> list[str]:
    return [f"{what}: {', '.join(shorten_list(names))}."] if names else []
