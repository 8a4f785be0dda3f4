"""Describes the configuration in Markdown: the schema's keys, the shipped agents, the tools."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from activities.tool_catalogue import REGISTRY
from config.agent_files import agent_names, load_agent
from config.editor_schemas import EXTENDS
from config.layers import SHIPPED
from config.schema.agent import AgentFile
from config.schema.config_data import ConfigData, field_texts
from config.schema.guards import FieldMatch, Guard, Match
from config.schema.model_settings import ModelConfig
from protocol.stuck_thresholds import PatternThresholds
from scripts.docs.markdown import heading_anchor, markdown_table

LISTS = "see `config/defaults.yaml`"
KEY = ("key", "takes", "default", "")
Row = tuple[str, ...]


def agent_keys_reference_table() -> str:
    """Describe every key of an agent's file, section by section."""
    defaults = yaml.safe_load((SHIPPED / "defaults.yaml").read_text(encoding="utf-8"))
    return "\n".join(_section_tables("", AgentFile, defaults, {}))


def guard_keys_reference_table() -> str:
    """Describe every key of a guard."""
    # Guards are list entries, so the schema has no section for them.
    parts: dict[str, type[BaseModel]] = {
        "A guard": Guard,
        "`match`": Match,
        "`match.changes`": FieldMatch,
    }
    return "\n".join(
        line
        for title, kind in parts.items()
        for line in [f"### {title}", "", *markdown_table(KEY, _key_rows(_fields(kind), {})), ""]
    )


def agents_reference_table() -> str:
    """List the shipped agents."""
    rows = []
    for name in agent_names():
        agent = load_agent(name)
        needs = "yes" if agent.needs_documents else "no"
        rows.append((f"`{name}`", agent.description, ", ".join(agent.tools), needs))
    return "\n".join([*markdown_table(("agent", "does", "tools", "needs documents"), rows), ""])


def tools_reference_table() -> str:
    """List the tools by group."""
    rows = []
    for entry in sorted(REGISTRY.values(), key=lambda entry: entry.group):
        phases = "both" if len(entry.phases) == 2 else entry.phases[0]
        rows.append((entry.group, f"`{entry.signature}`", phases, entry.summary))
    return "\n".join([*markdown_table(("group", "tool", "phases", "does"), rows), ""])


def _section_tables(
    name: str, section: type[BaseModel], defaults: dict[str, Any], described: dict[str, list[Row]]
) -> list[str]:
    """Describe a section's own keys, then its sections.

    `prices.*` are sections with any name; `verifiers[]` are the entries of a list.

    Args:
        name: Dotted name, as in messages; empty for the whole file.
        defaults: Its values in `defaults.yaml`.
        told: Earlier tables by heading, none of which is repeated.
    """
    fields = _fields(section)
    rows = _key_rows(
        {key: field for key, field in fields.items() if not _section_of_key(field)}, defaults
    )
    rows = rows if name else [("`extends`", "text", "none", EXTENDS["description"]), *rows]
    heading = f"`{name}`" if name else "The agent"
    if (
        first := "`model`"
        if section is ModelConfig and name != "model"
        else _same_keys_heading(rows, described)
    ):
        lines = [f"The keys of [{first}](#{heading_anchor(first)}).", ""]
    else:
        described[heading] = rows
        lines = [*markdown_table(KEY, rows), ""] if rows else []
    for key, field in fields.items():
        inner = f"{name}.{key}".lstrip(".")
        for suffix, kind in _configuration_sections_below(field):
            below = (defaults.get(key) or {}) if not suffix else {}
            lines += [f"### `{inner}{suffix}`", ""]
            if not suffix and kind is not ModelConfig:
                lines += _section_introduction(field, defaults.get(key))
            lines += _section_tables(f"{inner}{suffix}", kind, below, described)
    return lines if name else [f"### {heading}", "", *lines]


