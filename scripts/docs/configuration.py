"""The configuration as Markdown: every key from the schema, the shipped agents, the tools."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from activities.tools import REGISTRY
from config.guard_schema import FieldMatch, Guard, Match
from config.loader import SHIPPED, agent_names, load_agent
from config.schema import AgentFile
from protocol.course import Figures

LISTS = "see `config/defaults.yaml`"


def keys() -> str:
    """Every key an agent's file may have, a section at a time."""
    defaults = yaml.safe_load((SHIPPED / "defaults.yaml").read_text(encoding="utf-8"))
    return "\n".join(_tables("", AgentFile, defaults))


def guards() -> str:
    """Every key a guard may have."""
    # Of the three, the guard itself is the entry of a list.
    parts: dict[str, type[BaseModel]] = {
        "A guard": Guard,
        "`match`": Match,
        "`match.changes`": FieldMatch,
    }
    tables = [_table(title, kind.model_fields, {}) for title, kind in parts.items()]
    return "\n".join(tables)


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


def _tables(name: str, section: type[BaseModel], defaults: dict[str, Any]) -> list[str]:
    """A section's own keys, then its sections; `prices.*` are sections of any name."""
    fields = section.model_fields
    plain = {key: field for key, field in fields.items() if _section(field) is None}
    tables = [_table(f"`{name}`" if name else "The agent", plain, defaults)]
    for key, field in fields.items():
        inner = f"{name}.{key}".lstrip(".")
        if kind := _section(field):
            tables += _tables(inner, kind, defaults.get(key) or {})
        elif get_origin(field.annotation) is dict:
            held = get_args(field.annotation)[1]
            one = get_args(held)[0] if get_origin(held) is list else held
            if isinstance(one, type) and issubclass(one, BaseModel):
                tables += _tables(f"{inner}.*", one, {})
    return tables


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The section that a key holds, also where it may be null."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return None if get_origin(field.annotation) in (dict, list) else kind
    return None


def _table(title: str, fields: dict[str, FieldInfo], defaults: dict[str, Any]) -> str:
    lines = [f"### {title}", "", "| key | takes | default | |", "|---|---|---|---|"]
    for name, field in fields.items():
        default = defaults.get(name, field.get_default(call_default_factory=True))
        lines.append(f"| `{name}` | {_takes(field)} | {_shown(default)} | {field.description} |")
    return "\n".join([*lines, ""])


def _takes(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {value:,}"
        for constraint in [*field.metadata, *_annotations(field.annotation)]
        for attribute, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
        if (value := getattr(constraint, attribute, None)) is not None
    ]
    return " ".join([_named(field.annotation), ", ".join(bounds)]).strip()


def _annotations(kind: Any) -> list[Any]:
    """What a type is annotated with, or the types of a union."""
    if get_origin(kind) is Annotated:
        return [one for held in get_args(kind)[1:] for one in getattr(held, "metadata", ())]
    if get_origin(kind) in (Union, UnionType):
        return [one for part in get_args(kind) for one in _annotations(part)]
    return []


def _named(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _named(get_args(kind)[0])
    if get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return "mapping"
    if get_origin(kind) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        names = ["null" if part is NoneType else _named(part) for part in get_args(kind)]
        return " or ".join(names)
    if get_origin(kind) is list:
        return f"list of {_named(get_args(kind)[0])}"
    if kind is Figures:
        return "nudge, then: whole numbers"
    words = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return words.get(kind, str(kind))


def _shown(default: Any) -> str:
    if default is PydanticUndefined:
        return "required"
    if default in ([], {}):
        return "none"
    if isinstance(default, dict):
        return ", ".join(f"{name} `{value}`" for name, value in default.items())
    if isinstance(default, list):
        return LISTS if any(" " in str(item) for item in default) else f"`{', '.join(default)}`"
    if isinstance(default, BaseModel):
        return "none"
    if default is None or isinstance(default, bool):
        return f"`{str(default).lower().replace('none', 'null')}`"
    return f"`{default}`" if str(default) else "none"
