"""The models of an agent: named by the environment, checked, and changed by people."""

import itertools
from collections.abc import Iterator
from typing import Any

from activities.model.prices import check_prices_for_cost_limit
from activities.model.providers import endpoint_model_name
from activities.redaction.credentials import without_credentials
from config.agent_files import amend_agent_config, check_changed_models
from config.schema.agent import AgentConfig, ConfigError
from config.schema.model_settings import ModelConfig
from protocol.phase import PhaseKind
from protocol.short_text import one_line

KINDS: tuple[PhaseKind, ...] = ("strategic", "tactical")
MIN_REQUEST_TOKENS = 1000
"""Smallest request, in tokens, with which a job can do its work."""

MAX_SHOWN = 100


def change_model_settings(
    config: AgentConfig, settings: dict[str, Any], kind: PhaseKind
) -> AgentConfig:
    """Return the configuration with changed model settings.

    They apply to the running phase, and wherever the same value was in force: other phases, the
    judge, the reviewer. Fallbacks stay unchanged. Raises ConfigError: A key is unknown, or a value
    is wrong.
    """
    amended = amend_agent_config(config, settings)
    keys = [key.partition(".")[2] for key in settings]

    def apply_settings(model: ModelConfig, *, always: bool = False) -> ModelConfig:
        return model.model_copy(
            update={
                key: getattr(amended.model, key)
                for key in keys
                if always or getattr(model, key) == getattr(config.model, key)
            }
        )

    amended.phase_models = {
        phase_kind: apply_settings(model, always=phase_kind == kind)
        for phase_kind, model in config.phase_models.items()
    }
    if config.judge and amended.judge:
        amended.judge.model = apply_settings(config.judge.model)
    if config.reviewer and amended.reviewer:
        amended.reviewer.model = apply_settings(config.reviewer.model)
        amended.reviewer.phase_models = {
            phase_kind: apply_settings(model)
            for phase_kind, model in config.reviewer.phase_models.items()
        }
    check_changed_models(config, amended)
    return amended


def list_model_changes(before: ModelConfig, after: ModelConfig) -> Iterator[str]:
    for key in ModelConfig.model_fields:
        old, new = getattr(before, key), getattr(after, key)
        if old != new:
            yield f"model.{key}: {_model_setting_text(old)} -> {_model_setting_text(new)}"


def _model_setting_text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, float):
        return f"{value:g}"
    return one_line(without_credentials(str(value)), MAX_SHOWN)


def choose_agent_models(config: AgentConfig) -> None:
    """Replace names of models that the environment overrides; check prices and windows."""
    for model in config.models:
        model.name = endpoint_model_name(model)
    check_prices_for_cost_limit(config)
    check_agent_context_windows(config)


def check_agent_context_windows(config: AgentConfig) -> None:
    """Refuse a window that a reply fills up: the job would forget everything at each step."""
    for model in itertools.chain(*map(config.model_chain, KINDS)):
        remaining = config.context.compaction_limit(model)
        if remaining < MIN_REQUEST_TOKENS:
            raise ConfigError(
                f"agent {config.name}: model.window: found {model.window} for {model.name}: of "
                f"context.share {config.context.share:g} of it less max_output_tokens "
                f"{model.max_output_tokens}, {remaining} tokens are left for a request, expected "
                f"{MIN_REQUEST_TOKENS} at least; lower model.max_output_tokens"
            )
