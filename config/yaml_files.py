"""Reads the files of a configuration. Every mistake is a `ConfigError` that names the file."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from yaml.constructor import ConstructorError

from config.schema.agent import ConfigError
from protocol.validation_errors import error_key, lowered_message, short_repr

M = TypeVar("M", bound=BaseModel)
YAML: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C, where PyYAML was built with it: a job's start reads a dozen files."""


class _UniqueKeyLoader(YAML):  # type: ignore[misc, valid-type]
    """Refuses a key that is given twice, of which YAML would keep the last without a word."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # Before the keys of `<<` stand among its own, which go before them.
        if id(node) not in self._checked:
            self._checked.add(id(node))
            _check_once(node)
        super().flatten_mapping(node)


def _check_once(node: yaml.MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if first := lines.get((key.tag, key.value)):
                raise ConstructorError(
                    problem=f"the key {key.value!r} is given twice, first in line {first}",
                    problem_mark=key.start_mark,
                )
            lines[key.tag, key.value] = key.start_mark.line + 1


def read_text(path: Path) -> str:
    """Raises ConfigError if it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: the file is missing") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None


def parse_yaml(text: str, wrong: str) -> Any:
    """What a text in YAML holds. Raises ConfigError, whose message begins with `wrong`."""
    try:
        return yaml.load(text, _UniqueKeyLoader)
    # A date of month 13 and ten thousand open brackets are no errors of the parser's own.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{wrong}: {' '.join(str(error).split())}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file of keys and values; an empty one has none. Raises ConfigError."""
    content = parse_yaml(read_text(path), f"{path}: not valid YAML")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected keys and values, found {short_repr(content)}")
    return content


def read_model(path: Path, kind: type[M]) -> M:
    """A YAML file of keys and values, held against its schema. Raises ConfigError."""
    content = read_mapping(path)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain_error(error, kind)}") from None


_UNSAID = ("missing", "credential")
"""Errors that are reported without the value."""


def explain_error(error: ValidationError, kind: type[BaseModel]) -> str:
    """A validation error in one line: key, what was found, what was expected.

    Args:
        error: What is wrong.
        kind: The schema that it was held against, which knows the keys there are.
    """
    return "; ".join(
        f"{error_key(item['loc'])}: {lowered_message(item['msg'])}"
        + (f", found {short_repr(item['input'])}" if item["type"] not in _UNSAID else "")
        + (_known_keys(item["loc"], kind) if item["type"] == "extra_forbidden" else "")
        for item in error.errors()[:5]
    )


def _known_keys(place: tuple[str | int, ...], kind: Any) -> str:
    """Which keys there are in the place of one that is not known."""
    for key in place[:-1]:
        kind = _unwrap_type(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(key))
            kind = field.annotation if field else None
        else:
            kind = (get_args(kind) or (None,))[-1]
    kind = _unwrap_type(kind)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return ""
    near = get_close_matches(str(place[-1]), kind.model_fields, 1)
    return f", expected {near[0]}?" if near else f", expected {', '.join(kind.model_fields)}"


def _unwrap_type(kind: Any) -> Any:
    """A type without its annotations, and without null."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        parts = [part for part in get_args(kind) if part is not NoneType]
        kind = parts[0]
    return kind
