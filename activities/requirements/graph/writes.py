"""The writes of jobs to the graph. They go by key; one that finds the graph away is kept.

The graph is tried twice. A requirement's node has the name that the store of requirements gives it,
such as `job-1/REQ-001`, so that jobs mean the same one by the same id.
"""

from __future__ import annotations

import re
from typing import Any

from activities.requirements import requirement_store as rows
from activities.requirements.graph.interface import GraphAway, GraphRefused, Query, Rows
from activities.requirements.graph.selection import open_graph
from activities.requirements.graph.statements import drop_node, get_node, put_node, put_relation
from activities.stores.engine import Store
from activities.stores.errors import StoreAway, StoreRefuses, StoreRejects
from activities.stores.outbox import Writer, makes
from config.schema.graph import JOB
from protocol.state import DeferredWrite

NODE = "graph node"
RELATION = "graph relation"
REMOVAL = "graph removal"
REQUIREMENT = "Requirement"
TRIES = 2
_OWN = re.compile(r"REQ-\d{3,9}")


def full_id(job: str, id: str) -> str:
    """The id of a requirement in the graph: `REQ-001` of the job at work becomes `job/REQ-001`."""
    return f"{job}/{id}" if _OWN.fullmatch(id) else id


def stored(store: Store, ref: str) -> dict[str, Any]:
    """What the store has of a requirement, as properties of its node; nothing if it has none.

    What was judged is what the store says. And the ids of citations count in each job anew, so
    those that a validator made for itself would name others.

    Raises:
        StoreAway: nobody can tell.
    """
    try:
        found = store.read(lambda connection: rows.named(connection, ref))
    except StoreRejects:
        return {}
    if found is None:
        return {}
    said = found.model_dump(include={"text", "type", "source", "reasoning", "confidence"})
    return said | {"citations": [citation.id for citation in found.citations]}


@makes(NODE, "graph")
def _put_requirement(writer: Writer, entry: DeferredWrite) -> list[str]:
    schema, values = writer.config.graph_schema, entry.data["values"]
    if entry.data["unread"]:
        # The store was away as well: without what it says the node would be half of one.
        values = values | stored(writer.store, values["id"])
        if wrong := schema.nodes[REQUIREMENT].problems(values):
            raise StoreRefuses(f"Requirement {values['id']}: {'; '.join(wrong[:5])}.")
    put, held = _write(
        writer,
        put_node(schema, REQUIREMENT, values, writer.call.job),
        get_node(schema, REQUIREMENT, values["id"]),
    )
    if not put.rows:
        there = held.rows[0][0] if held.rows else {}
        other = there if isinstance(there, dict) else {}
        raise StoreRefuses(
            f"Requirement {values['id']} is in the graph already, made by the job "
            f"{other.get(JOB)}, and says something else: {str(other.get('text'))[:300]!r}. Give "
            "the id and the text as take_requirement tells them, or yours an id of its own."
        )
    return []


def holds(writer: Writer, id: str) -> bool:
    """Whether the requirement is in the graph, or a write of it waits for the graph.

    Where the graph does not answer it is taken to be: what is decided waits for no graph.

    Raises:
        StoreRefuses: the graph does not take the question.
    """
    waiting = [
        each.kind
        for each in writer.state.deferred_writes
        if each.kind in (NODE, REMOVAL) and each.about == id
    ]
    if waiting:
        return waiting[-1] == NODE
    schema = writer.config.graph_schema
    try:
        with open_graph(writer.root, schema) as graph:
            return bool(graph.read(get_node(schema, REQUIREMENT, id))[0].rows)
    except GraphAway:
        return True
    except GraphRefused as error:
        raise StoreRefuses(f"The graph refused it: {error}") from None


@makes(REMOVAL, "graph")
def _remove_requirement(writer: Writer, entry: DeferredWrite) -> list[str]:
    _write(writer, drop_node(writer.config.graph_schema, REQUIREMENT, entry.about))
    return []


@makes(RELATION, "graph")
def _put_relation(writer: Writer, entry: DeferredWrite) -> list[str]:
    schema, given = writer.config.graph_schema, entry.data
    start: tuple[str, str] = (REQUIREMENT, given["requirement"])
    end: tuple[str, str] = (given["target_kind"], given["target"])
    found, held = _write(
        writer,
        put_relation(schema, given["relation"], start, end, given["values"], given["made"]),
        get_node(schema, *start),
    )
    if not held.rows:
        raise StoreRefuses(
            f"There is no Requirement {start[1]} in the graph. Make it first with "
            "create_requirement_node."
        )
    if not found.rows:
        raise StoreRefuses(
            f"There is no {end[0]} {end[1]} in the graph. Look for it with resolve_entity, or "
            "give target_name to make it."
        )
    return []


def _write(writer: Writer, *queries: Query) -> list[Rows]:
    problem: Exception | None = None
    for _ in range(TRIES):
        try:
            with open_graph(writer.root, writer.config.graph_schema) as graph:
                return graph.write(*queries)
        except GraphAway as error:
            problem = error
        except GraphRefused as error:
            raise StoreRefuses(f"The graph refused it: {error}") from None
    raise StoreAway(str(problem)) from problem
