"""Reads guard files. Each error names the file, the line, and what was expected."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.constructor import SafeConstructor

from config.agent_inheritance import MergedAgentFile, merge_agent
from config.layers import Layers, configuration_layers
from config.regexes import compile_cached_regex
from config.schema.agent import AgentConfig, ConfigError
from config.schema.guards import FieldMatch, Guard, GuardPoint, Match
from config.yaml_files import YAML, read_yaml_text
from protocol.validation_errors import short_error_value

CALLS: tuple[GuardPoint, ...] = ("before_tool", "after_tool")
ENDS: tuple[GuardPoint, ...] = ("todo_complete", "phase_end", "job_complete", "subagent_end")
HOLDS_AT: dict[str, tuple[GuardPoint, ...]] = {
    "tool": CALLS + ENDS,
    "arguments": CALLS + ENDS,
    "path": CALLS,
    "reads_lines": CALLS,
    "changes": ("before_tool",),
}
"""Keys of a match that need a call, with the points whose calls have them."""
KEYS: dict[str, type[BaseModel]] = {"match": Match, "changes": FieldMatch}
_templates = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
)
Place = tuple[str | int, ...]


def agent_guard_files(agent: AgentConfig) -> dict[str, Path]:
    """The file of each guard in an agent's configuration, by name. Raises ConfigError."""
    layers = configuration_layers()
    agents = merge_agent(agent.name, layers, []).agents
    return {guard.name: path for path, guard in _locate_guards(agent.guards, agents, layers)}


def load_agent_guards(names: list[str], merged: MergedAgentFile, layers: Layers) -> list[Guard]:
    try:
        return [guard for _, guard in _locate_guards(names, merged.agents, layers)]
    except ConfigError as problem:
        # A wrong name in `guards` is an error of the agent's file; others name their guard file.
        where = f"{merged.files[0][0]}: " if str(problem).startswith("guards: ") else ""
        raise ConfigError(f"{where}{problem}") from None


def _locate_guards(names: list[str], agents: list[str], layers: Layers) -> list[tuple[Path, Guard]]:
    """The guards of the named files, each with its file: that of the nearest of the agents.

    Raises ConfigError: a file is missing or invalid; the message names file and line.
    """
    places = [*(f"agents/{agent}/guards" for agent in dict.fromkeys(agents)), "guards"]
    folders = [layer / place for place in places for layer in layers.folders]
    guards: dict[str, tuple[Path, Guard]] = {}
    for name in names:
        path = next((p for f in folders if (p := f / f"{name}.yaml").is_file()), None)
        if path is None:
            known = sorted({p.stem for f in folders for p in f.glob("*.yaml")})
            raise ConfigError(
                f"guards: found {name!r}, expected names of guard files: {', '.join(known)}"
            )
        for line, guard in read_guards(path):
            if guard.name in guards:
                other = guards[guard.name][0]
                raise ConfigError(
                    f"{path}:{line}: name: found {guard.name!r}, which {other} uses as well; "
                    "expected a name of its own"
                )
            guards[guard.name] = (path, guard)
    return [*guards.values()]


def read_guards(path: Path) -> list[tuple[int, Guard]]:
    """The guards of a file, each with its line. Raises ConfigError."""
    text = read_yaml_text(path)
    try:
        node = yaml.compose(text, Loader=YAML)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The parser reports something missing at the end on the line after it.
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        raise ConfigError(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path}:1: not valid YAML: {' '.join(str(error).split())}") from None
    if node is None:
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise ConfigError(
            f"{path}:{_guard_file_line(node)}: expected a list of guards, found "
            f"{_describe_yaml_node(node)}"
        )
    return [(_guard_file_line(item), _parse_guard(path, item)) for item in node.value]


