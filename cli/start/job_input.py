"""Turns the user's arguments into the plain JSON input of a job."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.output import UserError
from cli.start.document_staging import stage_documents
from cli.start.job_settings import check_start_config, parse_job_settings
from cli.start.repository_staging import stage_repository
from config.agent_files import load_agent
from config.schema.agent import ConfigError
from config.team_files import team_quota
from config.templates import render_template
from engine.root_location import workspaces_root
from protocol.payloads import MAX_INSTRUCTIONS
from protocol.scope_ledger import MAX_ITEMS

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
    brief: list[str] | None = None,
) -> dict[str, Any]:
    """Build the start input of a job, checked as far as possible without a worker.

    Raises:
        UserError: Unknown agent, unknown or invalid setting, missing document, no instructions, or
            too much input.
    """
    text = read_instructions_text(instructions)
    check_job_input_size(
        {
            "instructions": text,
            "items": items,
            "documents": [*documents, *(brief or [])],
            "set": settings,
        }
    )
    overrides = parse_job_settings(settings)
    try:
        config = load_agent(agent, overrides)
        check_start_config(config, overrides)
        full_text = render_template(config.instructions_template, instructions=text).strip()
    except ConfigError as problem:
        raise UserError(str(problem)) from None
    if not full_text:
        raise UserError(f"agent {agent} has no instructions of its own; give --instructions")
    if config.needs_documents and not (documents or brief):
        raise UserError(f"agent {agent} works on documents; give at least one --document")
    staged = stage_documents(
        [*documents, *(brief or [])],
        workspaces_root(),
        config.limits.file_bytes,
        config.workspace.remote,
    )
    start_input = {
        "agent": agent,
        "instructions": text,
        "documents": staged[: len(documents)],
        "brief": staged[len(documents) :],
        "items": items,
        "set": overrides,
        "repository": stage_repository(repository or {}, [config]),
        "publish": publish or {},
    }
    return {key: value for key, value in start_input.items() if value}


def team_field(team: str) -> dict[str, str]:
    """Return the team of a start. Raises UserError: the configuration here lists others."""
    try:
        team_quota(team)
    except ConfigError as problem:
        raise UserError(f"--{problem}") from None
    return {"team": team} if team else {}


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
