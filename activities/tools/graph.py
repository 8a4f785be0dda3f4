"""Graph tools: requirements, and what fulfils them, in the graph that jobs share.

Writes go through two tools alone, which merge by key: an attempt that is repeated doubles nothing,
and nothing gets in that the schema does not know. Queries of the model's own only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field

from activities.errors import ToolError, Unreached
from activities.graph import Graph, GraphAway, GraphRefused, Limits, Query, Rows, open_graph
from activities.graph.checking import violations
from activities.graph.names import likeness, normalised
from activities.graph.reading import ordered, refusal
from activities.graph.statements import get_node, put_node, put_relation
from activities.tools.context import ToolContext
from activities.tools.registry import tool
from config.graphing import JOB, GraphSchema, NodeKind

SECONDS = 90
SHOWN_ROWS = 200
SHOWN_CHARACTERS = 15_000
SHOWN_RELATIONS = 100
COMPARED = 20_000
CLOSEST = 5
LIKE = 0.35
_QUERY = Limits(seconds=10)
_Properties = dict[str, str | float | int | bool | list[str] | None]
Kind = Annotated[str, Field(description="A node of the schema, such as BusinessObject.")]
Key = Annotated[str, Field(min_length=1, max_length=200, description="Value of its key.")]


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def execute_cypher_query(
    context: ToolContext,
    query: Annotated[str, Field(min_length=1, description="Begins with MATCH, for instance.")],
    parameters: Annotated[
        _Properties | None, Field(description="Values for $names in the query.")
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
            raise ToolError(f"{error} {_hint(context.config.graph_schema)}") from None
    return _table(found, keep_order=ordered(query))


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def get_database_schema(context: ToolContext) -> str:
    """Show what nodes and relations the graph has, with their properties."""
    schema = context.config.graph_schema
    with _graph(context) as graph:
        tables = graph.schema()
    lines = ["Nodes:"]
    for name, node in schema.nodes.items():
        lines += [f"{name} (key {node.key}): {node.description}", *_properties(node.properties)]
    lines.append("Relations:")
    for name, relation in schema.relations.items():
        ends = ", ".join(f"({start})->({end})" for start, end in relation.ends)
        lines += [f"{name} {ends}: {relation.description}", *_properties(relation.properties)]
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
    node = _node(context, kind)
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
        if text.casefold() in (name.casefold() for name in _texts(row))
    ]
    if same_rows:
        return "\n".join(f"exact: {_named(kind, row)}" for row in same_rows[:CLOSEST])
    wanted = normalised(text)
    scored = sorted(
        (-max(likeness(wanted, normalised(name)) for name in _texts(row)), str(row[0]), row)
        for row in everything.rows
    )
    close = [(-score, row) for score, _, row in scored[:CLOSEST] if -score >= LIKE]
    whole = not everything.more and len(everything.rows) < COMPARED
    note = "" if whole else f"\nOnly the first {len(everything.rows):,} were compared."
    if not close:
        return f"No {kind} is like {text!r}; {len(everything.rows):,} compared.{note}"
    lines = [f"{score:.2f}: {_named(kind, row)}" for score, row in close]
    return "\n".join([f"No {kind} is called exactly that. The closest:", *lines]) + note


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def create_requirement_node(
    context: ToolContext,
    id: Annotated[
        str, Field(min_length=1, max_length=200, description="Unique over all jobs, not only here.")
    ],
    text: Annotated[str, Field(min_length=1, max_length=4000)],
    properties: Annotated[
        _Properties | None,
        Field(description="Others of the schema, such as type, source, confidence, status."),
    ] = None,
) -> str:
    """Put a requirement into the graph, or change it there.

    Calling it again with the same id changes the node and makes no second one.
    """
    schema = context.config.graph_schema
    node = _node(context, "Requirement")
    values = _given(properties) | {"id": id, "text": text}
    _check("Requirement", node.problems(values))
    with _graph(context) as graph:
        put, held = graph.write(
            put_node(schema, "Requirement", values, context.job),
            get_node(schema, "Requirement", id),
        )
    if not put.rows:
        there = held.rows[0][0] if held.rows else {}
        other = there if isinstance(there, dict) else {}
        raise ToolError(
            f"Requirement {id} is in the graph already, made by the job {other.get(JOB)}, and says "
            f"something else: {str(other.get('text'))[:300]!r}. Give yours an id of its own."
        )
    return f"Requirement {id} is in the graph."


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def create_fulfillment_relationship(
    context: ToolContext,
    requirement: Annotated[str, Field(min_length=1, max_length=200, description="Its id.")],
    target_kind: Kind,
    target: Key,
    properties: Annotated[
        _Properties | None, Field(description="Of the relation, such as degree and evidence.")
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
    _node(context, "Requirement")
    node = _node(context, target_kind)
    declared = schema.relations.get(relation)
    if declared is None or ("Requirement", target_kind) not in declared.ends:
        fit = [
            name for name, each in schema.relations.items()
            if ("Requirement", target_kind) in each.ends
        ]  # fmt: skip
        raise ToolError(
            f"{relation} does not lead from Requirement to {target_kind}; "
            + (f"these do: {', '.join(fit)}." if fit else "no relation of the schema does.")
        )
    values = _given(properties)
    _check(relation, declared.problems(values))
    made = None if target_name is None else _target(node, target_kind, target, target_name)
    if made is not None and JOB in node.properties:
        made[JOB] = context.job
    if JOB in declared.properties:
        values[JOB] = context.job
    start, end = ("Requirement", requirement), (target_kind, target)
    with _graph(context) as graph:
        found, held = graph.write(
            put_relation(schema, relation, start, end, values, made),
            get_node(schema, *start),
        )
    if not held.rows:
        raise ToolError(
            f"There is no Requirement {requirement} in the graph. Make it first with "
            "create_requirement_node."
        )
    if not found.rows:
        raise ToolError(
            f"There is no {target_kind} {target} in the graph. Look for it with resolve_entity, or "
            "give target_name to make it."
        )
    return f"{requirement} {relation} {target_kind} {target} is in the graph."


@tool("graph", effect="outside", phases=("tactical",), local=False, seconds=SECONDS)
def get_entity_relationships(context: ToolContext, kind: Kind, key: Key) -> str:
    """Show a node of the graph and what it is related to, in both directions."""
    schema = context.config.graph_schema
    own = _node(context, kind).key
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
    lines = [_shown(found.rows[0][0])]
    for (name, there, outward), rows in zip(parts, related, strict=True):
        for other_key, held in rows.rows[:SHOWN_RELATIONS]:
            arrow = f"-{name}->" if outward else f"<-{name}-"
            lines.append(f"{arrow} {there} {other_key} {_shown(held)}")
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


def _node(context: ToolContext, kind: str) -> NodeKind:
    nodes = context.config.graph_schema.nodes
    if kind not in nodes:
        raise ToolError(f"There is no kind {kind}; expected one of {', '.join(nodes) or 'none'}.")
    return nodes[kind]


def _given(properties: _Properties | None) -> dict[str, Any]:
    given = {name: value for name, value in (properties or {}).items() if value is not None}
    if JOB in given:
        raise ToolError(f"{JOB} is filled in by the system: leave it out.")
    return given


def _check(name: str, problems: list[str]) -> None:
    if problems:
        raise ToolError(f"{name}: {'; '.join(problems[:5])}.")


def _target(node: NodeKind, kind: str, key: str, name: str) -> dict[str, Any]:
    named = next((each for each in node.known_by if node.properties[each].type == "text"), None)
    if named is None or named == node.key:
        raise ToolError(f"{kind} has no name beside its key: leave target_name out.")
    _check(kind, node.problems({node.key: key, named: name}))
    return {named: name}


def _hint(schema: GraphSchema) -> str:
    nodes = "; ".join(f"{n}({', '.join(k.properties)})" for n, k in schema.nodes.items())
    return (
        f"Nodes: {nodes}. Relations: {', '.join(schema.relations)}. "
        "get_database_schema tells the rest."
    )


def _properties(properties: Any) -> list[str]:
    lines = []
    for name, held in properties.items():
        told = [held.type, *(["required"] if held.required else [])]
        if held.values:
            told.append("one of " + ", ".join(held.values))
        if held.minimum is not None or held.maximum is not None:
            told.append(f"{held.minimum} to {held.maximum}")
        lines.append(
            f"  {name}: {', '.join(told)}" + (f". {held.description}" * bool(held.description))
        )
    return lines


def _table(found: Rows, *, keep_order: bool) -> str:
    """The rows, one JSON list a line."""
    lines = [json.dumps(row, ensure_ascii=False) for row in found.rows]
    if not keep_order:
        lines.sort()
    shown: list[str] = []
    size = 0
    for line in lines[:SHOWN_ROWS]:
        size += len(line)
        if size > SHOWN_CHARACTERS and shown:
            break
        shown.append(line)
    count = f"{len(lines):,}{' or more' if found.more else ''} rows"
    head = f"{count}; columns {json.dumps(found.columns, ensure_ascii=False)}"
    if len(shown) < len(lines) or found.more:
        shown.append(f"[TRUNCATED to {len(shown)} rows; use ORDER BY with SKIP and LIMIT]")
    return "\n".join([head, *shown])


def _texts(row: list[object]) -> list[str]:
    return [
        str(name) for held in row if held for name in (held if isinstance(held, list) else [held])
    ] or [""]


def _named(kind: str, row: list[object]) -> str:
    first, *others = _texts(row)
    told = f" ({'; '.join(name[:120] for name in others[:4])})" if others else ""
    return f"{kind} {first}{told}"


def _shown(entity: object) -> str:
    if not isinstance(entity, dict):
        return str(entity)
    held = {k: v[:400] if isinstance(v, str) else v for k, v in entity.items() if k != "_label"}
    return json.dumps(held, ensure_ascii=False)
