"""Decides which of an agent's tools are offered, and which wait until `search_tools` finds them.

Many tools cost tokens in every request and make the right one harder to find. Up to
`limits.tools_offered` tools are all offered. Of more, only a core is; the others are deferred:
named in the system prompt, described in `tools/<name>.md`, callable once found.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import get_args

from activities.checkpoints import Files
from activities.toolkit.agent_tools import agent_tools, agent_tools_by_name
from activities.toolkit.registry import REGISTRY, Tool
from config.schema.agent import AgentConfig
from protocol.phase import PhaseKind

CORE_GROUPS = ("files", "todos", "job", "discovery", "skills", "images")
"""Groups that are not deferred, except for `SELDOM`."""
SELDOM = frozenset(
    (
        *("move_file", "delete_file", "generate_workspace_summary", "search_history"),
        "request_clarification",
    )
)
"""Tools of the core that few phases need: deferred too if the core alone has too many."""
IMAGES = "images"
"""Group that is only offered to models with vision."""
SEARCH_TOOL = "search_tools"
ENDING = ("todo_complete", "job_complete")
"""Tools of the core that the last phase offers otherwise than the others."""
MAX_OFFERED = 128
"""Maximum number of tools that endpoints accept in one request."""


@dataclass(frozen=True)
class ToolOffer:
    offered: list[Tool]
    """In request order; found tools are added at the end."""
    deferred: list[Tool]


def offer_tools(
    config: AgentConfig,
    kind: PhaseKind,
    found_tools: Sequence[str] = (),
    unused: Collection[str] = (),
) -> ToolOffer:
    every = sorted(agent_tools(config), key=_tool_order)
    tools = [entry for entry in every if kind in entry.phases]
    if not config.model_for(kind).vision:
        tools = [entry for entry in tools if entry.group != IMAGES]
    # Do not count `search_tools`, which is only needed for the others.
    tools = [entry for entry in tools if entry.name not in (SEARCH_TOOL, *unused)]
    most = config.limits.tools_offered
    if len(tools) <= most or all(entry.group in CORE_GROUPS for entry in tools):
        return ToolOffer(tools, [])
    core = {entry.name for entry in tools if entry.group in CORE_GROUPS} | {SEARCH_TOOL}
    if len(core) > most:
        core -= SELDOM
    deferred = {entry.name: entry for entry in tools if entry.name not in core}
    at_hand = [entry for entry in REGISTRY.values() if entry.name in core]
    at_hand.sort(key=_tool_order)
    at_hand += [deferred.pop(name) for name in found_tools if name in deferred]
    return ToolOffer(at_hand, list(deferred.values()))


def _tool_order(entry: Tool) -> int:
    """Return a place that lets the requests of all phases begin alike, which their cache needs."""
    return (len(entry.phases) < len(get_args(PhaseKind))) + (entry.name in ENDING)


def unoffered_tools(files: Files, *, has_traces: bool, may_ask: bool = True) -> list[str]:
    """Return tools that a phase does not offer, since the job cannot use them when it begins.

    They can still be called, since `tools/` documents them.

    Args:
        has_traces: Whether earlier jobs left traces of a similar situation.
        may_ask: Whether the job may ask a person another question.
    """
    groups = {"documents": bool(files.entry("documents") and files.children("documents"))}
    groups["traces"] = has_traces
    unused = [entry.name for entry in REGISTRY.values() if not groups.get(entry.group, True)]
    return unused if may_ask else [*unused, "request_clarification"]


def offered_names(config: AgentConfig, kind: PhaseKind, unused: Collection[str]) -> list[str]:
    """Return the names of a phase's tools, including deferred ones."""
    tool_offer = offer_tools(config, kind, unused=unused)
    return [entry.name for entry in tool_offer.offered + tool_offer.deferred]


def offerable_tools(config: AgentConfig) -> list[Tool]:
    """Return every tool that jobs of the agent may call. Raises UnknownTool."""
    offers = [offer_tools(config, kind) for kind in get_args(PhaseKind)]
    tools = [entry for tool_offer in offers for entry in tool_offer.offered + tool_offer.deferred]
    names = {entry.name for entry in tools}
    return [entry for entry in agent_tools_by_name(config).values() if entry.name in names]


def deferred_tool_advice(
    config: AgentConfig,
    kind: PhaseKind,
    found_tools: Sequence[str],
    unused: Collection[str],
    name: str,
) -> str | None:
    """Return what helps with the arguments of a deferred tool, which the model has not seen."""
    if all(entry.name != name for entry in offer_tools(config, kind, found_tools, unused).deferred):
        return None
    return f'{SEARCH_TOOL}("{name}") shows its arguments; the query may list several names.'
