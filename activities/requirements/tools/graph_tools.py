"""Tools that read the shared graph; those in `graph_writing_tools.py` write."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from activities.requirements.graph import open_graph, read_only_query, render
from activities.requirements.graph.cypher import get_node_cypher, neighbour_patterns
from activities.requirements.graph.interface import (
    Graph,
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphUnavailableError,
)
from activities.requirements.graph.schema_check import find_violations
from activities.search.text_likeness import compute_text_likeness
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError
from config.schema.graph import NodeKind

SECONDS = 90
SHOWN_RELATIONS = 100
MAX_COMPARED = GraphLimits.rows
"""Maximum number of nodes of a kind that are compared; a statement returns no more rows."""
CLOSEST = 5
MIN_LIKENESS = 0.3
_QUERY = GraphLimits(seconds=10)
Properties = dict[str, str | float | int | bool | list[str] | None]
Kind = Annotated[str, Field(description="A node of the schema.")]
Key = Annotated[str, Field(min_length=1, max_length=2000, description="Value of its key.")]


@tool("graph", effect="outside", looks=True, phases=("tactical",), local=False, seconds=SECONDS)
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
    values: dict[str, object] = dict(parameters or {})
    if why := read_only_query.query_refusal_reason(query, values):
        raise ToolError(why)
    with _open_graph_for_tool(context, _QUERY) as graph:
        try:
            result = graph.read(GraphQuery(query, values))[0]
        except GraphQueryError as error:
            raise ToolError(
                f"{error} {render.render_graph_schema_hint(context.config.graph_schema)}"
            ) from None
    return render.render_rows(result, keep_order=read_only_query.is_read_query_ordered(query))


@tool("graph", effect="outside", looks=True, phases=("tactical",), local=False, seconds=SECONDS)
def get_database_schema(context: ToolContext) -> str:
    """Show what nodes and relations the graph has, with their properties."""
    schema = context.config.graph_schema
    with _open_graph_for_tool(context) as graph:
        tables = graph.schema()
    lines = ["Nodes:"]
    for name, node in schema.nodes.items():
        lines += [
            f"{name} (key {node.key}): {node.description}",
            *render.describe_properties(node.properties),
        ]
    lines.append("Relations:")
    for name, relation in schema.relations.items():
        ends = ", ".join(f"({start})->({end})" for start, end in relation.ends)
        lines += [
            f"{name} {ends}: {relation.description}",
            *render.describe_properties(relation.properties),
        ]
    others = [t.name for t in tables if t.name not in {*schema.nodes, *schema.relations}]
    if others:
        lines.append(f"Also in the graph, made by others: {', '.join(others)}")
    return "\n".join(lines)


@tool("graph", effect="outside", looks=True, phases=("tactical",), local=False, seconds=SECONDS)
def resolve_entity(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=500, description="What it is called.")],
    kind: Kind,
) -> str:
    """Find the node of the graph that a name stands for, or the closest ones.

    First by its exact key or name, then by common words and runs of letters.
    """
    node = graph_tool_node_kind(context, kind)
    names = [node.key, *(name for name in node.known_by if name != node.key)]
    columns = ", ".join(f"n.`{name}`" for name in names)
    single = [name for name in names if node.properties[name].type == "text"]
    same = " OR ".join(f"lower(n.`{name}`) = lower($text)" for name in single)
    match = f"MATCH (n:`{kind}`)"
    end = f"RETURN {columns} ORDER BY n.`{node.key}` LIMIT"
    with _open_graph_for_tool(context) as graph:
        exact, everything = graph.read(
            GraphQuery(f"{match} WHERE {same} {end} {CLOSEST}", {"text": text}),
            GraphQuery(f"{match} {end} {MAX_COMPARED}"),
        )
    # An exact name may be in a list of names, which the first query does not search.
    same_rows = exact.rows or [
        row
        for row in everything.rows
        if text.casefold() in (name.casefold() for name in render.graph_row_names(row))
    ]
    if same_rows:
        return "\n".join(f"exact: {render.render_node(kind, row)}" for row in same_rows[:CLOSEST])
    named = [(row, name) for row in everything.rows for name in render.graph_row_names(row)]
    alike = compute_text_likeness(_words(text), [_words(name) for _, name in named])
    best: dict[str, tuple[float, list[object]]] = {}
    for likeness, (row, _) in sorted(zip(alike, named, strict=True), key=lambda each: -each[0]):
        if likeness >= MIN_LIKENESS:
            best.setdefault(str(row[0]), (likeness, row))
    close = sorted(best.values(), key=lambda each: (-each[0], str(each[1][0])))[:CLOSEST]
    is_complete = not everything.more and len(everything.rows) < MAX_COMPARED
    note = "" if is_complete else f"\nOnly the first {len(everything.rows):,} were compared."
    if not close:
        return f"No {kind} is like {text!r}; {len(everything.rows):,} compared.{note}"
    lines = [f"{score:.2f}: {render.render_node(kind, row)}" for score, row in close]
    return "\n".join([f"No {kind} is called exactly that. The closest:", *lines]) + note


@tool("graph", effect="outside", looks=True, phases=("tactical",), local=False, seconds=SECONDS)
def get_entity_relationships(context: ToolContext, kind: Kind, key: Key) -> str:
    """Show a node of the graph and what it is related to, in both directions."""
    schema = context.config.graph_schema
    key_name = graph_tool_node_kind(context, kind).key
    parts = neighbour_patterns(schema, kind)
    queries: list[GraphQuery] = [get_node_cypher(schema, kind, key)]
    for _, _, far, pattern in parts:
        other = f"m.`{schema.nodes[far].key}`"
        text = f"MATCH {pattern} WHERE n.`{key_name}` = $key RETURN {other}, r"
        limits = f"ORDER BY {other} LIMIT {SHOWN_RELATIONS + 1}"
        queries.append(GraphQuery(f"{text} {limits}", {"key": key}))
    with _open_graph_for_tool(context) as graph:
        node_rows, *related = graph.read(*queries)
    if not node_rows.rows:
        raise ToolError(f"There is no {kind} {key} in the graph. Look for it with resolve_entity.")
    lines = [render.render_graph_properties(node_rows.rows[0][0])]
    for (name, outward, far, _), rows in zip(parts, related, strict=True):
        for other_key, values in rows.rows[:SHOWN_RELATIONS]:
            arrow = f"-{name}->" if outward else f"<-{name}-"
            lines.append(f"{arrow} {far} {other_key} {render.render_graph_properties(values)}")
        if len(rows.rows) > SHOWN_RELATIONS:
            lines.append(f"… more {name} with {far}; ask for them with execute_cypher_query")
    return "\n".join(lines if len(lines) > 1 else [*lines, "It is related to nothing."])


@tool("graph", effect="outside", looks=True, phases=("tactical",), local=False, seconds=SECONDS)
def count_graph_statistics(context: ToolContext) -> str:
    """Count the nodes and relations of the graph, by kind and by their listed values."""
    schema = context.config.graph_schema
    titles: list[str] = []
    queries: list[GraphQuery] = []
    for name, node in schema.nodes.items():
        titles.append(name)
        queries.append(GraphQuery(f"MATCH (n:`{name}`) RETURN count(*)"))
        for field in (f for f, declared in node.properties.items() if declared.values):
            titles.append(f"  {name} by {field}")
            queries.append(GraphQuery(
                f"MATCH (n:`{name}`) WHERE n.`{field}` IS NOT NULL WITH n.`{field}` AS value, "
                "count(*) AS c RETURN value, c ORDER BY value"))  # fmt: skip
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            titles.append(f"({start})-{name}->({end})")
            queries.append(
                GraphQuery(f"MATCH (:`{start}`)-[r:`{name}`]->(:`{end}`) RETURN count(*)")
            )
    with _open_graph_for_tool(context) as graph:
        answers = graph.read(*queries)
    lines = []
    for title, rows in zip(titles, answers, strict=True):
        if not title.startswith(" "):
            lines.append(f"{title}: {rows.rows[0][0]:,}")
        elif rows.rows:
            lines.append(
                f"{title}: {', '.join(f'{value} {count:,}' for value, count in rows.rows)}"
            )
    return "\n".join(lines)


@tool("graph", effect="outside", looks=True, phases=("tactical",), local=False, seconds=SECONDS)
def validate_schema_compliance(context: ToolContext) -> str:
    """Check what the graph holds against its schema, and list what does not comply."""
    with _open_graph_for_tool(context) as graph:
        problems = find_violations(graph, context.config.graph_schema)
    if not problems:
        return "The graph complies with its schema."
    return "\n".join([f"{len(problems)} violations:", *problems])


@contextmanager
def _open_graph_for_tool(
    context: ToolContext, limits: GraphLimits | None = None
) -> Iterator[Graph]:
    schema = context.config.graph_schema
    try:
        with open_graph(context.root, schema, limits) as graph:
            yield graph
    except GraphUnavailableError as error:
        raise DependencyUnavailable(str(error)) from None
    except GraphQueryError as error:
        raise ToolError(f"The graph refused it: {error}") from None


def graph_tool_node_kind(context: ToolContext, kind: str) -> NodeKind:
    """Return the kind of that name; the ToolError for an unknown one lists the kinds."""
    nodes = context.config.graph_schema.nodes
    if kind not in nodes:
        raise ToolError(f"There is no kind {kind}; expected one of {', '.join(nodes) or 'none'}.")
    return nodes[kind]


def _words(name: str) -> str:
    """Return the words of a name; `InvoiceHeader` is two."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ")