def _fields(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a section, with their descriptions."""
    texts = field_texts(section) if issubclass(section, ConfigData) else {}
    for name, text in texts.items():
        section.model_fields[name].description = text
    return section.model_fields


def _same_keys_heading(rows: list[Row], described: dict[str, list[Row]]) -> str:
    """Return the heading of an earlier table with the same keys and defaults; empty if there is
    none.
    """
    return next((heading for heading, others in described.items() if rows and others == rows), "")


def _section_introduction(field: FieldInfo, default: object) -> list[str]:
    """Return what a section is for, and whether it may be left out."""
    lines = [field.description, ""] if field.description else []
    optional = NoneType in get_args(field.annotation) and default is None
    return [*lines, "Off unless the section is there; then:", ""] if optional else lines


def _configuration_sections_below(field: FieldInfo) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the sections below a key, with the suffix of their names."""
    if kind := _section_of_key(field):
        yield "", kind
        return
    suffix, inner = "", field.annotation
    while get_origin(inner) in (dict, list):
        suffix += ".*" if get_origin(inner) is dict else "[]"
        inner = get_args(inner)[-1]
    if suffix and _is_config_section(inner):
        yield suffix, inner  # type: ignore[misc]


def _section_of_key(field: FieldInfo) -> type[BaseModel] | None:
    """Return the section of a key, which may also be null; None for other values, such as
    thresholds.
    """
    if get_origin(field.annotation) in (dict, list):
        return None
    kinds = (field.annotation, *get_args(field.annotation))
    return next(
        (kind for kind in kinds if _is_config_section(kind) and kind is not PatternThresholds), None
    )


def _is_config_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _key_rows(fields: dict[str, FieldInfo], defaults: dict[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for name, field in fields.items():
        default = defaults.get(name, field.get_default(call_default_factory=True))
        rows.append(
            (
                f"`{name}`",
                _describe_config_values(field),
                _shown_default(default),
                field.description or "",
            )
        )
    return rows


def _describe_config_values(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {value:,}"
        for constraint in [*field.metadata, *_configuration_annotations(field.annotation)]
        for attribute, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
        if (value := getattr(constraint, attribute, None)) is not None
    ]
    return " ".join([_describe_config_type(field.annotation), ", ".join(bounds)]).strip()


def _configuration_annotations(kind: Any) -> list[Any]:
    """Return the annotations of a type, or of the types in a union."""
    if get_origin(kind) is Annotated:
        return [
            annotation
            for info in get_args(kind)[1:]
            for annotation in getattr(info, "metadata", ())
        ]
    if get_origin(kind) in (Union, UnionType):
        return [
            annotation for part in get_args(kind) for annotation in _configuration_annotations(part)
        ]
    return []


def _describe_config_type(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _describe_config_type(get_args(kind)[0])
    if kind is PatternThresholds:
        return "nudge, then: whole numbers"
    if get_origin(kind) is dict or _is_config_section(kind):
        return "mapping"
    if get_origin(kind) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        names = [
            "null" if part is NoneType else _describe_config_type(part) for part in get_args(kind)
        ]
        return " or ".join(names)
    if get_origin(kind) is list:
        item = get_args(kind)[0]
        return f"list of {'mappings' if _is_config_section(item) else _describe_config_type(item)}"
    if get_origin(kind) is tuple:
        return f"pairs of {_describe_config_type(get_args(kind)[0])}"
    words = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return words.get(kind, str(kind))


def _shown_default(default: Any) -> str:
    if default is PydanticUndefined:
        return "required"
    if default in ([], {}):
        return "none"
    if isinstance(default, PatternThresholds):
        default = default.model_dump()
    if isinstance(default, dict):
        return ", ".join(f"{name} `{value}`" for name, value in default.items())
    if isinstance(default, list):
        return LISTS if any(" " in str(item) for item in default) else f"`{', '.join(default)}`"
    if isinstance(default, BaseModel):
        return "none"
    if default is None or isinstance(default, bool):
        return f"`{str(default).lower().replace('none', 'null')}`"
    return f"`{default}`" if str(default) else "none"
