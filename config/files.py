"""Reads the files of a configuration. Every mistake is a `Problem` that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from config.schema import Problem

YAML: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C, where PyYAML was built with it: a job's start reads a dozen files."""


def read_text(path: Path) -> str:
    """Raises Problem if it is not there or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Problem(f"{path}: the file is missing") from None
    except UnicodeDecodeError as error:
        raise Problem(f"{path}: not UTF-8 text ({error.reason})") from None


def read_yaml(path: Path) -> Any:
    """What a YAML file holds. Raises Problem."""
    return parse_yaml(read_text(path), f"{path}: not valid YAML")


def parse_yaml(text: str, wrong: str) -> Any:
    """What a text in YAML holds. Raises Problem, whose message begins with `wrong`."""
    try:
        return yaml.load(text, YAML)
    # A date of month 13 and ten thousand open brackets are no errors of the parser's own.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Problem(f"{wrong}: {' '.join(str(error).split())}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file of keys and values; an empty one has none. Raises Problem."""
    content = read_yaml(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Problem(f"{path}: expected keys and values, found {short(content)}")
    return content


def explain(error: ValidationError) -> str:
    """A validation error in one line: key, what was found, what was expected."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the whole'}: {item['msg'].lower()}"
        + (f", found {short(item['input'])}" if item["type"] != "missing" else "")
        for item in error.errors()[:5]
    )


def short(value: object) -> str:
    """A value as it is written in a message, bounded."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
