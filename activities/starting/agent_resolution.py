"""Resolves an agent's configuration when a job begins: guards, tools, models, limits."""

from __future__ import annotations

import itertools
from importlib import import_module

from activities.checkpoints import Root
from activities.commands import sandbox
from activities.commands.sandbox import SandboxUnavailable
from activities.guards.tool_routes import guarded_route, tools_routed_to_approval
from activities.mcp.errors import ServerUnavailable
from activities.model.endpoint import endpoint_model_name
from activities.model.prices import check_prices_for_cost_limit, highest_price
from activities.runtime.failures import may_retry_activity, typed_failure
from activities.toolkit.agent_tools import check_agent_server_names
from activities.toolkit.registry import Tool
from activities.toolkit.tool_offer import offerable_tools
from config.learned_guards import LearnedGuards
from config.schema.agent import AgentConfig, ConfigError
from protocol.limits import JobLimits, JudgeLimits, ReviewLimits
from protocol.phase import PhaseKind
from protocol.tools import ToolRoute

KINDS: tuple[PhaseKind, ...] = ("strategic", "tactical")
MIN_REQUEST_TOKENS = 1000
"""Smallest request, in tokens, with which a job can do its work."""
REQUIRED_TOOLS = ("todo_complete", "todo_write", "job_complete")


def resolve_learned_guards(root: Root, config: AgentConfig, project: str) -> None:
    """Add the guards learned from earlier jobs; they are pinned like all others."""
    config.rules = LearnedGuards(root.path).rules_for(config.name, project, config.rules)


def resolve_server_tools(config: AgentConfig) -> list[str]:
    """Ask the MCP servers for their tools; return notes on what is unavailable."""
    check_agent_server_names(config)
    if not config.mcp:
        config.server_tools, config.unavailable_servers = [], {}
        return []
    # Imported late, as in `activities.toolkit.remote_tools`.
    declaring = import_module("activities.mcp.declarations")
    try:
        notes: list[str] = declaring.declare_tools(config)
        return notes
    except ServerUnavailable as away:
        raise typed_failure("Dependency", str(away), retry=may_retry_activity()) from away


def resolve_agent_tools(config: AgentConfig) -> list[Tool]:
    """Return the agent's tools. Raises ConfigError if one is unknown, unusable here or missing."""
    tools = resolve_configured_tools(config)
    if "run_command" in {entry.name for entry in tools} or config.verifiers:
        try:
            sandbox.check_sandbox(config.shell)
        except SandboxUnavailable as problem:
            raise ConfigError(f"agent {config.name}: {problem}") from None
    return tools


def resolve_configured_tools(config: AgentConfig) -> list[Tool]:
    """Return the tools, sandbox unchecked. Raises ConfigError if one is unknown or missing."""
    try:
        tools = offerable_tools(config)
    except KeyError as unknown:
        raise unresolved_tool_error(config, "tools", unknown) from None
    names = {entry.name for entry in tools}
    if lacking := [name for name in REQUIRED_TOOLS if name not in names]:
        raise ConfigError(
            f"agent {config.name}: tools: without {', '.join(lacking)} no job can end; add the "
            "groups todos and job"
        )
    return tools


def unresolved_tool_error(config: AgentConfig, key: str, unknown: KeyError) -> ConfigError:
    """Return the error for an unknown name under `key` of the configuration."""
    name = unknown.args[0]
    return ConfigError(
        f"agent {config.name}: {key}: {name!r} is neither a tool nor a group of tools"
    )


def choose_agent_models(config: AgentConfig) -> None:
    """Replace the names of models that the environment overrides, then check them.

    Raises:
        ConfigError: A cost limit lacks a price, or a window is too small.
    """
    for model in config.models:
        model.name = endpoint_model_name(model)
    check_prices_for_cost_limit(config)
    check_agent_context_windows(config)


def check_agent_context_windows(config: AgentConfig) -> None:
    """Refuse a window that a reply fills up: the job would forget everything at each step.

    Raises:
        ConfigError: Fewer than `MIN_REQUEST_TOKENS` are left for a request.
    """
    for model in itertools.chain(*map(config.model_chain, KINDS)):
        remaining = config.context.compaction_limit(model)
        if remaining < MIN_REQUEST_TOKENS:
            raise ConfigError(
                f"agent {config.name}: model.window: found {model.window} for {model.name}: of "
                f"context.share {config.context.share:g} of it less max_output_tokens "
                f"{model.max_output_tokens}, {remaining} tokens are left for a request, expected "
                f"{MIN_REQUEST_TOKENS} at least; lower model.max_output_tokens"
            )


def resolve_job_limits(config: AgentConfig) -> JobLimits:
    """Return the part of the configuration that the workflow needs."""
    named = {
        name: value
        for name, value in config.limits.model_dump().items()
        if name in JobLimits.model_fields
    }
    return JobLimits.model_validate(
        named
        | {
            "single_list": bool(config.todos.work),
            "stuck": config.stuck,
            "reflection": config.reflection,
            "review": ReviewLimits(attempts=config.review.attempts, calls=config.review.calls)
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


def resolve_tool_routes(config: AgentConfig, tools: list[Tool]) -> list[ToolRoute]:
    """Return how each tool is called."""
    try:
        tools_routed_to_approval(config)
    except KeyError as unknown:
        raise unresolved_tool_error(config, "approve", unknown) from None
    return [guarded_route(config, entry) for entry in tools]
