"""Data of the command `tools`: the registry, and the tools offered to an agent."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from activities.guards.hooks.voters import matching_hooks
from activities.guards.tool_routes import CALL_EVENTS, WORKFLOW_POINTS, tools_routed_to_approval
from activities.preparation.agent_models import KINDS
from activities.tool_catalogue import REGISTRY
from activities.toolkit.own_tools import own_tool_file
from activities.toolkit.registry import Tool
from activities.toolkit.tool_offer import offer_tools
from cli.checks.config_checks import resolve_agent_for_check
from config.agent_files import agent_file
from config.guard_files import agent_guard_files
from config.schema.agent import AgentConfig
from config.schema.guards import Guard, HookEvent
from protocol.tools import ToolRoute

COLUMNS = ("group", "tool", "phases", "effect", "run", "does")
OFFERED = ("tool", "effect", "run", "guards", "does")


@dataclass(frozen=True)
class ToolListing:
    """A tool, as an agent has it or as it is in the registry."""

    tool: str
    group: str
    does: str
    phases: list[str]
    effect: str
    local: bool
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    guards: list[str] = field(default_factory=list)
    """The agent's guards and hooks that may judge a call."""
    asks: bool = False
    """Whether a person approves each call."""
    deferred: bool = False
    """Whether it is offered only after `search_tools` has found it."""
    file: str = ""
    """The file of a tool of one's own."""

    def as_row(self) -> dict[str, str]:
        """Return its columns for a table."""
        marks = {"asks a person": self.asks, "once searched for": self.deferred}
        run = ["local" if self.local else "activity", *(mark for mark in marks if marks[mark])]
        return {
            "tool": self.tool,
            "group": self.group,
            "phases": ", ".join(self.phases),
            "effect": self.effect,
            "run": ", ".join(run),
            "guards": ", ".join(self.guards),
            "does": self.does,
        }


@dataclass(frozen=True)
class AgentTools:
    agent: str
    kinds: dict[str, list[ToolListing]]
    """Tools per kind of phase; for a reviewer, those of a review."""
    servers: list[str]
    """MCP servers, which add tools in tactical phases."""
    file: str
    guard_files: dict[str, str]


def full_tool_listing() -> list[ToolListing]:
    """Return all tools, sorted by group."""
    entries = sorted(REGISTRY.values(), key=lambda entry: entry.group)
    return [_tool_listing(entry, entry.route) for entry in entries]


def agent_tool_listing(name: str) -> AgentTools:
    """Return the tools an agent is offered. Raises ConfigError."""
    resolved = resolve_agent_for_check(name)
    routes = {route.name: route for route in resolved.routes}

    def describe_tool(entry: Tool, *, deferred: bool = False) -> ToolListing:
        guards = list(dict.fromkeys(_list_tool_guards(resolved.config, entry)))
        asks = entry.name in tools_routed_to_approval(resolved.config)
        return _tool_listing(entry, routes[entry.name], guards=guards, asks=asks, deferred=deferred)

    if resolved.reviews:
        # Reviewers can only read, so no guards apply.
        kinds = {"review": [_tool_listing(entry, routes[entry.name]) for entry in resolved.tools]}
    else:
        offers = {kind: offer_tools(resolved.config, kind) for kind in KINDS}
        kinds = {
            kind: [
                *map(describe_tool, kind_offer.offered),
                *(describe_tool(e, deferred=True) for e in kind_offer.deferred),
            ]
            for kind, kind_offer in offers.items()
        }
    return AgentTools(
        name,
        kinds,
        sorted(resolved.config.mcp),
        str(agent_file(name)),
        {guard: str(path) for guard, path in agent_guard_files(resolved.config).items()},
    )


def _tool_listing(entry: Tool, route: ToolRoute, **of_agent: Any) -> ToolListing:
    return ToolListing(
        tool=entry.name,
        group=entry.group,
        does=entry.summary,
        phases=list(entry.phases),
        effect=entry.effect,
        local=route.local,
        parameters=entry.arguments.schema,
        file=own_tool_file(entry),
        **of_agent,
    )


def _list_tool_guards(config: AgentConfig, entry: Tool) -> Iterator[str]:
    points = {"before_tool", "after_tool", *WORKFLOW_POINTS.get(entry.name, ())}
    acting = [guard for guard in config.rules if guard.stage in ("active", "experiment")]
    for guard in acting:
        if guard.point in points and _may_guard_tool(guard, config.name, entry):
            yield guard.name
    for event in CALL_EVENTS:
        yield from (hook.title for hook in matching_hooks(config, event, entry.name))
    if entry.name == "job_complete":
        endings: tuple[HookEvent, ...] = ("Stop", "SubagentStop")
        for event in endings:
            yield from (hook.title for hook in config.hooks.get(event, []))


def _may_guard_tool(guard: Guard, agent: str, entry: Tool) -> bool:
    """Return whether the guard may apply, judged by tool and agent only."""
    match = guard.match
    return (
        (not match.tool or any(fnmatchcase(entry.name, name) for name in match.tool))
        and (not match.agent or any(fnmatchcase(agent, name) for name in match.agent))
        and not any(fnmatchcase(agent, name) for name in match.not_agent)
        and not (match.changes and entry.effect == "reads")
    )
