"""The `set_model` activity: a person changes model settings of a waiting job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import activity_schedule_time, open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.projects.handoff import add_handoff_proof_time
from activities.redaction.credentials import without_credentials
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.starting.agent_resolution import (
    choose_agent_models,
    resolve_agent_tools,
    resolve_job_limits,
    resolve_tool_routes,
)
from config.agent_files import amend_agent_config
from config.schema.agent import AgentConfig
from config.schema.agent_sections import ModelConfig
from protocol.phase import PhaseKind
from protocol.prepare_requests import SetModelReply, SetModelRequest
from protocol.short_text import one_line
from protocol.tools import ToolRoute

MAX_SHOWN = 100
"""Characters shown of a value."""


class SetModelActivity:
    """Pins changed model settings."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="set_model")
    def set_model(self, request: SetModelRequest) -> SetModelReply:
        """Write the settings to the job's configuration in a new checkpoint."""
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(self._root, request)
            before, kind = snapshot.config, snapshot.state.phase.kind
            config = with_model_settings(before, request.set, kind)
            choose_agent_models(config)
            routes = self._change_tools(snapshot, before, config)
            changes = list(_model_setting_changes(before.model_for(kind), config.model_for(kind)))
            timestamp, commit = activity_schedule_time(), request.commit
            if config != before:
                snapshot.pin_config(config)
                commit = snapshot.save(snapshot.commit_message("a person set the model"), timestamp)
            return SetModelReply(
                commit=commit,
                at=timestamp,
                model=config.model.name,
                limits=resolve_job_limits(config),
                tools=routes,
                changes=changes,
            )

    def _change_tools(
        self, snapshot: Snapshot, before: AgentConfig, config: AgentConfig
    ) -> list[ToolRoute]:
        """Return the routes of all tools if the change adds or removes one, else nothing."""
        if config.toolset == before.toolset:
            return []
        tools = resolve_agent_tools(config)
        for entry in tools:
            snapshot.files = snapshot.files.write(f"tools/{entry.name}.md", entry.page.encode())
        return add_handoff_proof_time(resolve_tool_routes(config, tools), snapshot.link)


def with_model_settings(
    config: AgentConfig, settings: dict[str, Any], kind: PhaseKind
) -> AgentConfig:
    """Return the configuration with changed model settings.

    They apply to the running phase, and wherever the same value was in force: other phases, the
    judge, the reviewer. Fallbacks stay unchanged.

    Args:
        kind: Kind of the running phase.

    Raises:
        ConfigError: A key is unknown, or a value is wrong.
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
    return amended


def _model_setting_changes(before: ModelConfig, after: ModelConfig) -> Iterator[str]:
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
