"""Tools of validators: the drafts of other jobs, each taken once and decided."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from pydantic import Field

from activities.job.activity_context import began
from activities.requirements import claims
from activities.requirements.graph.writes import REMOVAL, holds
from activities.requirements.requirement import Requirement, Verdict
from activities.requirements.store_sync import DECIDED
from activities.stores.errors import StoreAway, StoreRefuses
from activities.stores.outbox import Writer, flush, write
from activities.toolkit.context import ToolContext
from activities.toolkit.equipment import has_tool
from activities.toolkit.errors import ToolError, Unreached
from activities.toolkit.registry import tool
from protocol.state import DeferredWrite

INTEGRATE = "create_requirement_node"


@tool("validation", effect="outside", phases=("tactical",), local=False, seconds=60)
def take_requirement(context: ToolContext) -> str:
    """Take the next draft requirement of the store, to be validated by this job alone.

    It stays with this job until decide_requirement: another call answers with the same one again.
    What is taken and not decided goes back when the job ends, or after a day without a call.
    """
    writer = Writer.for_call(context)
    try:
        remarks = flush(writer, "relational")
        hours = context.config.settings.take_hours
        now = began()
        taken = writer.store.run(
            lambda connection: claims.take(connection, writer.call, now, hours, context.before)
        )
    except StoreRefuses as refusal:
        raise ToolError(str(refusal)) from None
    except StoreAway as error:
        # Without a requirement there is nothing to do but wait.
        raise Unreached(str(error)) from None
    told = _told(taken) if taken else "No draft requirement is left to take."
    return "\n".join([*remarks, told])


@tool("validation", effect="outside", phases=("tactical",), local=False, seconds=180)
def decide_requirement(
    context: ToolContext,
    id: Annotated[str, Field(max_length=2000, description="As take_requirement names it.")],
    status: Verdict,
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
    entry = DeferredWrite(kind=DECIDED, key=context.key, at=context.at, about=id, data=data)
    writer = Writer.for_call(context)
    try:
        # Afterwards nobody would see that it is missing: it is no draft any more. What is named
        # without its job is none of the store's, as that says itself.
        concerns = "/" in id and integrates(context)
        if status == "accepted" and concerns and not holds(writer, id):
            # What it may not decide on is not for it to put there.
            with suppress(StoreAway):
                writer.store.read(lambda connection: claims.check(connection, writer.call, id))
            raise ToolError(
                f"{id} is not in the graph yet. Put it there with {INTEGRATE}, then accept it."
            )
        remarks = write(writer, entry)
    except StoreRefuses as refusal:
        raise ToolError(str(refusal)) from None
    if status != "accepted" and concerns:
        remarks += _taken_out(writer, entry)
    return "\n".join([f"{id} is {status}.", *remarks])


def _taken_out(writer: Writer, decision: DeferredWrite) -> list[str]:
    """Take what does not hold out of the graph; remarks for the model."""
    if any(each is decision for each in writer.state.deferred_writes):
        # The store may refuse it yet, such as when another job holds the requirement.
        return ["If it is in the graph it stays there: decide again when the store answers."]
    entry = DeferredWrite(kind=REMOVAL, key=decision.key, at=decision.at, about=decision.about)
    try:
        if not holds(writer, decision.about):
            return []
        remarks = write(writer, entry)
    except StoreRefuses as refusal:
        return [f"It may still be in the graph: {refusal}"]
    waits = any(each is entry for each in writer.state.deferred_writes)
    told = "It comes out of the graph when that answers." if waits else "It is out of the graph."
    return [told, *remarks]


def integrates(context: ToolContext) -> bool:
    """Whether what the agent accepts is for it to put into the graph."""
    return has_tool(context.config, INTEGRATE)


def _told(taken: Requirement) -> str:
    cited = [
        f"- {citation.id}: {citation.document}, page {citation.page}"
        + (f" ({citation.url}, read {citation.accessed})" if citation.url else "")
        + f": {citation.quote}"
        for citation in taken.citations
    ]
    return "\n".join(
        [
            f"{taken.ref} ({taken.type}, confidence {taken.confidence:g}, from {taken.source})",
            f"Force: {taken.force}",
            f"Text: {taken.text}",
            f"Reasoning: {taken.reasoning}",
            "Citations:",
            *cited,
            f'Decide on it with decide_requirement(id="{taken.ref}", status, reasons).',
        ]
    )
