"""Reads configuration files. Every error is a `ConfigError` that names the file."""

import pickle
import re
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from yaml.constructor import ConstructorError

from config.schema.agent import ConfigError
from protocol.validation_errors import (
    lowered_validation_error,
    short_error_value,
    validation_error_key,
    validation_error_message,
)

M = TypeVar("M", bound=BaseModel)
_PLAIN = {
    "tag:yaml.org,2002:bool": re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
    "tag:yaml.org,2002:int": re.compile(r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"^(?:[-+]?(?:[0-9][0-9_]*)?\.[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\."
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}
"""Plain words that are no strings, narrowed to what YAML 1.2 takes as such."""
_DATES = "tag:yaml.org,2002:timestamp"


class YAML(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads YAML with the plain words of version 1.2: `on`, `yes`, `12:30` and dates are strings.

    It is the C parser if PyYAML was built with it, since a job's start reads a dozen files.
    """

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, _PLAIN.get(tag, form)) for tag, form in forms if tag != _DATES]
        for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class UniqueKeyLoader(YAML):
    """Refuses duplicate keys, of which PyYAML would silently use the last."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # Checked before `<<` is merged in, since own keys may override merged ones.
        if id(node) not in self._checked:
            self._checked.add(id(node))
            _check_duplicate_yaml_keys(node)
        super().flatten_mapping(node)


def _check_duplicate_yaml_keys(node: yaml.MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if first := lines.get((key.tag, key.value)):
                raise ConstructorError(
                    problem=f"the key {key.value!r} is given twice, first in line {first}",
                    problem_mark=key.start_mark,
                )
            lines[key.tag, key.value] = key.start_mark.line + 1


def read_yaml_text(path: Path) -> str:
    """Read a file. Raises ConfigError if it is unreadable or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: the file is missing") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None


def parse_yaml(text: str, source: str) -> Any:
    """Parse YAML. Raises ConfigError with a message that begins with the source and the place."""
    try:
        return pickle.loads(_parsed_content(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{source}{place}: not valid YAML: {said}") from None
    # A number of 5,000 digits and ten thousand open brackets do not raise the parser's own errors.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{source}: not valid YAML: {said}") from None


@lru_cache(maxsize=256)
def _parsed_content(text: str) -> bytes:
    """Return a file's parsed content, pickled: each caller changes a copy of its own.

    Each job's start reads the same dozen files again, and a copy takes a fiftieth of the parsing.
    """
    return pickle.dumps(yaml.load(text, UniqueKeyLoader))


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; an empty file yields an empty one. Raises ConfigError."""
    content = parse_yaml(read_yaml_text(path), str(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected keys and values, found {short_error_value(content)}")
    return content


def read_yaml_model(path: Path, kind: type[M]) -> M:
    """Read a YAML mapping and validate it against its schema. Raises ConfigError."""
    content = read_yaml_mapping(path)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain_yaml_error(error, kind)}") from None


_UNSAID = ("missing", "credential", "extra_forbidden")
"""Error types that are reported without the value."""


def explain_yaml_error(error: ValidationError, kind: type[BaseModel]) -> str:
    """The first errors of a validation in one line: key, expected, found."""
    return "; ".join(
        f"{validation_error_key(item['loc'])}: "
        + lowered_validation_error(validation_error_message(item))
        + (f", found {short_error_value(item['input'])}" if item["type"] not in _UNSAID else "")
        + (_known_yaml_keys(item["loc"], kind) if item["type"] == "extra_forbidden" else "")
        for item in error.errors()[:5]
    )


def _known_yaml_keys(place: tuple[str | int, ...], kind: Any) -> str:
    """The keys expected in place of an unknown one; a single close match if there is one."""
    for key in place[:-1]:
        kind = _unwrap_yaml_field_type(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(key))
            kind = field.annotation if field else None
        else:
            kind = (get_args(kind) or (None,))[-1]
    kind = _unwrap_yaml_field_type(kind)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return ""
    near = get_close_matches(str(place[-1]), kind.model_fields, 1)
    return f", expected {near[0]}?" if near else f", expected {', '.join(kind.model_fields)}"


def _unwrap_yaml_field_type(kind: Any) -> Any:
    """A type without its annotations and None."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        parts = [part for part in get_args(kind) if part is not NoneType]
        kind = parts[0]
    return kind
