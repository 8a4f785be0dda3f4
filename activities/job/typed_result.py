"""A job's typed result: a file that must fit the schema in its configuration."""

import json

from pydantic_core import to_json

from activities.checkpoints import FilesError, PathRefused, parse_path
from activities.job.done_when import (
    check_done_when_schema,
    read_valid_file,
)
from activities.job.snapshot import Snapshot
from activities.text.safe_text import replace_surrogates
from config.schema.agent import AgentConfig, ConfigError
from protocol.endings import TypedResult
from protocol.todo_list import ValidFile

SCHEMA_FILE = "tools/result_schema.json"
MAX_CONTENT_BYTES = 20_000
"""Largest result, as JSON, that is passed on whole."""
MAX_PROBLEM_CHARACTERS = 2000
RESULT_RULES = """

## Result

The job ends only once `{path}` fits the JSON Schema in `{schema}`{shown}
"""
MAX_SHOWN_CHARACTERS = 2000


def check_result_schema(config: AgentConfig) -> None:
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
    if config.result_schema is None:
        return instructions
    schema = json.dumps(config.result_schema, ensure_ascii=False)
    shown = f":\n\n```json\n{schema}\n```" if len(schema) <= MAX_SHOWN_CHARACTERS else "."
    return instructions.rstrip() + RESULT_RULES.format(
        path=config.result_path, schema=SCHEMA_FILE, shown=shown
    )


def typed_result_schema_page(config: AgentConfig) -> bytes:
    return (json.dumps(config.result_schema, indent=2, ensure_ascii=False) + "\n").encode()


def result_problem(snapshot: Snapshot) -> str:
    return read_typed_result(snapshot)[1]


def read_typed_result(snapshot: Snapshot) -> tuple[TypedResult | None, str]:
    """Return the typed result as read and checked, or why it does not fit; neither without one."""
    config = snapshot.config
    if config.result_schema is None:
        return None, ""
    condition = ValidFile.model_validate(
        {"path": config.result_path, "schema": config.result_schema}
    )
    try:
        size, value, problem = read_valid_file(snapshot.files, condition)
    except (FilesError, PathRefused) as error:
        size, value, problem = 0, None, str(error)
    if problem:
        why = replace_surrogates(problem)[:MAX_PROBLEM_CHARACTERS]
        return None, f"{why} Its schema is in {SCHEMA_FILE}."
    small = len(to_json(value)) <= MAX_CONTENT_BYTES
    return TypedResult(path=config.result_path, bytes=size, content=value if small else None), ""
