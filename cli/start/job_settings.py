"""Settings of a start: overrides of the agent's configuration."""

import json
from pathlib import Path

from cli.output import UserError
from config.agent_files import amend_agent_config
from config.layers import configuration_layers
from config.schema.agent import AgentConfig, ConfigError
from config.yaml_files import parse_yaml

SHIPPED_AGENTS = frozenset(
    {
        *("coder", "creator", "generalist", "initializer", "manager", "mender", "reviewer"),
        *("small", "tester", "validator"),
    }
)


def check_start_config(config: AgentConfig, settings: dict[str, object]) -> None:
    """Refuse what every worker would refuse at a start with this configuration.

    Tools of MCP servers are known to the worker alone. A shipped agent without settings of the
    start is not checked, since that takes over a second; one that was added to the checkout is.

    Raises:
        ConfigError: A setting is unknown or invalid, or a tool is unknown.
    """
    is_shipped = config.name in SHIPPED_AGENTS and not configuration_layers().own_folders
    if is_shipped and not settings:
        return
    from cli.checks.config_checks import check_config_for_start  # noqa: PLC0415 - loads the activities

    check_config_for_start(config)


def check_fork_settings(pinned: AgentConfig, settings: dict[str, object]) -> None:
    """Refuse settings that every worker would refuse in a fork of a job with this configuration.

    Raises UserError: a setting is unknown or invalid.
    """
    try:
        check_start_config(amend_agent_config(pinned, settings), settings)
    except ConfigError as problem:
        raise UserError(str(problem)) from None


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
            overrides[key.strip()] = parse_yaml(value, "the value")
        except ConfigError as error:
            raise UserError(f"--set {text}: {error}") from None
    return overrides


def result_schema_setting(path: Path) -> list[str]:
    """Return the setting that gives the job's result the schema in a file. Raises UserError."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
        schema = parse_yaml(text, f"--result-schema {path}")
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"--result-schema {path}: {reason.lower()}") from None
    except UnicodeDecodeError:
        raise UserError(f"--result-schema {path}: not UTF-8 text") from None
    except ConfigError as error:
        raise UserError(str(error)) from None
    if not isinstance(schema, dict):
        raise UserError(f"--result-schema {path}: expected a JSON Schema, which is a mapping")
    return [f"result_schema={json.dumps(schema, ensure_ascii=False, default=str)}"]
