"""Tools that write requirements and what fulfils them to the graph.

`validation` removes requirements that are not accepted after all. Writes merge by key, so a
repeated attempt duplicates nothing, and values are checked against the schema first. An
unavailable graph stops neither tool: see `activities.requirements.graph.graph_writes`.
"""

from typing import Annotated, Any

from pydantic import Field

from activities.requirements.graph.graph_writes import (
    NODE,
    RELATION,
    REQUIREMENT,
    graph_requirement_id,
    stored_properties,
)
from activities.requirements.tools.graph_tools import Key, Kind, Properties, graph_tool_node_kind
from activities.requirements.validation_claims import find_claimed_ref
from activities.stores.outbox import OutboxWriter, write_or_defer
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from config.schema.graph import JOB, NodeKind
from protocol.job_state import DeferredWrite

SECONDS = 180
"""Enough for two attempts, each of which may wait for the lock."""
RequirementId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="job/REQ-001, as take_requirement names it; REQ-001 is this job's own.",
    ),
]


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def create_requirement_node(
    context: ToolContext,
    id: RequirementId,
    text: Annotated[
        str | None,
        Field(min_length=1, max_length=4000, description="Only if the store does not have it."),
    ] = None,
    properties: Annotated[
        Properties | None,
        Field(
            description="Others of the schema, such as status. Text, type, source, citations, "
            "reasoning and confidence of one that the store has are filled in from there."
        ),
    ] = None,
) -> str:
    """Put a requirement into the graph, or change it there.

    Calling it again with the same id changes the node and makes no second one. decide_requirement
    does it by itself for what it accepts.
    """
    values = _graph_property_values(properties)
    if text is not None:
        values["text"] = text
    return put_requirement_node(context, id, values)


def put_requirement_node(context: ToolContext, id: str, properties: dict[str, Any]) -> str:
    """Write the node of a requirement, with the store's data before what is given.

    Raises:
        ToolError: The schema or the graph refuses it.
    """
    named = graph_requirement_id(context.job, id)
    values = properties | {"id": named}
    unread = False
    store = RelationalStore(context.root)
    try:
        stored = stored_properties(store, named)
        if not stored:
            _refuse_short_claimed_id(store, context.job, id)
        values |= stored
    except StoreUnavailableError:
        unread = True  # the write checks it, once it has the store's data
    kind = graph_tool_node_kind(context, REQUIREMENT)
    if not unread or "text" in properties:
        _refuse_invalid_properties(REQUIREMENT, kind.find_problems(values))
    written = _integrate_or_defer(
        context, NODE, named, f"Requirement {named}", values=values, unread=unread
    )
    said = properties.get("text", values.get("text", ""))
    if said.split() == values.get("text", said).split():
        return written
    return f"{written}\nIts text is that of the store: {values['text']}"


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def create_fulfillment_relationship(
    context: ToolContext,
    requirement: RequirementId,
    target_kind: Kind,
    target: Key,
    properties: Annotated[
        Properties | None, Field(description="Of the relation, such as degree and evidence.")
    ] = None,
    relation: Annotated[str, Field(description="A relation of the schema.")] = "FULFILLED_BY",
    target_name: Annotated[
        str | None,
        Field(max_length=500, description="To make the target when the graph lacks it: its name."),
    ] = None,
) -> str:
    """Relate a requirement to what fulfils it, or change the relation that is there.

    There is one relation of a kind between two nodes; calling it again changes that one. Look for
    the target with resolve_entity before you make one.
    """
    schema = context.config.graph_schema
    graph_tool_node_kind(context, REQUIREMENT)
    node = graph_tool_node_kind(context, target_kind)
    declared = schema.relations.get(relation)
    if declared is None or (REQUIREMENT, target_kind) not in declared.ends:
        fit = [
            name for name, each in schema.relations.items()
            if (REQUIREMENT, target_kind) in each.ends
        ]  # fmt: skip
        raise ToolError(
            f"{relation} does not lead from Requirement to {target_kind}; "
            + (f"these do: {', '.join(fit)}." if fit else "no relation of the schema does.")
        )
    values = _graph_property_values(properties)
    _refuse_invalid_properties(relation, declared.find_problems(values))
    start = graph_requirement_id(context.job, requirement)
    end = graph_requirement_id(context.job, target) if target_kind == REQUIREMENT else target
    new_target = (
        None
        if target_name is None
        else _fulfillment_target_values(node, target_kind, end, target_name)
    )
    if new_target is not None and JOB in node.properties:
        new_target[JOB] = context.job
    if JOB in declared.properties:
        values[JOB] = context.job
    return _integrate_or_defer(
        context,
        RELATION,
        start,
        f"{start} {relation} {target_kind} {end}",
        requirement=start,
        target_kind=target_kind,
        target=end,
        relation=relation,
        values=values,
        made=new_target,
    )


def _integrate_or_defer(context: ToolContext, kind: str, about: str, what: str, **data: Any) -> str:
    """Make the write or defer it; return the message for the model."""
    entry = DeferredWrite(kind=kind, key=context.key, at=context.time_ms, about=about, data=data)
    try:
        remarks = write_or_defer(OutboxWriter.for_call(context), entry)
    except StoreRefusedError as refusal:
        raise ToolError(str(refusal)) from None
    waits = any(each is entry for each in context.state.deferred_writes)
    outcome = "comes into the graph when it answers" if waits else "is in the graph"
    return "\n".join([f"{what} {outcome}.", *remarks])


def _graph_property_values(properties: Properties | None) -> dict[str, Any]:
    values = {name: value for name, value in (properties or {}).items() if value is not None}
    if JOB in values:
        raise ToolError(f"{JOB} is filled in by the system: leave it out.")
    return values


def _refuse_short_claimed_id(store: RelationalStore, job: str, id: str) -> None:
    """Refuse the short id of a draft that the job has taken from another one.

    It would make a second node, under this job's name, that the store does not know and that no
    decision removes.
    """
    if claimed := store.read(lambda connection: find_claimed_ref(connection, job, id)):
        raise ToolError(f"This job has no requirement {id}. The one it has taken is {claimed}.")


def _refuse_invalid_properties(name: str, problems: list[str]) -> None:
    if problems:
        raise ToolError(f"{name}: {'; '.join(problems[:5])}.")


def _fulfillment_target_values(node: NodeKind, kind: str, key: str, name: str) -> dict[str, Any]:
    named = next((each for each in node.known_by if node.properties[each].type == "text"), None)
    if named is None or named == node.key:
        raise ToolError(f"{kind} has no name beside its key: leave target_name out.")
    _refuse_invalid_properties(kind, node.find_problems({node.key: key, named: name}))
    return {named: name}
