"""Reads, checks and renders prompt templates."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables

from config.schema.agent import ConfigError
from config.yaml_files import parse_yaml, read_yaml_text

PROMPT_VERSION = 2
_SYSTEM = frozenset(
    {
        *("agent", "description", "number", "min_todos", "max_todos", "workspace_tokens"),
        *("deferred", "ends_job", "later", "most_calls", "skills", "workspace"),
    }
)
_ORIENTATION = frozenset(
    {
        *("begins", "forked", "number", "kind", "name", "place", "description", "issue", "away"),
        *("restored", "can_look", "section"),
        *("experience", "traces", "scope", "instructions", "summary", "plan", "archive_name"),
        "archive",
    }
)
OFFERED = {"strategic": _SYSTEM, "tactical": _SYSTEM, "orientation": _ORIENTATION}
"""Names that templates may use, by role (`activities.phases.orientation`); other prompts are sent
unchanged."""
_INSTRUCTIONS = frozenset({"instructions"})
_FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_templates = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def render_template(template: str, /, **values: object) -> str:
    """Render a template. Raises ConfigError for an undefined name or a failing expression."""
    try:
        return _compile_template(template).render(**values)
    except TemplateError as error:
        raise ConfigError(f"template: {error}") from None
    except Exception as error:  # its expressions may raise anything
        raise ConfigError(f"template: {type(error).__name__}: {error}") from None


def read_prompt_template(path: Path, role: str = "") -> str:
    """A file of `prompts/`, without its front matter.

    Args:
        role: The prompt's role in the agent's file; without one, names of all roles are allowed.

    Raises:
        ConfigError: it is missing or outdated, or uses an undefined name.
    """
    if not path.is_file():
        key = "judge.prompt" if role == "judge" else f"prompts.{role}"
        raise ConfigError(f"{path}: prompt template is missing; {key} names it")
    text = read_yaml_text(path)
    match = _FRONT_MATTER.match(text)
    header = None
    if match:
        # The line of the dashes counts.
        header = parse_yaml(f"\n{match.group(1)}", str(path))
    version = header.get("version") if isinstance(header, dict) else None
    if version != PROMPT_VERSION:
        raise ConfigError(
            f"{path}: version: expected {PROMPT_VERSION} in the front matter, found {version!r}"
        )
    offered = OFFERED.get(role, frozenset()) if role else _SYSTEM | _ORIENTATION
    return _check_template_names(path, text[match.end() :] if match else text, offered)


def read_instructions_template(paths: Sequence[Path]) -> str:
    """The first existing `instructions.md`; without one, a template of the job's instructions.

    Args:
        paths: The agent's own file, then those of the agents that it extends, the nearest first.
    """
    for path in paths:
        if path.is_file():
            return _check_template_names(path, read_yaml_text(path), _INSTRUCTIONS)
    return "{{ instructions }}\n"


def _check_template_names(path: Path, template: str, offered: frozenset[str]) -> str:
    """Return the template if it parses and uses only offered names. Raises ConfigError."""
    try:
        unknown = _template_names(template) - offered
    except TemplateError as error:
        raise ConfigError(f"{path}: template: {error}") from None
    if unknown:
        raise ConfigError(
            f"{path}: template: {', '.join(sorted(unknown))} is not offered; the names are "
            f"{', '.join(sorted(offered)) or 'none'}"
        )
    return template


# All starting jobs need the same few dozen templates.
@lru_cache(256)
def _compile_template(template: str) -> Template:
    return _templates.from_string(template)


@lru_cache(256)
def _template_names(template: str) -> frozenset[str]:
    return frozenset(find_undeclared_variables(_templates.parse(template)))
