"""The `set_model` activity: settings of its model that a person gives to a job that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import open_snapshot, scheduled_at
from activities.redaction.credentials import without_credentials
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.starting.agent_resolution import choose_models, limits_of
from config.loader import amend
from config.schema.agent import AgentConfig
from config.schema.agent_sections import ModelConfig
from protocol.start import SetModelReply, SetModelRequest
from protocol.state import PhaseKind
from protocol.text import one_line

MAX_SHOWN = 100
"""Characters of a value that people are shown."""


class ModelSettings:
    """Pins settings of the model anew."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="set_model")
    def set_model(self, request: SetModelRequest) -> SetModelReply:
        """Put the settings into the job's configuration, in a new checkpoint."""
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(self._root, request)
            before, kind = snapshot.config, snapshot.state.phase.kind
            config = with_model_settings(before, request.set, kind)
            choose_models(config)
            changes = list(_changes(before.model_for(kind), config.model_for(kind)))
            at, commit = scheduled_at(), request.commit
            if config != before:
                snapshot.pin(config)
                commit = snapshot.save(snapshot.story("a person set the model"), at)
            return SetModelReply(
                commit=commit,
                at=at,
                model=config.model.name,
                limits=limits_of(config),
                changes=changes,
            )


def with_model_settings(
    config: AgentConfig, settings: dict[str, Any], kind: PhaseKind
) -> AgentConfig:
    """The configuration with other settings of the model.

    They hold for the running phase, and where else the same value was in force: other kinds of
    phases, the judge, the reviewer. Fallbacks stay as they are.

    Args:
        kind: That of the running phase.

    Raises:
        Problem: a key that there is not, or a wrong value.
    """
    amended = amend(config, settings)
    keys = [key.partition(".")[2] for key in settings]

    def follow(model: ModelConfig, *, always: bool = False) -> ModelConfig:
        return model.model_copy(
            update={
                key: getattr(amended.model, key)
                for key in keys
                if always or getattr(model, key) == getattr(config.model, key)
            }
        )

    amended.phase_models = {
        of: follow(model, always=of == kind) for of, model in config.phase_models.items()
    }
    if config.judge and amended.judge:
        amended.judge.model = follow(config.judge.model)
    if config.reviewer and amended.reviewer:
        amended.reviewer.model = follow(config.reviewer.model)
        amended.reviewer.phase_models = {
            of: follow(model) for of, model in config.reviewer.phase_models.items()
        }
    return amended


def _changes(before: ModelConfig, after: ModelConfig) -> Iterator[str]:
    for key in ModelConfig.model_fields:
        old, new = getattr(before, key), getattr(after, key)
        if old != new:
            yield f"model.{key}: {_shown(old)} -> {_shown(new)}"


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, float):
        return f"{value:g}"
    return one_line(without_credentials(str(value)), MAX_SHOWN)
