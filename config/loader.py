"""Reads an agent's configuration from YAML and Markdown.

An agent file is merged over the one it `extends` (another agent's name; without the key, the
defaults): mappings key by key, lists and plain values replaced whole. Every error is a
`Problem` that names the file and the key.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined, TemplateError
from pydantic import ValidationError

from config.schema import AgentConfig, AgentFile, Problem

SHIPPED = Path(__file__).parent
PROMPT_VERSION = 1
_FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_templates = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def agent_names(folder: Path = SHIPPED) -> list[str]:
    """Names of the agents that can be started, sorted."""
    return sorted(path.parent.name for path in (folder / "agents").glob("*/agent.yaml"))


def load_agent(
    name: str, overrides: dict[str, object] | None = None, folder: Path = SHIPPED
) -> AgentConfig:
    """The agent's configuration with everything resolved.

    Args:
        name: The agent.
        overrides: Dotted keys to values, from `--set`; merged last.
        folder: Where `defaults.yaml`, `agents/` and `prompts/` are.

    Raises:
        Problem: unknown agent, broken YAML, wrong key or value, missing or outdated template.
    """
    merged, source = _merged(name, folder, [])
    for key, value in (overrides or {}).items():
        _set(merged, key, value)
    if model := os.environ.get("LONGHAUL_MODEL"):
        _set(merged, "model.name", model)
    if ceiling := os.environ.get("LONGHAUL_MAX_MODEL_CALLS"):
        _set(merged, "limits.model_calls_per_phase", ceiling)
    try:
        checked = AgentFile.model_validate(merged)
    except ValidationError as error:
        raise Problem(f"{source}: {explain(error)}") from None
    roles = checked.prompts.model_dump()
    return AgentConfig(
        **checked.model_dump(),
        name=name,
        templates={role: _prompt(folder / "prompts" / file) for role, file in roles.items()},
        instructions_template=_instructions(name, folder),
    )


def render(template: str, /, **values: object) -> str:
    """Fill a template; an undefined name is a Problem."""
    try:
        return _templates.from_string(template).render(**values)
    except TemplateError as error:
        raise Problem(f"template: {error}") from None


def explain(error: ValidationError) -> str:
    """A validation error in one line: key, what was found, what was expected."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the whole'}: {item['msg'].lower()}"
        + (f", found {_short(item['input'])}" if item["type"] != "missing" else "")
        for item in error.errors()[:5]
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _merged(name: str, folder: Path, seen: list[str]) -> tuple[dict[str, Any], Path]:
    path = folder / "agents" / name / "agent.yaml"
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or not path.is_file():
        known = ", ".join(agent_names(folder))
        raise Problem(f"agent {_short(name)} is not known; the agents are {known}")
    if name in seen:
        raise Problem(f"{path}: extends: circle {' -> '.join([*seen, name])}")
    own = _yaml(path)
    parent = own.pop("extends", None)
    if parent is None:
        base = _yaml(folder / "defaults.yaml")
    elif isinstance(parent, str):
        base, _ = _merged(parent, folder, [*seen, name])
    else:
        raise Problem(f"{path}: extends: expected the name of an agent, found {_short(parent)}")
    return _merge(base, own), path


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        present = result.get(key)
        both = isinstance(present, dict) and isinstance(value, dict)
        result[key] = _merge(present, value) if both else value  # type: ignore[arg-type]
    return result


def _set(merged: dict[str, Any], dotted: str, value: object) -> None:
    *parents, last = dotted.split(".")
    section = merged
    for key in parents:
        inner = section.get(key)
        # A copy, so that what another agent shares with us stays as it is.
        section[key] = dict(inner) if isinstance(inner, dict) else {}
        section = section[key]
    section[last] = value


def _yaml(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Problem(f"{path}: the file is missing") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Problem(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Problem(f"{path}: expected keys and values, found {_short(content)}")
    return content


def _prompt(path: Path) -> str:
    if not path.is_file():
        raise Problem(f"{path}: prompt template is missing")
    text = path.read_text(encoding="utf-8")
    match = _FRONT_MATTER.match(text)
    header = yaml.safe_load(match.group(1)) if match else None
    version = header.get("version") if isinstance(header, dict) else None
    if version != PROMPT_VERSION:
        raise Problem(
            f"{path}: version: expected {PROMPT_VERSION} in the front matter, found {version!r}"
        )
    body = text[match.end() :] if match else text
    try:
        _templates.parse(body)
    except TemplateError as error:
        raise Problem(f"{path}: template: {error}") from None
    return body


def _instructions(name: str, folder: Path) -> str:
    path = folder / "agents" / name / "instructions.md"
    return path.read_text(encoding="utf-8") if path.is_file() else "{{ instructions }}\n"
