"""Graph tools: what the graph that jobs share holds, and queries of the model's own.

These read; `integrating.py` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from activities.requirements.graph import Graph, GraphAway, GraphRefused, Limits, Query, open_graph
from activities.requirements.graph.name_likeness import likeness, normalised
from activities.requirements.graph.read_only import ordered, refusal
from activities.requirements.graph.render import hint, named, properties, shown, table, texts
from activities.requirements.graph.statements import get_node
from activities.requirements.graph.violations import violations
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError, Unreached
from activities.toolkit.registry import tool
from config.schema.graph import NodeKind

SECONDS = 90
SHOWN_RELATIONS = 100
COMPARED = Limits.rows
"""Nodes of a kind; a statement gives no more rows."""
CLOSEST = 5
LIKE = 0.35
_QUERY = Limits(seconds=10)
Properties = dict[str, str | float | int | bool | list[str] | None]
Kind = Annotated[str, Field(description="A node of the schema, such as BusinessObject.")]
Key = Annotated[str, Field(min_length=1, max_length=2000, description="Value of its key.")]


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def execute_cypher_query(
    context: ToolContext,
    query: Annotated[str, Field(min_length=1, description="Begins with MATCH, for instance.")],
    parameters: Annotated[
        Properties | None, Field(description="Values for $names in the query.")
    ] = None,
) -> str:
    """Run a Cypher query that reads from the graph.

    Clauses that write are refused: create_requirement_node and create_fulfillment_relationship
    write. Rows without ORDER BY are sorted. At most 10 seconds and 200 rows: use LIMIT.
    """
    given: dict[str, object] = dict(parameters or {})
    if why := refusal(query, given):
        raise ToolError(why)
    with _graph(context, _QUERY) as graph:
        try:
            found = graph.read(Query(query, given))[0]
        except GraphRefused as error:
            raise ToolError(f"{error} {hint(context.config.graph_schema)}") from None
    return table(found, keep_order=ordered(query))


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def get_database_schema(context: ToolContext) -> str:
    """Show what nodes and relations the graph has, with their properties."""
    schema = context.config.graph_schema
    with _graph(context) as graph:
        tables = graph.schema()
    lines = ["Nodes:"]
    for name, node in schema.nodes.items():
        lines += [f"{name} (key {node.key}): {node.description}", *properties(node.properties)]
    lines.append("Relations:")
    for name, relation in schema.relations.items():
        ends = ", ".join(f"({start})->({end})" for start, end in relation.ends)
        lines += [f"{name} {ends}: {relation.description}", *properties(relation.properties)]
    others = [t.name for t in tables if t.name not in {*schema.nodes, *schema.relations}]
    if others:
        lines.append(f"Also in the graph, made by others: {', '.join(others)}")
    return "\n".join(lines)


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def resolve_entity(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=500, description="What it is called.")],
    kind: Kind,
) -> str:
    """Find the node of the graph that a name stands for, or the closest ones.

    First by its exact key or name, then by common words and runs of letters.
    """
    node = known(context, kind)
    names = [node.key, *(name for name in node.known_by if name != node.key)]
    columns = ", ".join(f"n.`{name}`" for name in names)
    single = [name for name in names if node.properties[name].type == "text"]
    same = " OR ".join(f"lower(n.`{name}`) = lower($text)" for name in single)
    match = f"MATCH (n:`{kind}`)"
    end = f"RETURN {columns} ORDER BY n.`{node.key}` LIMIT"
    with _graph(context) as graph:
        exact, everything = graph.read(
            Query(f"{match} WHERE {same} {end} {CLOSEST}", {"text": text}),
            Query(f"{match} {end} {COMPARED}"),
        )
    # An exact name may also be one of a list, which the first query does not look into.
    same_rows = exact.rows or [
        row
        for row in everything.rows
        if text.casefold() in (name.casefold() for name in texts(row))
    ]
    if same_rows:
        return "\n".join(f"exact: {named(kind, row)}" for row in same_rows[:CLOSEST])
    wanted = normalised(text)
    scored = sorted(
        (-max(likeness(wanted, normalised(name)) for name in texts(row)), str(row[0]), row)
        for row in everything.rows
    )
    close = [(-score, row) for score, _, row in scored[:CLOSEST] if -score >= LIKE]
    whole = not everything.more and len(everything.rows) < COMPARED
    note = "" if whole else f"\nOnly the first {len(everything.rows):,} were compared."
    if not close:
        return f"No {kind} is like {text!r}; {len(everything.rows):,} compared.{note}"
    lines = [f"{score:.2f}: {named(kind, row)}" for score, row in close]
    return "\n".join([f"No {kind} is called exactly that. The closest:", *lines]) + note


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def get_entity_relationships(context: ToolContext, kind: Kind, key: Key) -> str:
    """Show a node of the graph and what it is related to, in both directions."""
    schema = context.config.graph_schema
    own = known(context, kind).key
    parts: list[tuple[str, str, bool]] = []
    queries: list[Query] = [get_node(schema, kind, key)]
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            for outward, here, there in ((True, start, end), (False, end, start)):
                if here != kind:
                    continue
                arrow = f"-[r:`{name}`]->" if outward else f"<-[r:`{name}`]-"
                other = f"m.`{schema.nodes[there].key}`"
                parts.append((name, there, outward))
                queries.append(
                    Query(
                        f"MATCH (n:`{kind}` {{`{own}`: $key}}){arrow}(m:`{there}`) "
                        f"RETURN {other}, r ORDER BY {other} LIMIT {SHOWN_RELATIONS + 1}",
                        {"key": key},
                    )
                )
    with _graph(context) as graph:
        found, *related = graph.read(*queries)
    if not found.rows:
        raise ToolError(f"There is no {kind} {key} in the graph. Look for it with resolve_entity.")
    lines = [shown(found.rows[0][0])]
    for (name, there, outward), rows in zip(parts, related, strict=True):
        for other_key, held in rows.rows[:SHOWN_RELATIONS]:
            arrow = f"-{name}->" if outward else f"<-{name}-"
            lines.append(f"{arrow} {there} {other_key} {shown(held)}")
        if len(rows.rows) > SHOWN_RELATIONS:
            lines.append(f"… more {name} with {there}; ask for them with execute_cypher_query")
    return "\n".join(lines if len(lines) > 1 else [*lines, "It is related to nothing."])


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def count_graph_statistics(context: ToolContext) -> str:
    """Count the nodes and relations of the graph, by kind and by their listed values."""
    schema = context.config.graph_schema
    told: list[str] = []
    queries: list[Query] = []
    for name, node in schema.nodes.items():
        told.append(name)
        queries.append(Query(f"MATCH (n:`{name}`) RETURN count(*)"))
        for field in (f for f, declared in node.properties.items() if declared.values):
            told.append(f"  {name} by {field}")
            queries.append(Query(
                f"MATCH (n:`{name}`) WHERE n.`{field}` IS NOT NULL WITH n.`{field}` AS value, "
                "count(*) AS c RETURN value, c ORDER BY value"))  # fmt: skip
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            told.append(f"({start})-{name}->({end})")
            queries.append(Query(f"MATCH (:`{start}`)-[r:`{name}`]->(:`{end}`) RETURN count(*)"))
    with _graph(context) as graph:
        answers = graph.read(*queries)
    lines = []
    for title, rows in zip(told, answers, strict=True):
        if not title.startswith(" "):
            lines.append(f"{title}: {rows.rows[0][0]:,}")
        elif rows.rows:
            lines.append(
                f"{title}: {', '.join(f'{value} {count:,}' for value, count in rows.rows)}"
            )
    return "\n".join(lines)


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def validate_schema_compliance(context: ToolContext) -> str:
    """Check what the graph holds against its schema, and list what does not comply."""
    with _graph(context) as graph:
        found = violations(graph, context.config.graph_schema)
    if not found:
        return "The graph complies with its schema."
    return "\n".join([f"{len(found)} violations:", *found])


@contextmanager
def _graph(context: ToolContext, limits: Limits | None = None) -> Iterator[Graph]:
    schema = context.config.graph_schema
    try:
        with open_graph(context.root, schema, context.heartbeat, limits) as graph:
            yield graph
    except GraphAway as error:
        raise Unreached(str(error)) from None
    except GraphRefused as error:
        raise ToolError(f"The graph refused it: {error}") from None


def known(context: ToolContext, kind: str) -> NodeKind:
    """The kind of that name; a ToolError names those there are."""
    nodes = context.config.graph_schema.nodes
    if kind not in nodes:
        raise ToolError(f"There is no kind {kind}; expected one of {', '.join(nodes) or 'none'}.")
    return nodes[kind]
