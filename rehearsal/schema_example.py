"""A value that fits a JSON Schema, as far as the rehearsal model needs one."""

from typing import Any

SCALARS: dict[str, Any] = {"boolean": False, "null": None, "integer": 0, "number": 0}
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "tea@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
MOST_NESTED = 20


def example_value(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Return a small value that fits the schema, unless it needs a pattern, a negation or the like.

    Args:
        root: The schema that references are in; the schema itself if left out.
        depth: How far it is nested, as references can go in circles.
    """
    root = schema if root is None else root
    if not isinstance(schema, dict) or depth > MOST_NESTED:
        return None
    schema = _resolve_schema(schema, root)
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or (kind is None and ("properties" in schema or "required" in schema)):
        properties = schema.get("properties") or {}
        return {
            name: example_value(properties.get(name, {}), root, depth + 1)
            for name in schema.get("required") or []
        }
    if kind == "array":
        first = list(schema.get("prefixItems") or [])
        more = max(0, int(schema.get("minItems") or 0) - len(first))
        items = [*first, *[schema.get("items", {})] * more]
        return [example_value(item, root, depth + 1) for item in items]
    if kind in ("integer", "number"):
        return _example_number(schema, is_integer=kind == "integer")
    if kind in SCALARS:
        return SCALARS[kind]
    text = FORMATS.get(schema.get("format", ""), "rehearsal")
    return text.ljust(int(schema.get("minLength") or 0), ".")[: schema.get("maxLength")]


def _resolve_schema(schema: dict[str, Any], root: Any) -> dict[str, Any]:
    """Return the schema with the one that it refers to, and the first of its alternatives."""
    parts = [*(schema.get("allOf") or []), *(schema.get("anyOf") or schema.get("oneOf") or [])[:1]]
    resolved = dict(schema)
    for key in ("allOf", "anyOf", "oneOf", "$ref"):
        resolved.pop(key, None)
    if (reference := str(schema.get("$ref") or "")).startswith("#"):
        target = root
        for name in filter(None, reference[1:].split("/")):
            target = target.get(name.replace("~1", "/").replace("~0", "~"), {})
        if target is not schema:
            parts.append(target)
    for part in parts:
        if isinstance(part, dict):
            inner = part if part is schema else _resolve_schema(part, root)
            resolved = {
                **inner,
                **resolved,
                "properties": {**inner.get("properties", {}), **resolved.get("properties", {})},
                "required": [*inner.get("required", []), *resolved.get("required", [])],
            }
    return {key: value for key, value in resolved.items() if value not in ({}, [])}


def _example_number(schema: dict[str, Any], *, is_integer: bool) -> int | float:
    step = schema.get("multipleOf") or 1
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    value = 0 if low is None else low
    if low is None and high is not None and high < 0:
        value = high
    value = -(-value // step) * step
    if value == schema.get("exclusiveMinimum"):
        value += step
    if value == schema.get("exclusiveMaximum"):
        value -= step
    return int(value) if is_integer else value
