"""Tool calls: each tool is an activity of its own name, from one checkpoint to the next."""

from collections.abc import Callable, Sequence

from temporalio import activity
from temporalio.common import RawValue

from activities.checkpoints import Root
from activities.guards.call_guards import CallGuards
from activities.job.activity_context import open_activity_snapshot
from activities.job.conversation_calls import tool_call_id
from activities.job.snapshot import Snapshot
from activities.runtime import tracing
from activities.runtime.failures import (
    typed_failures,
)
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.tool_calls.tool_run import record_call_result, run_tool
from activities.tool_catalogue import REGISTRY
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.registry import Tool
from protocol.requests import ToolReply, ToolRequest


def tool_activities(root: Root) -> list[Callable[[ToolRequest], ToolReply]]:
    return [_tool_activity(root, entry) for entry in REGISTRY.values()] + [
        _deny_tool_call_activity(root)
    ]


def remote_tool_call_activity(root: Root) -> Callable[[Sequence[RawValue]], ToolReply]:
    """Return the dynamic activity, which runs tools that a job's configuration declares."""

    @activity.defn(dynamic=True)
    def run_remote(arguments: Sequence[RawValue]) -> ToolReply:
        converter = activity.payload_converter()
        request: ToolRequest = converter.from_payload(arguments[0].payload, ToolRequest)
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(root, request)
            entry = agent_tools_by_name(snapshot.config).get(name := activity.info().activity_type)
            if entry is None:
                raise RuntimeError(
                    f"this worker has no activity {name}; it may be an older one, or its "
                    "LONGHAUL_CONFIG lacks the file of a tool"
                )
            return _run_tool_call_with_guards(root, snapshot, entry, request)

    return run_remote


def _tool_activity(root: Root, entry: Tool) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name=entry.name)
    def run_call(request: ToolRequest) -> ToolReply:
        with typed_failures(), heartbeats_from_thread():
            return _run_tool_call_with_guards(
                root, open_activity_snapshot(root, request), entry, request
            )

    return run_call


def _run_tool_call_with_guards(
    root: Root, snapshot: Snapshot, entry: Tool, request: ToolRequest
) -> ToolReply:
    tracing.trace_activity_tool(entry.name, tool_call_id(request.step, request.call))
    guards = CallGuards(root, snapshot, request.approved, request.bypass)
    return run_tool(snapshot, entry, request, guards)


def _deny_tool_call_activity(root: Root) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name="deny_call")
    def deny_call(request: ToolRequest) -> ToolReply:
        with typed_failures():
            snapshot = open_activity_snapshot(root, request)
            why = request.refusal or ""
            story = snapshot.commit_message("denied")
            reply = record_call_result(snapshot, request, story, why, failed=True)
            reply.tool = snapshot.tool_call(request.call)["function"]["name"][:60]
            return reply

    return deny_call
