"""A job's typed result: the file that must fit the schema of its configuration."""

from __future__ import annotations

import json

from activities.checkpoints import FilesError, PathRefused, parse_path
from activities.job.done_when import check_schema, read_value, validity_problem
from activities.job.snapshot import Snapshot
from config.schema.agent import AgentConfig, ConfigError
from protocol.endings import TypedResult
from protocol.state import ValidFile

SCHEMA_FILE = "tools/result_schema.json"
"""Where the agent finds the schema, in its workspace."""
MAX_CONTENT_BYTES = 20_000
"""Of a result that is handed on whole, as JSON."""
MAX_PROBLEM_CHARACTERS = 2000
TOLD = """

## Result

The job ends only once `{path}` fits the JSON Schema in `{schema}`.
"""


def check_result_schema(config: AgentConfig) -> None:
    """Raises ConfigError where the schema or the path cannot be used."""
    if config.result_schema is None:
        return
    try:
        parse_path(config.result_path)
        check_schema(config.result_schema)
    except PathRefused as refused:
        raise ConfigError(f"agent {config.name}: result_path: {refused}") from None
    except ValueError as problem:
        raise ConfigError(f"agent {config.name}: result_schema: {problem}") from None


def with_result_told(instructions: str, config: AgentConfig) -> str:
    """The instructions of a job, with what its result has to be."""
    if config.result_schema is None:
        return instructions
    return instructions.rstrip() + TOLD.format(path=config.result_path, schema=SCHEMA_FILE)


def schema_page(config: AgentConfig) -> bytes:
    """What `SCHEMA_FILE` holds."""
    return (json.dumps(config.result_schema, indent=2, ensure_ascii=False) + "\n").encode()


def result_problem(snapshot: Snapshot) -> str:
    """Why the result does not fit, the first violations named; empty when it does."""
    config = snapshot.config
    if config.result_schema is None:
        return ""
    condition = ValidFile.model_validate(
        {"path": config.result_path, "schema": config.result_schema}
    )
    try:
        problem = validity_problem(snapshot.files, condition)
    except (FilesError, PathRefused) as error:
        problem = str(error)
    if problem is None:
        return ""
    return f"{problem[:MAX_PROBLEM_CHARACTERS]} Its schema is in {SCHEMA_FILE}."


def read_result(snapshot: Snapshot) -> TypedResult | None:
    """The result as the job's own result has it; None for a job without one."""
    path = snapshot.config.result_path
    if snapshot.config.result_schema is None:
        return None
    try:
        content = snapshot.files.read(path)
        value = read_value(path, content)
    except (FilesError, PathRefused, ValueError):  # removed behind the gate
        return None
    small = len(json.dumps(value).encode()) <= MAX_CONTENT_BYTES
    return TypedResult(path=path, bytes=len(content), content=value if small else None)
