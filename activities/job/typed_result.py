"""A job's typed result: a file that must fit the schema in its configuration."""

from __future__ import annotations

import json

from activities.checkpoints import FilesError, PathRefused, parse_path
from activities.job.done_when import (
    check_done_when_schema,
    done_when_validity_problem,
    read_done_when_file,
)
from activities.job.snapshot import Snapshot
from config.schema.agent import AgentConfig, ConfigError
from protocol.endings import TypedResult
from protocol.todo_list import ValidFile

SCHEMA_FILE = "tools/result_schema.json"
"""Path of the schema in the agent's workspace."""
MAX_CONTENT_BYTES = 20_000
"""Largest result, as JSON, that is passed on whole."""
MAX_PROBLEM_CHARACTERS = 2000
RESULT_RULES = """

## Result

The job ends only once `{path}` fits the JSON Schema in `{schema}`{shown}
"""
MAX_SHOWN_CHARACTERS = 2000
"""Longest schema that the instructions show."""


def check_result_schema(config: AgentConfig) -> None:
    """Raise ConfigError if the schema or the path cannot be used."""
    if config.result_schema is None:
        return
    try:
        parse_path(config.result_path)
        check_done_when_schema(config.result_schema)
    except PathRefused as refused:
        raise ConfigError(f"agent {config.name}: result_path: {refused}") from None
    except ValueError as problem:
        raise ConfigError(f"agent {config.name}: result_schema: {problem}") from None


def with_typed_result_rules(instructions: str, config: AgentConfig) -> str:
    """Return a job's instructions with the requirements on its result."""
    if config.result_schema is None:
        return instructions
    schema = json.dumps(config.result_schema, ensure_ascii=False)
    shown = f":\n\n```json\n{schema}\n```" if len(schema) <= MAX_SHOWN_CHARACTERS else "."
    return instructions.rstrip() + RESULT_RULES.format(
        path=config.result_path, schema=SCHEMA_FILE, shown=shown
    )


def typed_result_schema_page(config: AgentConfig) -> bytes:
    """Return the content of `SCHEMA_FILE`."""
    return (json.dumps(config.result_schema, indent=2, ensure_ascii=False) + "\n").encode()


def result_problem(snapshot: Snapshot) -> str:
    """Return why the result does not fit, with the first violations; empty if it does."""
    config = snapshot.config
    if config.result_schema is None:
        return ""
    condition = ValidFile.model_validate(
        {"path": config.result_path, "schema": config.result_schema}
    )
    try:
        problem = done_when_validity_problem(snapshot.files, condition)
    except (FilesError, PathRefused) as error:
        problem = str(error)
    if problem is None:
        return ""
    return f"{problem[:MAX_PROBLEM_CHARACTERS]} Its schema is in {SCHEMA_FILE}."


def read_typed_result(snapshot: Snapshot) -> TypedResult | None:
    """Return the result for the job's own result; None for a job without one."""
    path = snapshot.config.result_path
    if snapshot.config.result_schema is None:
        return None
    try:
        content = snapshot.files.read(path)
        value = read_done_when_file(path, content)
    except (FilesError, PathRefused, ValueError):  # removed after the gate looked
        return None
    small = len(json.dumps(value).encode()) <= MAX_CONTENT_BYTES
    return TypedResult(path=path, bytes=len(content), content=value if small else None)
