"""Resolves an agent's configuration when a job begins: guards, tools, models, limits."""

from difflib import get_close_matches
from importlib import import_module

from activities.checkpoints import Root
from activities.commands import sandbox
from activities.commands.sandbox import SandboxUnavailable
from activities.guards.signed_approvals import check_signers
from activities.guards.tool_routes import guarded_route, tools_routed_to_approval
from activities.mcp.call_errors import ServerUnavailable
from activities.model.prices import highest_price
from activities.preparation.agent_models import KINDS
from activities.runtime.failures import may_retry_activity, typed_failure
from activities.toolkit.agent_tools import check_agent_server_names
from activities.toolkit.own_tools import own_tool_file
from activities.toolkit.registry import REGISTRY, Tool, UnknownTool, select_registered_tools
from activities.toolkit.tool_offer import offerable_tools
from config.agent_files import load_agent
from config.learned_guards import LearnedGuards
from config.schema.agent import AgentConfig, ConfigError
from config.start_settings import check_start_tools
from protocol.limits import JobLimits, JudgeLimits, ReviewLimits
from protocol.tools import ToolRoute

REQUIRED_TOOLS = ("todo_complete", "todo_write", "job_complete")
MAX_NEAR = 3
"""Most names that an unknown one is answered with."""


def resolve_learned_guards(root: Root, config: AgentConfig, project: str) -> None:
    """Add the guards learned from earlier jobs; they are pinned like all others."""
    config.rules = LearnedGuards(root.path).rules_for(config.name, project, config.rules)


def resolve_server_tools(config: AgentConfig) -> list[str]:
    check_agent_server_names(config)
    if not config.mcp:
        config.server_tools, config.unavailable_servers = [], {}
        return []
    # Imported late, as in `activities.toolkit.agent_tools`.
    declaring = import_module("activities.mcp.declarations")
    try:
        notes: list[str] = declaring.declare_tools(config)
        return notes
    except ServerUnavailable as error:
        raise typed_failure("Dependency", str(error), retry=may_retry_activity()) from error


def resolve_agent_tools(config: AgentConfig) -> list[Tool]:
    """Return the agent's tools. Raises ConfigError if one is unknown, unusable here or missing."""
    tools = resolve_configured_tools(config)
    if "run_command" in {entry.name for entry in tools} or config.verifiers:
        try:
            sandbox.check_sandbox(config.shell)
        except SandboxUnavailable as problem:
            raise ConfigError(f"agent {config.name}: {problem}") from None
    return tools


def check_added_tools(config: AgentConfig, tools: list[Tool]) -> None:
    """Refuse tools of the worker's own that only a start gives to the agent. Raises ConfigError."""
    if own := {entry.name for entry in tools if own_tool_file(entry)}:
        configured = load_agent(config.name)
        given = {entry.name for entry in resolve_configured_tools(configured)}
        check_start_tools(configured.start, sorted(own - given))


def resolve_configured_tools(config: AgentConfig) -> list[Tool]:
    """Return the tools, sandbox unchecked. Raises ConfigError if one is unknown or missing."""
    try:
        tools = offerable_tools(config)
    except UnknownTool as error:
        raise unresolved_tool_error(config, "tools", error) from None
    names = {entry.name for entry in tools}
    # An agent whose work is one list of its own hands over none.
    needed = [name for name in REQUIRED_TOOLS if name != "todo_write" or not config.todos.work]
    if lacking := [name for name in needed if name not in names]:
        raise ConfigError(
            f"agent {config.name}: tools: without {', '.join(lacking)} no job can end; add the "
            "groups todos and job"
        )
    return tools


def unresolved_tool_error(config: AgentConfig, key: str, unknown: UnknownTool) -> ConfigError:
    names = [*REGISTRY, *{entry.group for entry in REGISTRY.values()}]
    near = get_close_matches(unknown.name, sorted(names), MAX_NEAR)
    expected = f", expected {' or '.join(near)}?" if near else "; `starter.py tools` lists them"
    return ConfigError(
        f"agent {config.name}: {key}: {unknown.name!r} is neither a tool nor a group of "
        f"tools{expected}"
    )


def resolve_job_limits(config: AgentConfig) -> JobLimits:
    named = {
        name: value
        for name, value in config.limits.model_dump().items()
        if name in JobLimits.model_fields
    }
    return JobLimits.model_validate(
        named
        | {
            "single_list": bool(config.todos.work),
            "approve_plan": config.approve_plan,
            "drop_share": config.scope.drop_share,
            "drops_beyond": config.scope.beyond,
            "stuck": config.stuck,
            "reflection": config.reflection,
            "review": ReviewLimits(**config.review.model_dump(exclude={"agent"}))
            if config.review
            else None,
            "judge": JudgeLimits(attempts=config.judge.attempts, phases=config.judge.phases)
            if config.judge
            else None,
            "model_seconds": max(model.timeout_seconds for model in config.models),
            "output_tokens": max(model.max_output_tokens for model in config.models),
            "price": highest_price(config),
            "context_tokens": {
                kind: min(map(config.context.compaction_limit, config.model_chain(kind)))
                for kind in KINDS
            },
        }
    )


def check_approvals(config: AgentConfig) -> None:
    """Refuse approvals of unknown tools, and those that nobody can give. Raises ConfigError."""
    try:
        tools_routed_to_approval(config)
    except UnknownTool as error:
        raise unresolved_tool_error(config, "approve", error) from None
    check_signers(config)


def resolve_tool_routes(config: AgentConfig, tools: list[Tool]) -> list[ToolRoute]:
    check_approvals(config)
    return [guarded_route(config, entry) for entry in tools]


def resolve_reviewer_tools(config: AgentConfig) -> list[Tool]:
    try:
        tools = select_registered_tools(config.tools)
    except UnknownTool as error:
        raise unresolved_tool_error(config, "tools", error) from None
    if writing := [entry.name for entry in tools if entry.effect != "reads"]:
        raise ConfigError(
            f"agent {config.name}: tools: a reviewer only reads; take out {', '.join(writing)}"
        )
    if not any(entry.group == "verdict" for entry in tools):
        raise ConfigError(f"agent {config.name}: tools: a reviewer decides with the group verdict")
    return tools
