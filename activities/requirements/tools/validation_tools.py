"""Tools of validators: claim other jobs' drafts one at a time, decide on them, and report."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field

from activities.job.activity_context import attempt_started_ms
from activities.requirements import validation_claims
from activities.requirements.graph.graph_writes import REMOVAL, is_written_to_graph
from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError
from activities.requirements.graph.neighbours import Relations, requirement_neighbours
from activities.requirements.requirement import Requirement, RequirementVerdict
from activities.requirements.store_sync import DECIDED
from activities.requirements.tools.result_lists import shorten_list, tally_words
from activities.stores.outbox import OutboxWriter, flush_outbox, write_or_defer
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from activities.text.safe_text import as_readable_json
from activities.toolkit.agent_tools import agent_has_tool
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError
from protocol.job_state import DeferredWrite
from protocol.short_text import count_noun

DECISIONS = "output/decisions.json"
INTEGRATE = "create_requirement_node"


@tool("validation", effect="outside", phases=("tactical",), local=False, seconds=60)
def take_requirement(context: ToolContext) -> str:
    """Take the next draft requirement of the store, to be validated by this job alone.

    It stays with this job until decide_requirement: another call answers with the same one again.
    What is taken and not decided goes back when the job ends, or after a day without a call.
    """
    writer = OutboxWriter.for_call(context)
    try:
        remarks = flush_outbox(writer, "relational")
        hours = context.config.settings.take_hours
        now = attempt_started_ms()
        requirement = writer.store.run(
            lambda connection: validation_claims.claim_draft(
                connection, writer.call, now, hours, context.earlier_jobs
            )
        )
    except StoreRefusedError as refusal:
        raise ToolError(str(refusal)) from None
    except StoreUnavailableError as error:
        # Without the store, a validator cannot do anything else.
        raise DependencyUnavailable(str(error)) from None
    text = (
        _requirement_text_to_validate(requirement)
        if requirement
        else "No draft requirement is left to take."
    )
    return "\n".join([*remarks, text])


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
    """Record the verdict on the requirement that this job has taken.

    `duplicate_of` belongs to the status duplicate, and names another requirement as
    find_similar_requirements does: job/REQ-001.
    """
    if (status == "duplicate") != (duplicate_of is not None):
        raise ToolError(
            "duplicate_of names the other requirement when the status is duplicate, and only then."
        )
    if duplicate_of == id:
        raise ToolError(f"duplicate_of: {id} cannot be a duplicate of itself.")
    data = {"ref": id, "status": status, "reasons": reasons, "duplicate_of": duplicate_of}
    entry = DeferredWrite(kind=DECIDED, key=context.key, at=context.time_ms, about=id, data=data)
    writer = OutboxWriter.for_call(context)
    try:
        # Check before the decision: an accepted requirement is no longer a draft, and nobody would
        # notice that its node is missing. The store itself refuses ids without a job.
        concerns = "/" in id and validator_integrates_graph(context)
        if status == "accepted" and concerns and not is_written_to_graph(writer, id):
            # Do not demand a node for a requirement on which this job may not decide.
            with suppress(StoreUnavailableError):
                writer.store.read(
                    lambda connection: validation_claims.check_claim_undecided(
                        connection, writer.call, id
                    )
                )
            raise ToolError(
                f"{id} is not in the graph yet. Put it there with {INTEGRATE}, then accept it."
            )
        remarks = write_or_defer(writer, entry)
    except StoreRefusedError as refusal:
        raise ToolError(str(refusal)) from None
    if status != "accepted" and concerns:
        remarks += _remove_unaccepted_from_graph(writer, entry)
    return "\n".join([f"{id} is {status}.", *remarks])


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
            lambda store: validation_claims.list_claim_decisions(store, own_jobs, now)
        )
    except StoreUnavailableError as error:
        raise DependencyUnavailable(str(error)) from None
    accepted = [each.ref for each in decisions if each.status == "accepted"]
    known: dict[str, Relations] | None = None
    try:
        if validator_integrates_graph(context):
            remarks += flush_outbox(writer, "graph")
            every = [each.ref for each in decisions]
            known = requirement_neighbours(
                context.root, context.config.graph_schema, every, context.heartbeat
            )
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


def _requirement_text_to_validate(requirement: Requirement) -> str:
    cited = [
        f"- {citation.id}: {citation.document}, page {citation.page}"
        + (f" ({citation.url}, read {citation.accessed})" if citation.url else "")
        + f": {citation.quote}"
        for citation in requirement.citations
    ]
    return "\n".join(
        [
            f"{requirement.ref} ({requirement.type}, confidence "
            f"{requirement.confidence:g}, from {requirement.source})",
            f"Force: {requirement.force}",
            f"Text: {requirement.text}",
            f"Reasoning: {requirement.reasoning}",
            "Citations:",
            *cited,
            f'Decide on it with decide_requirement(id="{requirement.ref}", status, reasons).',
        ]
    )


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
