"""Values that override an agent's file, by dotted key."""

from __future__ import annotations

from typing import Any

from config.agent_inheritance import merge_mappings


def parse_agent_override(text: str) -> int | str:
    """Parse an integer; return other text unchanged, for the schema to refuse."""
    return int(text) if text.isdecimal() and len(text) < 20 else text


def overridden_agent_value(overrides: dict[str, object], key: str) -> object:
    """The overriding value of a dotted key, in nested or dotted form; None without one."""
    content: Any = {}
    for name, value in overrides.items():
        set_agent_key(content, name, value)
    for part in key.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content


def set_agent_key(merged: dict[str, Any], dotted: str, value: object) -> None:
    """Set the value of a dotted key."""
    *parents, last = dotted.split(".")
    section = merged
    for key in parents:
        inner = section.get(key)
        # A copy, since other agents share the mapping.
        section[key] = dict(inner) if isinstance(inner, dict) else {}
        section = section[key]
    # As in files, a mapping is merged key by key.
    section[last] = merge_mappings(section, {last: value})[last]
