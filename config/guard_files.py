"""Reads guard files. Every mistake is told with the file, the line, and what was expected."""

from __future__ import annotations

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

from config.files import YAML, read_text
from config.patterns import compiled
from config.schema.agent import Problem
from config.schema.guards import FieldMatch, Guard, Match, Point
from protocol.validation_errors import short_repr

CALLS: tuple[Point, ...] = ("before_tool", "after_tool")
ENDS: tuple[Point, ...] = ("todo_complete", "phase_end", "job_complete", "subagent_end")
HOLDS_AT: dict[str, tuple[Point, ...]] = {
    "tool": CALLS + ENDS,
    "arguments": CALLS + ENDS,
    "path": CALLS,
    "reads_lines": CALLS,
    "changes": ("before_tool",),
}
"""Keys of a match that need a call, and the points at which there is one that has them."""
KEYS: dict[str, type[BaseModel]] = {"match": Match, "changes": FieldMatch}
_templates = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
)
Place = tuple[str | int, ...]


def load_guards(names: list[str], folders: list[Path]) -> list[Guard]:
    """The guards of the named files, each looked for in these folders, the first one counts.

    Raises:
        Problem: with file and line.
    """
    found: dict[str, tuple[Path, Guard]] = {}
    for name in names:
        path = next((p for f in folders if (p := f / f"{name}.yaml").is_file()), None)
        if path is None:
            known = sorted({p.stem for f in folders for p in f.glob("*.yaml")})
            raise Problem(
                f"guards: found {name!r}, expected names of guard files: {', '.join(known)}"
            )
        for line, guard in read_guards(path):
            if guard.name in found:
                other = found[guard.name][0]
                raise Problem(
                    f"{path}:{line}: name: found {guard.name!r}, which {other} uses as well; "
                    "expected a name of its own"
                )
            found[guard.name] = (path, guard)
    return [guard for _, guard in found.values()]


def read_guards(path: Path) -> list[tuple[int, Guard]]:
    """The guards of a file, each with its line. Raises Problem."""
    text = read_text(path)
    try:
        node = yaml.compose(text, Loader=YAML)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # What is missing at the end is reported after it.
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        raise Problem(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise Problem(f"{path}:1: not valid YAML: {' '.join(str(error).split())}") from None
    if node is None:
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise Problem(f"{path}:{_line(node)}: expected a list of guards, found {_kind(node)}")
    return [(_line(item), _guard(path, item)) for item in node.value]


def _guard(path: Path, node: yaml.Node) -> Guard:
    if not isinstance(node, yaml.MappingNode):
        raise Problem(
            f"{path}:{_line(node)}: expected a guard with name, point and decision, "
            f"found {_kind(node)}"
        )
    read = _Read(path)
    try:
        content = read.value(node, ())
    except RecursionError:
        raise Problem(f"{path}:{_line(node)}: holds itself (&name and *name)") from None
    try:
        guard = Guard.model_validate(content)
    except ValidationError as error:
        # A misspelt key is the cause of the one that is missing.
        wrong = sorted(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
        told = "; ".join(read.locate_error(item) for item in wrong[:3])
        raise Problem(told) from None
    for key, points in HOLDS_AT.items():
        wanted = getattr(guard.match, key)
        if wanted and wanted != ["*"] and guard.point not in points:
            # Such a guard would never act, and nobody would know.
            raise Problem(
                f"{path}:{read.line(('match', key))}: match.{key}: holds at no {guard.point}, "
                f"expected the point {' or '.join(points)}"
            )
    for where, text in _texts(guard.rewrite, ("rewrite",)):
        try:
            _templates.from_string(text)
        except TemplateError as error:
            line = read.line(where)
            raise Problem(f"{path}:{line}: {_dotted(where)}: template: {error}") from None
    if guard.match.random is not None and not any(
        "value" in compiled(text).groupindex for text in guard.match.content
    ):
        line = read.line(("match", "random"))
        raise Problem(
            f"{path}:{line}: match.random: expected a content pattern with a group named value, "
            "such as (?P<value>\\S+)"
        )
    return guard


def render_argument(template: object, names: dict[str, Any]) -> object:
    """A new argument from its template; what is no text is taken as it is.

    Raises:
        Problem: the template names what is not there.
    """
    if not isinstance(template, str):
        return template
    try:
        return _templates.from_string(template).render(names)
    except TemplateError as error:
        raise Problem(f"the template {template!r} cannot be filled: {error}") from None


def _texts(value: object, at: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*at, key))


@dataclass
class _Read:
    """One guard's nodes as values, with the line of each."""

    path: Path
    lines: dict[Place, int] = field(default_factory=dict)
    scalars: SafeConstructor = field(default_factory=SafeConstructor)

    def value(self, node: yaml.Node, at: Place) -> Any:
        self.lines.setdefault(at, _line(node))
        if isinstance(node, yaml.MappingNode):
            made: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                if key in made:
                    raise Problem(
                        f"{self.path}:{_line(key_node)}: {_dotted((*at, key))}: found twice, "
                        "expected once"
                    )
                self.lines[(*at, key)] = _line(key_node)
                made[key] = self.value(value_node, (*at, key))
            return made
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*at, n)) for n, item in enumerate(node.value)]
        try:
            return self.scalars.construct_object(node)
        # The parser promises nothing: a date of month 13 is a ValueError, `!!bool x` a KeyError.
        except Exception as error:
            told = " ".join(str(error).split())
            raise Problem(
                f"{self.path}:{_line(node)}: {_dotted(at)}: {short_repr(node.value)} "
                "cannot be read "
                f"({told}); if it is a text, put it in quotation marks"
            ) from None

    def line(self, at: Place) -> int:
        """The line of the place, or of the nearest above it."""
        while at not in self.lines:
            at = at[:-1]
        return self.lines[at]

    def locate_error(self, error: ErrorDetails) -> str:
        """`guards/a.yaml:7: match.tol: found 'tol', expected one of tool, path, …`."""
        at = error["loc"]
        where = f"{self.path}:{self.line(at)}"
        if error["type"] == "extra_forbidden":
            known = KEYS.get(str(at[-2]), Guard) if len(at) > 1 else Guard
            return (
                f"{where}: {_dotted(at)}: found the unknown key {at[-1]!r}, expected one of "
                f"{', '.join(known.model_fields)}"
            )
        if error["type"] == "missing":
            return f"{where}: {_dotted(at)}: found nothing, expected {at[-1]}"
        said = error["msg"].removeprefix("Value error, ")
        if not at:
            return f"{where}: {said}"
        said = said.replace("Input should be", "expected")
        return f"{where}: {_dotted(at)}: found {short_repr(error['input'])}, {said}"


def _dotted(at: Place) -> str:
    return ".".join(map(str, at))


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    return "a list" if isinstance(node, yaml.SequenceNode) else repr(str(node.value)[:60])
