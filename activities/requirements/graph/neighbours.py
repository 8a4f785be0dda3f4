"""Relations of requirements in the graph."""

from collections.abc import Sequence
from typing import Any

from activities.checkpoints import Root
from activities.requirements.graph import open_graph
from activities.requirements.graph.cypher import neighbour_patterns
from activities.requirements.graph.graph_writes import REQUIREMENT
from activities.requirements.graph.interface import GraphQuery
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
    condition = f"WHERE n.`{key_name}` IN $ids RETURN n.`{key_name}`"
    parts = neighbour_patterns(schema, REQUIREMENT)
    queries = [GraphQuery(f"MATCH (n:`{REQUIREMENT}`) {condition}", parameters)]
    for _, _, far, pattern in parts:
        other = f"m.`{schema.nodes[far].key}`"
        text = f"MATCH {pattern} {condition}, {other}, r ORDER BY n.`{key_name}`, {other}"
        queries.append(GraphQuery(text, parameters))
    with open_graph(root, schema) as graph:
        nodes, *related = graph.read(*queries)
    relations: dict[str, Relations] = {str(row[0]): [] for row in nodes.rows}
    for (name, outward, far, _), rows in zip(parts, related, strict=True):
        for id, other_key, properties in rows.rows:
            entry = {"relation": name, "to" if outward else "from": f"{far} {other_key}"}
            if isinstance(properties, dict):
                fields = properties.items()
                entry |= {
                    key: value for key, value in fields if value is not None and key != "_label"
                }
            relations[str(id)].append(entry)
    return relations
