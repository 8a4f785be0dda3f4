"""`done_when` of a todo: a condition on the workspace that must hold before the todo counts as
done.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import re2
import yaml
from pydantic import ValidationError

from activities.checkpoints import Files, FilesError, PathRefused, parse_path
from activities.text.json_schema import list_json_schema_violations, schema_problem
from activities.text.json_values import MAX_DEPTH, read_json_value
from activities.text.safe_text import replace_surrogates
from config.regexes import compile_cached_regex, regex_error
from config.yaml_files import YAML, UniqueKeyLoader
from protocol.todo_list import DoneWhen, ValidFile
from protocol.validation_errors import all_validation_errors

if TYPE_CHECKING:
    from activities.commands.check_commands import CheckRunner

SHOWN_CHARACTERS = 300
MAX_SCHEMA_CHARACTERS = 20_000
MAX_FILE_BYTES = 5_000_000
_CANNOT_FAIL = re.compile(
    r"true|:|exit 0|(?!.*(?:\bexit [1-9]|\bset -)).*\|\|\s*(?:true|:)", re.DOTALL
)
NO_COMMANDS = "no command can be run here; use file_exists, matches or valid"


def read_done_when(value: Any) -> DoneWhen:
    try:
        return check_done_when(DoneWhen.model_validate(value))
    except ValidationError as error:
        raise ValueError(all_validation_errors(error)) from None


def check_done_when(condition: DoneWhen) -> DoneWhen:
    """Return the condition if its path and its pattern or schema are valid. Raises ValueError."""
    try:
        if condition.matches:
            parse_path(condition.matches.path)
            compile_cached_regex(condition.matches.pattern)
        elif condition.valid:
            parse_path(condition.valid.path)
            check_done_when_schema(condition.valid.schema_)
        elif condition.file_exists:
            parse_path(condition.file_exists)
        elif condition.command and _CANNOT_FAIL.fullmatch(condition.command.strip()):
            raise ValueError("command always ends with 0, so that it shows nothing")
    except PathRefused as refused:
        raise ValueError(str(refused)) from None
    except re2.error as error:
        raise ValueError(f"pattern is not valid RE2: {regex_error(error)}") from None
    return condition


def check_done_when_schema(schema: dict[str, Any]) -> None:
    if (size := len(json.dumps(schema, ensure_ascii=False, default=str))) > MAX_SCHEMA_CHARACTERS:
        raise ValueError(
            f"schema has {size:,} characters as JSON, expected at most {MAX_SCHEMA_CHARACTERS:,}"
        )
    if problem := schema_problem(schema):
        raise ValueError(f"schema is not a JSON Schema: {problem}")


def unmet_condition_reason(
    files: Files, condition: DoneWhen | None, checks: CheckRunner | None = None
) -> str | None:
    """Return why the condition does not hold, or None; a command needs `checks` to hold."""
    if condition is None:
        return None
    problem: str | None
    if condition.command:
        problem = NO_COMMANDS
        if checks:
            finding = checks.run_check(files, condition.command, checks.config.shell.seconds)
            problem = finding.text if finding else None
    else:
        problem = _done_when_problem(files, condition)
    return f"Not done yet: it is done when {condition.line}. {problem}" if problem else None


def _done_when_problem(files: Files, condition: DoneWhen) -> str | None:
    try:
        if condition.valid:
            return read_valid_file(files, condition.valid)[2]
        if condition.matches is None:
            return _missing_done_when_file(files, condition.file_exists or "")
        path = condition.matches.path
        entry = files.entry(path)
        if entry is None or entry.kind == "folder":
            return f"There is no file {path}."
        text = files.read(path).decode(errors="replace")
    except (FilesError, PathRefused) as problem:
        return str(problem)
    if compile_cached_regex(condition.matches.pattern).search(text):
        return None
    shown = text[:SHOWN_CHARACTERS] + ("…" if len(text) > SHOWN_CHARACTERS else "")
    return f"Nothing in {path} matches; it has {len(text):,} characters" + (
        f" and begins:\n{shown}" if shown.strip() else "."
    )


def read_valid_file(files: Files, condition: ValidFile) -> tuple[int, Any, str | None]:
    """Read a file once; return its bytes, its value, and why it does not fit its schema."""
    path = condition.path
    entry = files.entry(path)
    if entry is None or entry.kind == "folder":
        return 0, None, f"There is no file {path}."
    if (entry.size or 0) > MAX_FILE_BYTES:
        return 0, None, f"{path} has {entry.size:,} bytes; at most {MAX_FILE_BYTES:,} are checked."
    content = files.read(path)
    try:
        value = read_done_when_file(path, content)
        wrong = list_json_schema_violations(condition.schema_, value)
    except ValueError as problem:
        return len(content), None, f"{path}: {problem}."
    fault = f"{path} does not fit: {'; '.join(wrong)}." if wrong else None
    return len(content), value, fault


def read_done_when_file(path: str, content: bytes) -> Any:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    if not path.lower().endswith((".yaml", ".yml")):
        return read_json_value(text)
    try:
        _check_yaml_events(text)
        # A date is a string in JSON.
        written = json.dumps(yaml.load(text, UniqueKeyLoader), default=str)
    except (yaml.YAMLError, TypeError) as error:
        raise ValueError(f"not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return read_json_value(written)


def _check_yaml_events(text: str) -> None:
    """Raise ValueError for aliases and deep nesting, before the content is put together."""
    depth = 0
    for event in yaml.parse(text, Loader=YAML):
        if isinstance(event, yaml.AliasEvent):
            # A few lines of aliases can expand to more than any memory holds.
            raise ValueError("aliases (*name) are not read; write each value out")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested too deeply: more than {MAX_DEPTH} levels")


def _missing_done_when_file(files: Files, pattern: str) -> str | None:
    if files.entry(pattern) is not None:
        return None
    if any(fnmatchcase(entry.path, pattern) for entry in files.walk()):
        return None
    folder = pattern.rpartition("/")[0]
    parent = files.entry(folder) if folder else None
    beside = (
        [replace_surrogates(e.path) for e in files.children(folder)][:20]
        if parent or not folder
        else []
    )
    return f"There is no {pattern}; beside it there is {', '.join(beside) or 'nothing'}."
