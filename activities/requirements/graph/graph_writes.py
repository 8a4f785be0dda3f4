"""The writes of jobs to the graph, keyed by id; deferred if the graph is unavailable.

Each write is tried twice. A requirement's node has its id in the store, such as `job-1/REQ-001`, so
the same id means the same requirement in all jobs.
"""

import re
from typing import Any

from activities.requirements import requirement_store as rows
from activities.requirements.graph import interface, open_graph
from activities.requirements.graph.cypher import (
    drop_node_cypher,
    get_node_cypher,
    put_node_cypher,
    put_relation_cypher,
)
from activities.stores.outbox import OutboxWriter, register_outbox_maker
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import (
    StoreRefusedError,
    StoreRejectedError,
    StoreUnavailableError,
)
from config.schema.graph import JOB
from protocol.job_state import DeferredWrite

NODE = "graph node"
RELATION = "graph relation"
REMOVAL = "graph removal"
REQUIREMENT = "Requirement"
TRIES = 2
_OWN = re.compile(r"REQ-\d{3,9}")


def graph_requirement_id(job: str, id: str) -> str:
    """Return a requirement's id in the graph: `REQ-001` becomes `job/REQ-001` of this job."""
    return f"{job}/{id}" if _OWN.fullmatch(id) else id


def stored_properties(store: RelationalStore, ref: str) -> dict[str, Any]:
    """Return the store's data on a requirement as properties of its node; empty if unknown.

    The store is authoritative for the judged values. Citation ids count from one in each job, so
    ids from a validator's own job would name other passages.

    Raises:
        StoreUnavailableError: The store cannot be reached.
    """
    try:
        requirement = store.read(lambda connection: rows.find_requirement(connection, ref))
    except StoreRejectedError:
        return {}
    if requirement is None:
        return {}
    properties = requirement.model_dump(
        include={"text", "type", "source", "reasoning", "confidence"}
    )
    return properties | {"citations": [citation.id for citation in requirement.citations]}


@register_outbox_maker(NODE, "graph")
def _write_requirement_node(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    schema, values = writer.config.graph_schema, entry.data["values"]
    if entry.data["unread"]:
        # The store was unavailable too; without its data the node would be incomplete.
        values = values | stored_properties(writer.store, values["id"])
        if wrong := schema.nodes[REQUIREMENT].find_problems(values):
            raise StoreRefusedError(f"Requirement {values['id']}: {'; '.join(wrong[:5])}.")
    put, existing = _write_queries(
        writer,
        put_node_cypher(schema, REQUIREMENT, values, writer.call.job),
        get_node_cypher(schema, REQUIREMENT, values["id"]),
    )
    if not put.rows:
        stored = existing.rows[0][0] if existing.rows else {}
        other = stored if isinstance(stored, dict) else {}
        raise StoreRefusedError(
            f"Requirement {values['id']} is in the graph already, made by the job "
            f"{other.get(JOB)}, and says something else: {str(other.get('text'))[:300]!r}. Give "
            "the id and the text as take_requirement shows them, or another id to yours."
        )
    return []


def is_written_to_graph(writer: OutboxWriter, id: str) -> bool:
    """Return whether the requirement is in the graph, or its write is deferred.

    Returns True if the graph does not answer, so that decisions never wait for the graph.

    Raises:
        StoreRefusedError: The graph rejects the query.
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
            return bool(graph.read(get_node_cypher(schema, REQUIREMENT, id))[0].rows)
    except interface.GraphUnavailableError:
        return True
    except interface.GraphQueryError as error:
        raise StoreRefusedError(f"The graph refused it: {error}") from None


@register_outbox_maker(REMOVAL, "graph")
def _write_node_removal(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    _write_queries(writer, drop_node_cypher(writer.config.graph_schema, REQUIREMENT, entry.about))
    return []


@register_outbox_maker(RELATION, "graph")
def _put_relation(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    schema, data = writer.config.graph_schema, entry.data
    start: tuple[str, str] = (REQUIREMENT, data["requirement"])
    end: tuple[str, str] = (data["target_kind"], data["target"])
    written, start_rows = _write_queries(
        writer,
        put_relation_cypher(schema, data["relation"], start, end, data["values"], data["made"]),
        get_node_cypher(schema, *start),
    )
    if not start_rows.rows:
        raise StoreRefusedError(
            f"There is no Requirement {start[1]} in the graph. Make it first with "
            "create_requirement_node."
        )
    if not written.rows:
        raise StoreRefusedError(
            f"There is no {end[0]} {end[1]} in the graph. Look for it with resolve_entity, or "
            "give target_name to make it."
        )
    return []


def _write_queries(
    writer: OutboxWriter, *queries: interface.GraphQuery
) -> list[interface.GraphRows]:
    problem: Exception | None = None
    for _ in range(TRIES):
        try:
            with open_graph(writer.root, writer.config.graph_schema) as graph:
                return graph.write(*queries)
        except interface.GraphUnavailableError as error:
            problem = error
        except interface.GraphQueryError as error:
            raise StoreRefusedError(f"The graph refused it: {error}") from None
    raise StoreUnavailableError(str(problem)) from problem
