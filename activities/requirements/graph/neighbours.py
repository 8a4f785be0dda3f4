"""Where requirements are in the graph: what each is related to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from activities.checkpoints import Root
from activities.requirements.graph.interface import Query
from activities.requirements.graph.selection import open_graph
from activities.requirements.graph.writes import REQUIREMENT
from config.schema.graph import GraphSchema

Place = list[dict[str, Any]]
"""The relations of a requirement: `{"relation": "FULFILLED_BY", "to": "BusinessObject invoice"}`
with what the relation says; `from` in the place of `to` where it is the other end."""


def places(
    root: Root, schema: GraphSchema, ids: Sequence[str], heartbeat: Callable[[], None]
) -> dict[str, Place]:
    """The place of each of these requirements that the graph has.

    Raises:
        GraphAway: the graph was not reached.
        GraphRefused: it does not take the question.
    """
    if not ids or REQUIREMENT not in schema.nodes:
        return {}
    own = schema.nodes[REQUIREMENT].key
    parameters: dict[str, object] = {"ids": list(ids)}
    match = f"MATCH (n:`{REQUIREMENT}`)"
    wanted = f"WHERE n.`{own}` IN $ids RETURN n.`{own}`"
    parts: list[tuple[str, str, str]] = []
    queries = [Query(f"{match} {wanted}", parameters)]
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            for way, here, there in (("to", start, end), ("from", end, start)):
                if here != REQUIREMENT:
                    continue
                arrow = f"-[r:`{name}`]->" if way == "to" else f"<-[r:`{name}`]-"
                other = f"m.`{schema.nodes[there].key}`"
                parts.append((name, way, there))
                asked = f"{match}{arrow}(m:`{there}`) {wanted}, {other}, r"
                queries.append(Query(f"{asked} ORDER BY n.`{own}`, {other}", parameters))
    with open_graph(root, schema, heartbeat) as graph:
        nodes, *related = graph.read(*queries)
    found: dict[str, Place] = {str(row[0]): [] for row in nodes.rows}
    for (name, way, there), rows in zip(parts, related, strict=True):
        for id, met, held in rows.rows:
            told = {"relation": name, way: f"{there} {met}"}
            if isinstance(held, dict):
                said = held.items()
                told |= {key: value for key, value in said if value is not None and key != "_label"}
            found[str(id)].append(told)
    return found
