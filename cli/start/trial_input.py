"""Reads a trial's YAML file as its start input."""

from __future__ import annotations

from pathlib import Path

from cli.output import UserError
from cli.start import document_staging
from cli.start.job_settings import check_start_config
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.yaml_files import parse_yaml
from engine.root_location import workspaces_root
from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.trial_start import TrialStart


def read_trial_file(file: Path) -> TrialStart:
    """Return the trial of a file. Raises UserError."""
    try:
        data = parse_yaml(file.read_text(encoding="utf-8"), str(file))
        start = read_payload_object(TrialStart, data, str(file))
        limits: list[int] = []
        for name in start.configurations:
            job = start.job_start(name)
            if job.get("agent"):
                settings = job.get("set") or {}
                config = load_agent(job["agent"], settings)
                check_start_config(config, settings)
                limits.append(config.limits.file_bytes)
                if start.limits.cost is not None:
                    _check_trial_prices(config, name)
    except OSError as error:
        raise UserError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text ({error.reason})") from None
    except (InvalidPayload, ConfigError) as error:
        text = str(error)
        raise UserError(text if text.startswith(str(file)) else f"{file}: {text}") from None
    if limits and (documents := start.start.get("documents")):
        local = [
            text if text.startswith(("http://", "https://")) else str(file.parent / text)
            for text in documents
        ]
        root = workspaces_root()
        start.start["documents"] = document_staging.stage_documents(local, root, max(limits))
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
