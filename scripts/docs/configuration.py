"""The configuration as Markdown: every key from the schema, the shipped agents, the tools."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from activities.tools import REGISTRY
from config.loader import SHIPPED, agent_names, load_agent
from config.schema import AgentFile

LISTS = "see `config/defaults.yaml`"


def keys() -> str:
    """Every key an agent's file may have, a section at a time."""
    defaults = yaml.safe_load((SHIPPED / "defaults.yaml").read_text(encoding="utf-8"))
    plain = {n: f for n, f in AgentFile.model_fields.items() if _section(f) is None}
    parts = [_table("The agent", plain, defaults)]
    for name, field in AgentFile.model_fields.items():
        if section := _section(field):
            parts.append(_table(f"`{name}`", section.model_fields, defaults.get(name) or {}))
    return "\n".join(parts)


def agents() -> str:
    """The agents that ship."""
    lines = ["| agent | does | tools | needs documents |", "|---|---|---|---|"]
    for name in agent_names():
        agent = load_agent(name)
        needs = "yes" if agent.needs_documents else "no"
        lines.append(f"| `{name}` | {agent.description} | {', '.join(agent.tools)} | {needs} |")
    return "\n".join([*lines, ""])


def tools() -> str:
    """The tools by group."""
    lines = ["| group | tool | phases | does |", "|---|---|---|---|"]
    for entry in sorted(REGISTRY.values(), key=lambda entry: entry.group):
        phases = "both" if len(entry.phases) == 2 else entry.phases[0]
        lines.append(f"| {entry.group} | `{entry.signature}` | {phases} | {entry.summary} |")
    return "\n".join([*lines, ""])


def _section(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _table(title: str, fields: dict[str, FieldInfo], defaults: dict[str, Any]) -> str:
    lines = [f"### {title}", "", "| key | takes | default | |", "|---|---|---|---|"]
    for name, field in fields.items():
        default = defaults.get(name, field.get_default(call_default_factory=True))
        lines.append(f"| `{name}` | {_takes(field)} | {_shown(default)} | {field.description} |")
    return "\n".join([*lines, ""])


def _takes(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {value:,}"
        for constraint in field.metadata
        for attribute, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
        if (value := getattr(constraint, attribute, None)) is not None
    ]
    return " ".join([_named(field.annotation), ", ".join(bounds)]).strip()


def _named(kind: Any) -> str:
    if get_origin(kind) is UnionType:
        names = ["null" if part is NoneType else _named(part) for part in get_args(kind)]
        return " or ".join(names)
    if get_origin(kind) is list:
        return f"list of {_named(get_args(kind)[0])}"
    words = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return words.get(kind, str(kind))


def _shown(default: Any) -> str:
    if default in ([], {}):
        return "none"
    if isinstance(default, list):
        return LISTS if any(" " in str(item) for item in default) else f"`{', '.join(default)}`"
    if default is None or isinstance(default, bool):
        return f"`{str(default).lower().replace('none', 'null')}`"
    return f"`{default}`" if str(default) else "none"