def _parse_guard(path: Path, node: yaml.Node) -> Guard:
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            f"{path}:{_guard_file_line(node)}: expected a guard with name, point and decision, "
            f"found {_describe_yaml_node(node)}"
        )
    read = _GuardReader(path)
    try:
        content = read.read_value(node, ())
    except RecursionError:
        raise ConfigError(
            f"{path}:{_guard_file_line(node)}: holds itself (&name and *name)"
        ) from None
    try:
        guard = Guard.model_validate(content)
    except ValidationError as error:
        # Unknown keys come first: a misspelt key also causes a missing one.
        wrong = sorted(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
        description = "; ".join(read.locate_error(item) for item in wrong[:3])
        raise ConfigError(description) from None
    for key, points in HOLDS_AT.items():
        value = getattr(guard.match, key)
        if value and value != ["*"] and guard.point not in points:
            # The guard would never act, and nobody would notice.
            raise ConfigError(
                f"{path}:{read.line_at(('match', key))}: match.{key}: holds at no {guard.point}, "
                f"expected the point {' or '.join(points)}"
            )
    for where, text in _guard_template_texts(guard.rewrite, ("rewrite",)):
        try:
            _templates.from_string(text)
        except TemplateError as error:
            line = read.line_at(where)
            raise ConfigError(f"{path}:{line}: {_guard_key(where)}: template: {error}") from None
    if guard.match.random is not None and not any(
        "value" in compile_cached_regex(text).groupindex for text in guard.match.content
    ):
        line = read.line_at(("match", "random"))
        raise ConfigError(
            f"{path}:{line}: match.random: expected a content pattern with a group named value, "
            "such as (?P<value>\\S+)"
        )
    return guard


def render_guard_argument(template: object, names: dict[str, Any]) -> object:
    """Render a new argument from its template; values other than text are returned unchanged.

    Raises ConfigError: the template uses an undefined name.
    """
    if not isinstance(template, str):
        return template
    try:
        return _templates.from_string(template).render(names)
    except TemplateError as error:
        raise ConfigError(f"the template {template!r} cannot be filled: {error}") from None


def _guard_template_texts(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _guard_template_texts(inner, (*place, key))


@dataclass
class _GuardReader:
    """Reads one guard's YAML nodes into values and remembers the line of each."""

    path: Path
    lines: dict[Place, int] = field(default_factory=dict)
    scalars: SafeConstructor = field(default_factory=SafeConstructor)

    def read_value(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, _guard_file_line(node))
        if isinstance(node, yaml.MappingNode):
            mapping: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                if key in mapping:
                    raise ConfigError(
                        f"{self.path}:{_guard_file_line(key_node)}: "
                        f"{_guard_key((*place, key))}: found twice, "
                        "expected once"
                    )
                self.lines[(*place, key)] = _guard_file_line(key_node)
                mapping[key] = self.read_value(value_node, (*place, key))
            return mapping
        if isinstance(node, yaml.SequenceNode):
            return [self.read_value(item, (*place, n)) for n, item in enumerate(node.value)]
        try:
            return self.scalars.construct_object(node)
        # The parser raises any exception: `!!int x` is a ValueError, `!!bool x` a KeyError.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"{self.path}:{_guard_file_line(node)}: {_guard_key(place)}: "
                f"{short_error_value(node.value)} "
                "cannot be read "
                f"({reason}); if it is a text, put it in quotation marks"
            ) from None

    def line_at(self, place: Place) -> int:
        """The line of the place, or of its nearest parent."""
        while place not in self.lines:
            place = place[:-1]
        return self.lines[place]

    def locate_error(self, error: ErrorDetails) -> str:
        """`guards/a.yaml:7: match.tol: found 'tol', expected one of tool, path, …`."""
        place = error["loc"]
        where = f"{self.path}:{self.line_at(place)}"
        if error["type"] == "extra_forbidden":
            known = KEYS.get(str(place[-2]), Guard) if len(place) > 1 else Guard
            return (
                f"{where}: {_guard_key(place)}: found the unknown key {place[-1]!r}, "
                "expected one of "
                f"{', '.join(known.model_fields)}"
            )
        if error["type"] == "missing":
            return f"{where}: {_guard_key(place)}: found nothing, expected {place[-1]}"
        message = error["msg"].removeprefix("Value error, ")
        if not place:
            return f"{where}: {message}"
        message = message.replace("Input should be", "expected")
        return f"{where}: {_guard_key(place)}: found {short_error_value(error['input'])}, {message}"


def _guard_key(place: Place) -> str:
    return ".".join(map(str, place))


def _guard_file_line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def _describe_yaml_node(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    return "a list" if isinstance(node, yaml.SequenceNode) else repr(str(node.value)[:60])
