"""Turns the YAML file of a project or a trial into its start, and hands documents to the worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.output import UserError
from cli.start import document_staging
from cli.start.job_input import check_job_input_size
from cli.start.job_settings import check_start_config
from cli.start.repository_staging import stage_repository
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.team_files import team_quota
from config.yaml_files import parse_yaml
from engine.root_location import workspaces_root
from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.project_start import FORM_SPECS, ProjectStart
from protocol.trial_start import TrialStart


def project_input(file: Path, repository: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the start input of a project, checked as far as possible without a worker.

    Paths of documents and of a folder are relative to the file.

    Args:
        repository: Replaces the file's `repository`.

    Raises:
        UserError: The file is missing or no valid YAML, a key or value is wrong, an agent is
            unknown or cannot use its settings, a document is missing, or there is too much input.
    """
    start, data = read_project_file(file)
    with _naming_start_file(file):
        agents = project_input_agents(start)
    check_job_input_size(data)
    if repository:
        data["repository"] = stage_repository(repository, agents)
    elif data.get("repository"):
        data["repository"] = stage_repository(data["repository"], agents, file.parent)
    # The agents' limits may differ; accept what at least one of them accepts.
    limit = max(config.limits.file_bytes for config in agents)
    remote = agents[0].workspace.remote if agents else None
    data["documents"] = _stage_documents_beside(file, start.documents, limit, remote)
    for entry, stage in zip(data.get("stages") or [], start.stages, strict=True):
        entry["documents"] = _stage_documents_beside(file, stage.documents, limit, remote)
    return {key: value for key, value in data.items() if value not in (None, [], {})}


def read_project_file(file: Path) -> tuple[ProjectStart, dict[str, Any]]:
    """Return a project's file, parsed and as plain data. Raises UserError."""
    with _naming_start_file(file):
        data = parse_yaml(file.read_text(encoding="utf-8"), str(file))
        return read_payload_object(ProjectStart, data, str(file)), data


def project_input_agents(start: ProjectStart) -> list[AgentConfig]:
    """Load every agent that a project needs with its settings. Raises ConfigError."""
    settings_by_agent = [
        *((start.agent(role), start.set) for role in FORM_SPECS[start.form].roles),
        *((stage.agent, {**start.set, **stage.set}) for stage in start.stages),
    ]
    agents = []
    for agent, settings in settings_by_agent:
        agents.append(load_agent(agent, settings))
        check_start_config(agents[-1], settings)
    return agents


def read_trial_file(file: Path) -> TrialStart:
    """Return the trial of a file. Raises UserError."""
    limits: list[int] = []
    with _naming_start_file(file):
        data = parse_yaml(file.read_text(encoding="utf-8"), str(file))
        start = read_payload_object(TrialStart, data, str(file))
        team_quota(str(start.start.get("team") or ""))
        for name in start.configurations:
            job = start.job_start(name)
            if job.get("agent"):
                settings = job.get("set") or {}
                config = load_agent(job["agent"], settings)
                check_start_config(config, settings)
                limits.append(config.limits.file_bytes)
                if start.limits.cost is not None:
                    _check_trial_prices(config, name)
    if limits and (documents := start.start.get("documents")):
        start.start["documents"] = _stage_documents_beside(file, documents, max(limits))
    return start


def _check_trial_prices(config: AgentConfig, name: str) -> None:
    """Refuse a limit on the trial's cost that could not be kept. Raises ConfigError."""
    from activities.model.prices import highest_price  # noqa: PLC0415 - takes a second

    if highest_price(config) is None:
        models = ", ".join(model.name for model in config.models)
        raise ConfigError(
            f"limits.cost: a price is not known under the configuration {name}, whose models are "
            f"{models}; give it under prices in the agent or under set"
        )


@contextmanager
def _naming_start_file(file: Path) -> Iterator[None]:
    """Raise what is wrong with a file as a UserError that names it."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text ({error.reason})") from None
    except (InvalidPayload, ConfigError) as error:
        text = str(error)
        raise UserError(text if text.startswith(str(file)) else f"{file}: {text}") from None


def _stage_documents_beside(
    file: Path, documents: list[str], limit: int, remote: str | None = None
) -> list[str]:
    local = [
        text if text.startswith(("http://", "https://")) else str(file.parent / text)
        for text in documents
    ]
    return document_staging.stage_documents(local, workspaces_root(), limit, remote)
