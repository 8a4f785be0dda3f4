"""Traces: what this and other jobs ran into, for phases that plan."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from activities.stores import traces as rows
from activities.stores.engine import Store
from activities.stores.errors import StoreAway, StoreRefuses
from activities.stores.outbox import Writer, makes, write
from activities.text.plain import title
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError
from activities.toolkit.registry import tool
from activities.traces.trace_search import Reader, find
from activities.traces.trace_text import Level, redact_trace, render_trace
from protocol.state import DeferredWrite
from protocol.traces import MOST_CHARACTERS

KIND = "trace"
SHOWN: dict[Level, int] = {"metadata": 20, "summary": 8, "full": 3}
Told = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
Also = Annotated[str, Field(max_length=MOST_CHARACTERS)]


@makes(KIND)
def _make(writer: Writer, entry: DeferredWrite) -> list[str]:
    writer.store.run(lambda connection: rows.keep(connection, [entry.data]))
    return []


@tool("traces", effect="outside", phases=("strategic",), local=False, seconds=60)
def store_trace(
    context: ToolContext,
    decision: Annotated[Told, Field(description="What was decided, in a sentence or two.")],
    why: Annotated[Told, Field(description="The reason.")],
    instead_of: Annotated[Also, Field(description="What was weighed and not done.")] = "",
) -> str:
    """Record a decision, so that later phases and jobs in the same situation find it."""
    state = context.state
    data: dict[str, Any] = {
        "key": context.key,
        "project": context.project,
        "job": context.job,
        "agent": context.config.name,
        "task": title(context.files.read("instructions.md").decode(errors="replace")),
        "phase": state.phase.number,
        "step": state.step,
        "at": context.at // 1000,
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
    entry = DeferredWrite(kind=KIND, key=context.key, at=context.at, data=redact_trace(data))
    try:
        remarks = write(Writer.for_call(context), entry)
    except StoreRefuses as refusal:
        raise ToolError(str(refusal)) from None
    return "\n".join(["Recorded.", *remarks])


@tool("traces", effect="outside", phases=("strategic",), local=False, seconds=120)
def query_traces(
    context: ToolContext,
    query: Annotated[str, Field(min_length=1, max_length=1000, description="The situation.")],
    level: Level = "summary",
) -> str:
    """Find what jobs ran into in situations like this one: refusals, corrections, decisions.

    Levels: `metadata` names 20, `summary` tells of 8, `full` shows 3 whole.
    """
    reader = Reader(context.job, context.config.name, context.project)
    try:
        embeddings = context.config.embeddings
        found = find(context.root, reader, query, SHOWN[level], embeddings=embeddings)
        if found:
            ids = [row.id for row in found]
            Store(context.root).run(lambda connection: rows.count_retrieved(connection, ids))
    except StoreAway as away:
        raise ToolError(f"Traces cannot be had now: {away} Go on without.") from None
    if not found:
        return "No trace holds any of these words. Try others, or go on without."
    return ("\n\n" if level == "full" else "\n").join(render_trace(row, level) for row in found)


@tool("traces", effect="outside", phases=("strategic",), local=False, seconds=60)
def get_trace(
    context: ToolContext,
    id: Annotated[str, Field(pattern=r"^T?[0-9]{1,9}$", description="Such as T12.")],
    level: Level = "full",
) -> str:
    """Show one trace that query_traces named."""
    number = int(id.removeprefix("T"))
    reader = Reader(context.job, context.config.name, context.project)
    store = Store(context.root)
    try:
        row = store.read(lambda connection: rows.find(connection, number))
        if row is None or not reader.may_see(row):
            raise ToolError(f"There is no trace {id}. query_traces names those there are.")
        store.run(lambda connection: rows.count_retrieved(connection, [number]))
    except StoreAway as away:
        raise ToolError(f"Traces cannot be had now: {away} Go on without.") from None
    return render_trace(row, level)
