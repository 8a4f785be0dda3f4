"""Turns the user's arguments into the plain JSON input of a job, and starts it."""

from __future__ import annotations

import json
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from cli.document_staging import stage_documents
from cli.jobs import JOB, TRIAL, job_never_began, view_job
from cli.output import UserError
from cli.repository_input import stage_repository
from config.agent_files import amend_agent_config, load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.templates import render_template
from engine.connection import task_queue
from engine.otel import export_settings
from engine.workspaces_root import workspaces_root
from protocol.payloads import MAX_INSTRUCTIONS
from protocol.scope_ledger import MAX_ITEMS

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_BYTES = 1_500_000
"""Size limit of a start's input as JSON; the server accepts 2 MB."""


def job_input(
    agent: str,
    instructions: str,
    documents: list[str],
    items: list[str],
    settings: list[str],
    repository: dict[str, Any] | None = None,
    publish: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the start input of a job, checked as far as possible without a worker.

    Raises:
        UserError: Unknown agent, unknown or invalid setting, missing document, no instructions, or
            too much input.
    """
    text = read_instructions_text(instructions)
    check_job_input_size(
        {"instructions": text, "items": items, "documents": documents, "set": settings}
    )
    overrides = parse_job_settings(settings)
    try:
        config = load_agent(agent, overrides)
        if overrides:
            check_job_settings(config)
        full_text = render_template(config.instructions_template, instructions=text).strip()
    except ConfigError as problem:
        raise UserError(str(problem)) from None
    if not full_text:
        raise UserError(f"agent {agent} has no instructions of its own; give --instructions")
    if config.needs_documents and not documents:
        raise UserError(f"agent {agent} works on documents; give at least one --document")
    start_input = {
        "agent": agent,
        "instructions": text,
        "documents": stage_documents(
            documents, workspaces_root(), config.limits.file_bytes, config.workspace.remote
        ),
        "items": items,
        "set": overrides,
        "repository": stage_repository(repository or {}, [config]),
        "publish": publish or {},
    }
    return {key: value for key, value in start_input.items() if value}


def check_job_settings(config: AgentConfig) -> None:
    """Refuse settings of a start that every worker would refuse.

    Raises:
        ConfigError: A setting is unknown or invalid.
    """
    from cli.config_checks import check_config_for_start  # noqa: PLC0415 - loads the activities, over a second

    check_config_for_start(config)


def check_fork_settings(pinned: AgentConfig, settings: dict[str, object]) -> None:
    """Refuse settings that every worker would refuse in a fork of a job with this configuration.

    Raises:
        UserError: A setting is unknown or invalid.
    """
    try:
        check_job_settings(amend_agent_config(pinned, settings))
    except ConfigError as problem:
        raise UserError(str(problem)) from None


def check_job_input_size(data: dict[str, Any]) -> None:
    """Refuse input that the worker or the server would refuse; the server's message would not say
    why.
    """
    size = len(data.get("instructions", ""))
    if size > MAX_INSTRUCTIONS:
        raise UserError(
            f"instructions have {size:,} characters; at most {MAX_INSTRUCTIONS:,} fit into a "
            "start; give the rest as --document"
        )
    if (size := len(data.get("items", []))) > MAX_ITEMS:
        raise UserError(f"--item: {size:,} items; a job takes {MAX_ITEMS:,}: start several jobs")
    sent = json.dumps(data, ensure_ascii=False, default=str).encode("utf-8", "replace")
    if (size := len(sent)) > MOST_BYTES:
        raise UserError(
            f"instructions, items and the like have {size:,} bytes as JSON; at most "
            f"{MOST_BYTES:,} fit into a start; give the rest as documents"
        )


def read_instructions_text(text: str) -> str:
    """Return the text, or for `@FILE` the file's content. Raises UserError."""
    if not text.startswith("@"):
        # Without this check a job would work for hours on a file's mere name.
        with suppress(OSError, ValueError):  # most texts are too long for a file name
            if Path(text).is_file():
                raise UserError(f"instructions {text!r} is the name of a file; @{text} reads it")
        return text
    path = Path(text[1:])
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except RuntimeError:
        raise UserError(f"instructions file {path}: no such user or home") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"instructions file {path}: {reason}") from None
    except UnicodeDecodeError:
        raise UserError(f"instructions file {path}: not UTF-8 text") from None


def parse_job_settings(settings: list[str]) -> dict[str, object]:
    """Parse `key=value` pairs as overrides of the configuration, with YAML values. Raises
    UserError.
    """
    overrides: dict[str, object] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set {text}: expected key=value, such as limits.rewinds=3")
        try:
            overrides[key.strip()] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UserError(f"--set {text}: the value is not valid YAML") from None
    return overrides


def result_schema_setting(path: Path) -> list[str]:
    """Return the setting that gives the job's result the schema in a file. Raises UserError."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
        schema = yaml.safe_load(text)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"--result-schema {path}: {reason.lower()}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UserError(f"--result-schema {path}: neither JSON nor YAML") from None
    if not isinstance(schema, dict):
        raise UserError(f"--result-schema {path}: expected a JSON Schema, which is a mapping")
    return [f"result_schema={json.dumps(schema, ensure_ascii=False, default=str)}"]


def new_job_id(agent: str) -> str:
    """Return `<agent>-<6 random characters>`."""
    return f"{agent}-{secrets.token_hex(3)}"


def check_new_job_id(job_id: str) -> None:
    """Raise UserError for an id that is unsuitable as a folder name or in a link."""
    if not _ID.fullmatch(job_id):
        raise UserError(
            f"--id {job_id or repr(job_id)}: expected letters, digits and . _ - (at most 100, not "
            "starting with one of . _ -)"
        )


async def start_workflow(
    client: Client, job_id: str, data: dict[str, Any], kind: str = JOB
) -> None:
    """Start the job or project.

    Raises:
        UserError: The id is in use, or was used before.
    """

    async def begin(reuse: WorkflowIDReusePolicy) -> None:
        with export_settings.trace_start_if_exported(kind, job_id):
            await client.start_workflow(
                kind,
                data,
                id=job_id,
                task_queue=task_queue(),
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            )

    try:
        # A closed job's id stays reserved: its workspace and checkpoints have it as their name.
        await begin(WorkflowIDReusePolicy.REJECT_DUPLICATE)
    except WorkflowAlreadyStartedError:
        with suppress(WorkflowAlreadyStartedError):  # somebody else was faster
            if await job_never_began(client, job_id):
                await begin(WorkflowIDReusePolicy.ALLOW_DUPLICATE)
                return
        job_view = await view_job(client, job_id, seconds=1)
        word = "trial" if job_view.kind == TRIAL else "job"
        if job_view.closed:
            raise UserError(
                f"there was a {word} {job_id} already ({job_view.status_word}); choose another --id"
            ) from None
        raise UserError(
            f"{word} {job_id} is already running; none was started. Watch it with "
            f"`starter.py watch {job_id}` or choose another --id"
        ) from None
