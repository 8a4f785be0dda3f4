"""Text that shows the graph and its schema to the model."""

import json
from collections.abc import Mapping

from activities.requirements.graph.interface import GraphRows
from config.schema.graph import GraphSchema, Property

SHOWN_ROWS = 200
SHOWN_CHARACTERS = 15_000


def render_rows(result: GraphRows, *, keep_order: bool) -> str:
    """Render the rows as one JSON list per line."""
    lines = [json.dumps(row, ensure_ascii=False) for row in result.rows]
    if not keep_order:
        lines.sort()
    shown_lines: list[str] = []
    size = 0
    for line in lines[:SHOWN_ROWS]:
        size += len(line)
        if size > SHOWN_CHARACTERS and shown_lines:
            break
        shown_lines.append(line)
    count = f"{len(lines):,}{' or more' if result.more else ''} rows"
    head = f"{count}; columns {json.dumps(result.columns, ensure_ascii=False)}"
    if len(shown_lines) < len(lines) or result.more:
        shown_lines.append(
            f"[TRUNCATED to {len(shown_lines)} rows; use ORDER BY with SKIP and LIMIT]"
        )
    return "\n".join([head, *shown_lines])


def graph_row_names(row: list[object]) -> list[str]:
    """Return the names in a row of keys, names and lists of names; at least one empty name."""
    return [
        str(name)
        for value in row
        if value
        for name in (value if isinstance(value, list) else [value])
    ] or [""]


def render_node(kind: str, row: list[object]) -> str:
    """Render a node as its key with its other names."""
    first, *others = graph_row_names(row)
    aliases = f" ({'; '.join(name[:120] for name in others[:4])})" if others else ""
    return f"{kind} {first}{aliases}"


def render_graph_properties(entity: object) -> str:
    """Render the properties of a node or relation, long values cut."""
    if not isinstance(entity, dict):
        return str(entity)
    visible = {k: v[:400] if isinstance(v, str) else v for k, v in entity.items() if k != "_label"}
    return json.dumps(visible, ensure_ascii=False)


def describe_properties(declared: Mapping[str, Property]) -> list[str]:
    """Describe each declared property on one line."""
    lines = []
    for name, prop in declared.items():
        facts = [prop.type, *(["required"] if prop.required else [])]
        if prop.values:
            facts.append("one of " + ", ".join(prop.values))
        if prop.minimum is not None or prop.maximum is not None:
            facts.append(f"{prop.minimum} to {prop.maximum}")
        lines.append(
            f"  {name}: {', '.join(facts)}" + (f". {prop.description}" * bool(prop.description))
        )
    return lines


def render_graph_schema_hint(schema: GraphSchema) -> str:
    """List the kinds in the schema, for a model that used an unknown one."""
    nodes = "; ".join(f"{n}({', '.join(k.properties)})" for n, k in schema.nodes.items())
    return (
        f"Nodes: {nodes}. Relations: {', '.join(schema.relations)}. "
        "get_database_schema names the rest."
    )
