"""Cypher built from the schema. Only the schema gives names; values are passed as parameters."""

from typing import Any

from activities.requirements.graph.interface import GraphQuery
from config.schema.graph import JOB, GraphSchema, PropertyType

TYPES: dict[PropertyType, str] = {
    "text": "STRING",
    "number": "DOUBLE",
    "integer": "INT64",
    "truth": "BOOL",
    "list": "STRING[]",
}


def table_cypher(schema: GraphSchema) -> list[str]:
    """Return statements that create ladybug's tables and add new columns to existing ones."""
    statements = []
    for name, node in schema.nodes.items():
        columns = [f"`{key}` {TYPES[prop.type]}" for key, prop in node.properties.items()]
        columns.append(f"PRIMARY KEY(`{node.key}`)")
        statements.append(f"CREATE NODE TABLE IF NOT EXISTS `{name}`({', '.join(columns)})")
    for name, relation in schema.relations.items():
        parts = [f"FROM `{start}` TO `{end}`" for start, end in relation.ends]
        columns = [f"`{key}` {TYPES[prop.type]}" for key, prop in relation.properties.items()]
        statements.append(
            f"CREATE REL TABLE IF NOT EXISTS `{name}`({', '.join([*parts, *columns])})"
        )
        statements += [f"ALTER TABLE `{name}` ADD IF NOT EXISTS {part}" for part in parts]
    for name, kind in [*schema.nodes.items(), *schema.relations.items()]:
        statements += [
            f"ALTER TABLE `{name}` ADD IF NOT EXISTS `{key}` {TYPES[prop.type]}"
            for key, prop in kind.properties.items()
        ]
    return statements


def constraint_cypher(schema: GraphSchema) -> list[str]:
    """Return statements that make Neo4j refuse a second node with the same key."""
    return [
        f"CREATE CONSTRAINT `{name}_{node.key}` IF NOT EXISTS "
        f"FOR (n:`{name}`) REQUIRE n.`{node.key}` IS UNIQUE"
        for name, node in schema.nodes.items()
    ]


def put_node_cypher(schema: GraphSchema, kind: str, values: dict[str, Any], job: str) -> GraphQuery:
    """Create or change a node. Returns no row, and changes nothing, if another job made a node
    with this key and other content.

    Args:
        values: Its properties, the key included; omitted ones stay unchanged.
    """
    node = schema.nodes[kind]
    others = {name: value for name, value in values.items() if name != node.key}
    parameters = {"key": values[node.key], "job": job}
    parameters |= {f"p_{name}": value for name, value in others.items()}
    text = f"MERGE (n:`{kind}` {{`{node.key}`: $key}})"
    same = [name for name in node.known_by if name in others]
    if JOB in node.properties:
        first = ", ".join([f"n.`{JOB}` = $job", *(f"n.`{name}` = $p_{name}" for name in same)])
        ours = " AND ".join(f"n.`{name}` = $p_{name}" for name in same)
        text += f" ON CREATE SET {first} WITH n WHERE n.`{JOB}` = $job"
        text += f" OR ({ours})" if ours else ""
    else:
        del parameters["job"]
    if others:
        text += " SET " + ", ".join(f"n.`{name}` = $p_{name}" for name in others)
    return GraphQuery(f"{text} RETURN n.`{node.key}`", parameters)


def get_node_cypher(schema: GraphSchema, kind: str, key: str) -> GraphQuery:
    """Select the node; no row if it does not exist."""
    return GraphQuery(
        f"MATCH (n:`{kind}` {{`{schema.nodes[kind].key}`: $key}}) RETURN n", {"key": key}
    )


def neighbour_patterns(schema: GraphSchema, kind: str) -> list[tuple[str, bool, str, str]]:
    """Return what a node `n` of a kind may be related to, in both directions.

    Each with the relation's name, whether it leads away from the node, the other end's kind, and
    the pattern, in which `r` is the relation and `m` the other end.
    """
    patterns = []
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            if start == kind:
                patterns.append((name, True, end, f"(n:`{kind}`)-[r:`{name}`]->(m:`{end}`)"))
            if end == kind:
                patterns.append((name, False, start, f"(n:`{kind}`)<-[r:`{name}`]-(m:`{start}`)"))
    return patterns


def drop_node_cypher(schema: GraphSchema, kind: str, key: str) -> GraphQuery:
    """Delete the node, if it exists, and its relations."""
    return GraphQuery(
        f"MATCH (n:`{kind}` {{`{schema.nodes[kind].key}`: $key}}) DETACH DELETE n", {"key": key}
    )


def put_relation_cypher(
    schema: GraphSchema,
    relation: str,
    start: tuple[str, str],
    end: tuple[str, str],
    values: dict[str, Any],
    target: dict[str, Any] | None,
) -> GraphQuery:
    """Create or change the one relation of this kind between two nodes. Returns no row if an end
    is missing.

    Args:
        start: Kind and key of the start node.
        end: Kind and key of the end node.
        target: Properties to create a missing end node with, without its key; None to require it.
    """
    (start_kind, start_key), (end_kind, end_key) = start, end
    parameters: dict[str, object] = {"from_key": start_key, "to_key": end_key}
    end_node = f"(b:`{end_kind}` {{`{schema.nodes[end_kind].key}`: $to_key}})"
    text = f"MATCH (a:`{start_kind}` {{`{schema.nodes[start_kind].key}`: $from_key}})"
    if target is None:
        text += f", {end_node}"
    else:
        text += f" MERGE {end_node} ON CREATE SET "
        text += ", ".join(f"b.`{name}` = $t_{name}" for name in target)
        parameters |= {f"t_{name}": value for name, value in target.items()}
    text += f" MERGE (a)-[r:`{relation}`]->(b)"
    if values:
        text += " SET " + ", ".join(f"r.`{name}` = $p_{name}" for name in values)
        parameters |= {f"p_{name}": value for name, value in values.items()}
    return GraphQuery(f"{text} RETURN b.`{schema.nodes[end_kind].key}`", parameters)
