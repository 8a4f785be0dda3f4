"""Turns a project's YAML file into its start input, and hands its documents to the worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.output import UserError
from cli.start import document_staging
from cli.start.job_input import check_job_input_size
from cli.start.job_settings import check_start_config
from cli.start.repository_staging import stage_repository
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.yaml_files import parse_yaml
from engine.root_location import workspaces_root
from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.project_forms import FORM_SPECS
from protocol.project_start import ProjectStart


def project_input(file: Path, repository: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the start input of a project, checked as far as possible without a worker.

    Paths of documents and of a folder are relative to the file.

    Args:
        file: The project's file.
        repository: Replaces the file's `repository`.

    Raises:
        UserError: The file is missing or no valid YAML, a key or value is wrong, an agent is
            unknown or cannot use its settings, a document is missing, or there is too much input.
    """
    start, data = read_project_file(file)
    try:
        agents = project_input_agents(start)
    except ConfigError as error:
        raise UserError(_name_project_input_file(file, error)) from None
    check_job_input_size(data)
    if repository:
        data["repository"] = stage_repository(repository, agents)
    elif data.get("repository"):
        data["repository"] = stage_repository(data["repository"], agents, file.parent)
    # The agents' limits may differ; accept what at least one of them accepts.
    limit = max(config.limits.file_bytes for config in agents)
    remote = agents[0].workspace.remote if agents else None
    data["documents"] = _stage_project_input(start.documents, file, limit, remote)
    for entry, stage in zip(data.get("stages") or [], start.stages, strict=True):
        entry["documents"] = _stage_project_input(stage.documents, file, limit, remote)
    return {key: value for key, value in data.items() if value not in (None, [], {})}


def read_project_file(file: Path) -> tuple[ProjectStart, dict[str, Any]]:
    """Return a project's file, parsed and as plain data. Raises UserError."""
    try:
        data = parse_yaml(file.read_text(encoding="utf-8"), str(file))
        return read_payload_object(ProjectStart, data, str(file)), data
    except OSError as error:
        raise UserError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text ({error.reason})") from None
    except (InvalidPayload, ConfigError) as error:
        raise UserError(_name_project_input_file(file, error)) from None


def project_input_agents(start: ProjectStart) -> list[AgentConfig]:
    """Load the agents of a project with their settings. Raises ConfigError."""
    agents = []
    for agent, settings in _project_agent_settings(start):
        agents.append(load_agent(agent, settings))
        check_start_config(agents[-1], settings)
    return agents


def _name_project_input_file(file: Path, wrong: Exception) -> str:
    text = str(wrong)
    return text if text.startswith(str(file)) else f"{file}: {text}"


def _project_agent_settings(start: ProjectStart) -> list[tuple[str, dict[str, Any]]]:
    """Return every agent that the project needs, with its settings."""
    return [
        *((start.agent(role), start.set) for role in FORM_SPECS[start.form].roles),
        *((stage.agent, {**start.set, **stage.set}) for stage in start.stages),
    ]


def _stage_project_input(
    documents: list[str], file: Path, limit: int, remote: str | None
) -> list[str]:
    local = [
        text if text.startswith(("http://", "https://")) else str(file.parent / text)
        for text in documents
    ]
    return document_staging.stage_documents(local, workspaces_root(), limit, remote)
