"""Routes of calls that hooks have a say in."""

from fnmatch import fnmatchcase

from activities.guards.hooks.voters import matching_hooks
from activities.toolkit.agent_tools import agent_has_tool, agent_tools_by_name
from activities.toolkit.registry import Tool, select_registered_tools
from config.schema.agent import AgentConfig
from config.schema.guards import Hook, HookEvent
from protocol.tools import ToolRoute

CALL_EVENTS: tuple[HookEvent, ...] = ("PreToolUse", "PostToolUse", "PermissionRequest")
WORKFLOW_POINTS = {
    "todo_complete": ("todo_complete", "phase_end"),
    "todo_rewind": (),
    "job_complete": ("job_complete", "subagent_end"),
    "request_clarification": (),
    "wait": (),
    "delegate": (),
}
"""Calls that the workflow itself acts on before any tool runs (next phase, end, question, wait),
with the further points that apply to them.
"""


def tools_routed_to_approval(config: AgentConfig) -> set[str]:
    """Return the tools whose calls a person approves. Raises KeyError for an unknown tool."""
    if not config.approve:
        return set()
    known = agent_tools_by_name(config)
    return {entry.name for entry in select_registered_tools(config.approved_tools, known)}


def guarded_route(config: AgentConfig, entry: Tool) -> ToolRoute:
    """Return the route: with hooks a regular activity, since their processes may do anything."""
    route = entry.route
    hooks = [hook for event in CALL_EVENTS for hook in matching_hooks(config, event, entry.name)]
    if hooks:
        route.local = False
        # A rewrite asks every hook again.
        route.seconds += sum(int(hook.timeout) + 2 for hook in hooks) * 3
    if config.shell.setup and entry.name in ("run_command", "todo_complete", "job_complete"):
        # The first command of a job builds the layer.
        route.seconds += (config.shell.seconds + 5) * len(config.shell.setup)
    if entry.name == "todo_complete" and agent_has_tool(config, "run_command"):
        # A todo's `done_when` may be a command.
        route.local = False
        route.seconds += config.shell.seconds + 60
    if entry.name in ("todo_complete", "job_complete") and config.verifiers:
        route.guarded = True
        # A test runner is tried again with tests that fail, and on the files of the start.
        route.seconds += sum(3 * (verifier.seconds + 30) for verifier in config.verifiers)
    if entry.name in WORKFLOW_POINTS:
        points = ("before_tool", *WORKFLOW_POINTS[entry.name])
        ending: list[Hook] = []
        if entry.name == "job_complete":
            ending = [*config.hooks.get("Stop", []), *config.hooks.get("SubagentStop", [])]
        guarded = bool(hooks or ending) or any(
            guard.stage in ("active", "experiment")
            and guard.point in points
            and guard.match.changes is None
            and (not guard.match.tool or any(fnmatchcase(entry.name, t) for t in guard.match.tool))
            for guard in config.rules
        )
        if guarded or entry.name in tools_routed_to_approval(config):
            route.guarded = True
        route.seconds += sum(int(hook.timeout) + 2 for hook in ending)
    # Neither hooks nor commands have a say.
    route.bounded_checks = entry.name == "todo_complete" and route.local and not config.verifiers
    return route
