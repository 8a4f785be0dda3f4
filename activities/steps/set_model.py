"""The `set_model` activity: a person changes model settings of a waiting job."""

from activities.checkpoints import Root
from activities.job.activity_context import open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.preparation.agent_models import (
    change_model_settings,
    choose_agent_models,
    list_model_changes,
)
from activities.preparation.agent_resolution import (
    resolve_agent_tools,
    resolve_job_limits,
    resolve_tool_routes,
)
from activities.projects.handoff_proof import add_handoff_proof_time
from activities.runtime.activity_info import activity_schedule_seconds
from activities.steps.root_activity import thread_activity
from config.schema.agent import AgentConfig
from protocol.prepare_requests import SetModelReply, SetModelRequest
from protocol.tools import ToolRoute


@thread_activity
def set_model(root: Root, request: SetModelRequest) -> SetModelReply:
    snapshot = open_activity_snapshot(root, request)
    before, kind = snapshot.config, snapshot.state.phase.kind
    config = change_model_settings(before, request.set, kind)
    choose_agent_models(config)
    routes = _change_tools(snapshot, before, config)
    changes = list(list_model_changes(before.model_for(kind), config.model_for(kind)))
    timestamp, commit = activity_schedule_seconds(), request.commit
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


def _change_tools(snapshot: Snapshot, before: AgentConfig, config: AgentConfig) -> list[ToolRoute]:
    """Return the routes of all tools if the change adds or removes one, else nothing."""
    if config.toolset == before.toolset:
        return []
    tools = resolve_agent_tools(config)
    for entry in tools:
        snapshot.files = snapshot.files.write(f"tools/{entry.name}.md", entry.page.encode())
    return add_handoff_proof_time(resolve_tool_routes(config, tools), snapshot.link)
