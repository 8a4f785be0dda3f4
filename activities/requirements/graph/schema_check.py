"""Whether a graph's content follows the schema.

Ladybug enforces types, keys and ends by its tables; Neo4j does not, so every rule is checked in
both.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from activities.requirements.graph.cypher import TYPES
from activities.requirements.graph.interface import Graph, GraphQuery, GraphRows, GraphTable
from config.schema.graph import GraphSchema, Property

MAX_SHOWN_ROWS = 5


@dataclass(frozen=True)
class _SchemaRule:
    """A query for violations of a rule. Each row has a node's key, or the keys of a relation's
    ends, and the offending value."""

    description: str
    query: GraphQuery


def find_violations(graph: Graph, schema: GraphSchema) -> list[str]:
    """Return one line per violated rule, in schema order. Raises GraphUnavailableError and
    GraphQueryError."""
    tables = {table.name: table for table in graph.schema()}
    lines = list(_table_violations(tables, schema))
    existing = {name for name in [*schema.nodes, *schema.relations] if name in tables}
    rules = [rule for name, rule in _schema_check_rules(schema) if name in existing]
    answers = graph.read(*(rule.query for rule in rules)) if rules else []
    return lines + [
        _violation_line(rule, rows) for rule, rows in zip(rules, answers, strict=True) if rows.rows
    ]


def _table_violations(tables: dict[str, GraphTable], schema: GraphSchema) -> Iterator[str]:
    kinds = {**schema.nodes, **schema.relations}
    for name in sorted(set(tables) - set(kinds)):
        yield f"{name}: the schema declares no such kind"
    for name, kind in kinds.items():
        properties = tables[name].properties if name in tables else {}
        for key in sorted(set(properties) - set(kind.properties)):
            yield f"{name}.{key}: the schema declares no such property"
        for key, declared in kind.properties.items():
            if key in properties and properties[key] != (expected := TYPES[declared.type]):
                yield (
                    f"{name}.{key}: the graph has it as {properties[key]}, the schema as {expected}"
                )
    for name, relation in schema.relations.items():
        for pair in tables[name].ends if name in tables else []:
            if pair not in relation.ends:
                yield f"{name}: the graph lets it lead from {pair[0]} to {pair[1]}"


def _schema_check_rules(schema: GraphSchema) -> Iterator[tuple[str, _SchemaRule]]:
    for name, node in schema.nodes.items():
        key = f"n.`{node.key}`"
        text = f"MATCH (n:`{name}`) WITH {key} AS k, count(*) AS c WHERE c > 1"
        yield name, _SchemaRule(f"{name}: more than one with the same {node.key}", GraphQuery(
            f"{text} RETURN k, c ORDER BY k"))  # fmt: skip
        for field, declared in node.properties.items():
            for description, condition, parameters in _schema_violation_conditions(
                f"n.`{field}`", declared
            ):
                yield name, _SchemaRule(f"{name}.{field}: {description}", GraphQuery(
                    f"MATCH (n:`{name}`) WHERE {condition} RETURN {key}, n.`{field}` "
                    f"ORDER BY {key}", parameters))  # fmt: skip
    for name, relation in schema.relations.items():
        for start, end in relation.ends:
            match = f"MATCH (a:`{start}`)-[r:`{name}`]->(b:`{end}`)"
            a = f"a.`{schema.nodes[start].key}`"
            b = f"b.`{schema.nodes[end].key}`"
            yield name, _SchemaRule(f"{name}: more than one between the same two", GraphQuery(
                f"{match} WITH {a} AS x, {b} AS y, count(*) AS c WHERE c > 1 "
                "RETURN x, y, c ORDER BY x, y"))  # fmt: skip
            for field, declared in relation.properties.items():
                for description, condition, parameters in _schema_violation_conditions(
                    f"r.`{field}`", declared
                ):
                    yield name, _SchemaRule(f"{name}.{field}: {description}", GraphQuery(
                        f"{match} WHERE {condition} RETURN {a}, {b}, r.`{field}` "
                        f"ORDER BY {a}, {b}", parameters))  # fmt: skip


def _schema_violation_conditions(
    value: str, declared: Property
) -> Iterator[tuple[str, str, dict[str, object]]]:
    if declared.required:
        yield "it is required", f"{value} IS NULL", {}
    if declared.values:
        expectation = f"expected one of {', '.join(declared.values)}"
        yield (
            expectation,
            f"{value} IS NOT NULL AND NOT {value} IN $values",
            {"values": declared.values},
        )
    if declared.minimum is not None:
        yield (
            f"expected at least {declared.minimum:g}",
            f"{value} < $low",
            {"low": float(declared.minimum)},
        )
    if declared.maximum is not None:
        yield (
            f"expected at most {declared.maximum:g}",
            f"{value} > $high",
            {"high": float(declared.maximum)},
        )


def _violation_line(rule: _SchemaRule, rows: GraphRows) -> str:
    count = f"{len(rows.rows):,}{' or more' if rows.more else ''}"
    shown = "; ".join(
        ", ".join("nothing" if value is None else str(value)[:80] for value in row)
        for row in rows.rows[:MAX_SHOWN_ROWS]
    )
    return (
        f"{rule.description} ({count}): {shown}{'; …' if len(rows.rows) > MAX_SHOWN_ROWS else ''}"
    )
