"""Prompt templates: read, checked for what they name, and filled."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables

from config.files import parse_yaml, read_text
from config.schema import Problem

PROMPT_VERSION = 2
OFFERED = frozenset(
    {
        *("agent", "description", "number", "kind", "name", "bootstrap", "issue", "instructions"),
        *("forked", "min_todos", "max_todos", "workspace_tokens", "workspace", "summary", "plan"),
        *("archive_name", "archive", "deferred", "scope", "away", "traces", "experience"),
    }
)
"""Names that templates may use (`activities.phases.orientation`)."""
_FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_templates = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def render(template: str, /, **values: object) -> str:
    """Fill a template; an undefined name is a Problem."""
    try:
        return _compiled(template).render(**values)
    except TemplateError as error:
        raise Problem(f"template: {error}") from None


def read_prompt(path: Path) -> str:
    """A file of `prompts/`, without its front matter. Raises Problem."""
    if not path.is_file():
        raise Problem(f"{path}: prompt template is missing")
    text = read_text(path)
    match = _FRONT_MATTER.match(text)
    header = None
    if match:
        header = parse_yaml(match.group(1), f"{path}: the front matter is not valid YAML")
    version = header.get("version") if isinstance(header, dict) else None
    if version != PROMPT_VERSION:
        raise Problem(
            f"{path}: version: expected {PROMPT_VERSION} in the front matter, found {version!r}"
        )
    return _checked(path, text[match.end() :] if match else text)


def read_instructions(path: Path) -> str:
    """An agent's `instructions.md`; without one the job's instructions stand alone."""
    return _checked(path, read_text(path)) if path.is_file() else "{{ instructions }}\n"


def _checked(path: Path, template: str) -> str:
    """The template, if it parses and names only what some template is given."""
    try:
        unknown = _named(template) - OFFERED
    except TemplateError as error:
        raise Problem(f"{path}: template: {error}") from None
    if unknown:
        raise Problem(
            f"{path}: template: {', '.join(sorted(unknown))} is not offered; the names are "
            f"{', '.join(sorted(OFFERED))}"
        )
    return template


# Every job that starts needs the same few dozen.
@lru_cache(256)
def _compiled(template: str) -> Template:
    return _templates.from_string(template)


@lru_cache(256)
def _named(template: str) -> frozenset[str]:
    return frozenset(find_undeclared_variables(_templates.parse(template)))
