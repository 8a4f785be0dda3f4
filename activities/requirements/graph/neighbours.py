"""Relations of requirements in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from activities.checkpoints import Root
from activities.requirements.graph.graph_writes import REQUIREMENT
from activities.requirements.graph.interface import GraphQuery
from activities.requirements.graph.selection import open_graph
from config.schema.graph import GraphSchema

Relations = list[dict[str, Any]]
"""Relations of a requirement: `{"relation": "FULFILLED_BY", "to": "BusinessObject invoice"}` plus
the relation's properties; `from` replaces `to` where the requirement is the end."""


def requirement_neighbours(
    root: Root, schema: GraphSchema, ids: Sequence[str]
) -> dict[str, Relations]:
    """Map those of these requirements that are in the graph to their relations.

    Raises:
        GraphUnavailableError: The graph was not reached.
        GraphQueryError: It rejects the query.
    """
    if not ids or REQUIREMENT not in schema.nodes:
        return {}
    key_name = schema.nodes[REQUIREMENT].key
    parameters: dict[str, object] = {"ids": list(ids)}
    match = f"MATCH (n:`{REQUIREMENT}`)"
    condition = f"WHERE n.`{key_name}` IN $ids RETURN n.`{key_name}`"
    parts: list[tuple[str, str, str]] = []
    queries = [GraphQuery(f"{match} {condition}", parameters)]
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            for way, near, far in (("to", start, end), ("from", end, start)):
                if near != REQUIREMENT:
                    continue
                arrow = f"-[r:`{name}`]->" if way == "to" else f"<-[r:`{name}`]-"
                other = f"m.`{schema.nodes[far].key}`"
                parts.append((name, way, far))
                pattern = f"{match}{arrow}(m:`{far}`) {condition}, {other}, r"
                queries.append(
                    GraphQuery(f"{pattern} ORDER BY n.`{key_name}`, {other}", parameters)
                )
    with open_graph(root, schema) as graph:
        nodes, *related = graph.read(*queries)
    relations: dict[str, Relations] = {str(row[0]): [] for row in nodes.rows}
    for (name, way, far), rows in zip(parts, related, strict=True):
        for id, other_key, properties in rows.rows:
            entry = {"relation": name, way: f"{far} {other_key}"}
            if isinstance(properties, dict):
                fields = properties.items()
                entry |= {
                    key: value for key, value in fields if value is not None and key != "_label"
                }
            relations[str(id)].append(entry)
    return relations
