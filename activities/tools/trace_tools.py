"""Tools for traces of what this and other jobs ran into."""

from typing import Annotated, Any

from pydantic import Field

from activities.stores import stored_traces as rows
from activities.stores.outbox import OutboxWriter, register_outbox_maker, write_or_defer
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.traces.trace_search import TraceSearchScope, find_traces
from activities.traces.trace_text import DetailLevel, redact_trace_text, render_trace
from protocol.job_state import DeferredWrite
from protocol.short_text import text_title_line
from protocol.trace_requests import MOST_CHARACTERS

KIND = "trace"
SHOWN: dict[DetailLevel, int] = {"metadata": 20, "summary": 8, "full": 3}
RequiredText = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
OptionalText = Annotated[str, Field(max_length=MOST_CHARACTERS)]


@register_outbox_maker(KIND)
def _write_tool_trace(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    writer.store.run(lambda connection: rows.insert_traces(connection, [entry.data]))
    return []


@tool("traces", effect="outside", local=False, seconds=60)
def store_trace(
    context: ToolContext,
    decision: Annotated[RequiredText, Field(description="What was decided, in a sentence or two.")],
    why: Annotated[RequiredText, Field(description="The reason.")],
    instead_of: Annotated[OptionalText, Field(description="What was weighed and not done.")] = "",
) -> str:
    """Record a decision, so that later phases and jobs in the same situation find it."""
    state = context.state
    data: dict[str, Any] = {
        "key": context.key,
        "project": context.project_id,
        "job": context.job,
        "agent": context.config.name,
        "task": text_title_line(context.files.read("instructions.md").decode(errors="replace")),
        "phase": state.phase.number,
        "step": state.step,
        "at": context.time_ms // 1000,
        "type": "decision",
        "todo": current.content[:MOST_CHARACTERS] if (current := state.phase.current) else "",
        "what_happened": decision,
        "what_was_correct": instead_of and f"not: {instead_of}",
        "why": why,
        "source": "agent",
        "guard": "",
        "tool": "",
        "path": "",
        "stage": "",
        "checkpoint": context.commit,
    }
    entry = DeferredWrite(
        kind=KIND, key=context.key, at=context.time_ms, data=redact_trace_text(data)
    )
    try:
        remarks = write_or_defer(OutboxWriter.for_call(context), entry)
    except StoreRefusedError as refusal:
        raise ToolError(str(refusal)) from None
    return "\n".join(["Recorded.", *remarks])


@tool("traces", effect="outside", local=False, seconds=120)
def query_traces(
    context: ToolContext,
    query: Annotated[str, Field(min_length=1, max_length=1000, description="The situation.")],
    level: DetailLevel = "summary",
) -> str:
    """Find what jobs ran into in situations like this one: refusals, corrections, decisions.

    Levels: `metadata` names 20, `summary` tells of 8, `full` shows 3 whole.
    """
    reader = TraceSearchScope(context.job, context.config.name, context.project_id)
    try:
        embeddings = context.config.embeddings
        matches = find_traces(context.root, reader, query, SHOWN[level], embeddings=embeddings)
        if matches:
            ids = [row.id for row in matches]
            RelationalStore(context.root).run(
                lambda connection: rows.increment_trace_retrievals(connection, ids)
            )
    except StoreUnavailableError as error:
        raise ToolError(f"Traces cannot be had now: {error} Go on without.") from None
    if not matches:
        return "No trace holds any of these words. Try others, or go on without."
    return ("\n\n" if level == "full" else "\n").join(render_trace(row, level) for row in matches)


@tool("traces", effect="outside", local=False, seconds=60)
def get_trace(
    context: ToolContext,
    id: Annotated[str, Field(pattern=r"^T?[0-9]{1,9}$")],
    level: DetailLevel = "full",
) -> str:
    """Show one trace that query_traces named."""
    number = int(id.removeprefix("T"))
    reader = TraceSearchScope(context.job, context.config.name, context.project_id)
    store = RelationalStore(context.root)
    try:
        row = store.read(lambda connection: rows.find_trace(connection, number))
        if row is None or not reader.may_see(row):
            raise ToolError(f"There is no trace {id}. query_traces names those there are.")
        store.run(lambda connection: rows.increment_trace_retrievals(connection, [number]))
    except StoreUnavailableError as error:
        raise ToolError(f"Traces cannot be had now: {error} Go on without.") from None
    return render_trace(row, level)
