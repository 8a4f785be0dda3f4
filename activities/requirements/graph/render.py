"""What of the graph and its schema is told to the model, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping

from activities.requirements.graph.interface import Rows
from config.schema.graph import GraphSchema, Property

SHOWN_ROWS = 200
SHOWN_CHARACTERS = 15_000


def table(found: Rows, *, keep_order: bool) -> str:
    """The rows, one JSON list a line."""
    lines = [json.dumps(row, ensure_ascii=False) for row in found.rows]
    if not keep_order:
        lines.sort()
    kept: list[str] = []
    size = 0
    for line in lines[:SHOWN_ROWS]:
        size += len(line)
        if size > SHOWN_CHARACTERS and kept:
            break
        kept.append(line)
    count = f"{len(lines):,}{' or more' if found.more else ''} rows"
    head = f"{count}; columns {json.dumps(found.columns, ensure_ascii=False)}"
    if len(kept) < len(lines) or found.more:
        kept.append(f"[TRUNCATED to {len(kept)} rows; use ORDER BY with SKIP and LIMIT]")
    return "\n".join([head, *kept])


def texts(row: list[object]) -> list[str]:
    """The names in a row of keys, names and lists of names; at least an empty one."""
    return [
        str(name) for held in row if held for name in (held if isinstance(held, list) else [held])
    ] or [""]


def named(kind: str, row: list[object]) -> str:
    """A node by its key, with its other names."""
    first, *others = texts(row)
    told = f" ({'; '.join(name[:120] for name in others[:4])})" if others else ""
    return f"{kind} {first}{told}"


def shown(entity: object) -> str:
    """The properties of a node or relation, long ones cut."""
    if not isinstance(entity, dict):
        return str(entity)
    held = {k: v[:400] if isinstance(v, str) else v for k, v in entity.items() if k != "_label"}
    return json.dumps(held, ensure_ascii=False)


def properties(declared: Mapping[str, Property]) -> list[str]:
    """Properties of the schema, a line each."""
    lines = []
    for name, held in declared.items():
        told = [held.type, *(["required"] if held.required else [])]
        if held.values:
            told.append("one of " + ", ".join(held.values))
        if held.minimum is not None or held.maximum is not None:
            told.append(f"{held.minimum} to {held.maximum}")
        lines.append(
            f"  {name}: {', '.join(told)}" + (f". {held.description}" * bool(held.description))
        )
    return lines


def hint(schema: GraphSchema) -> str:
    """The kinds there are, for who asked for one that there is not."""
    nodes = "; ".join(f"{n}({', '.join(k.properties)})" for n, k in schema.nodes.items())
    return (
        f"Nodes: {nodes}. Relations: {', '.join(schema.relations)}. "
        "get_database_schema tells the rest."
    )
