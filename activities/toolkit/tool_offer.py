"""Which of an agent's tools the model is offered, and which wait until `search_tools` finds them.

A list of many tools costs tokens in every request and makes the right one harder to see. Up to
`limits.tools_offered` tools all are offered; above, the core is, and the rest is deferred: named
in the system prompt, described in `tools/<name>.md`, callable once found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import get_args

from activities.checkpoints import Files
from activities.toolkit.agent_tools import agent_tools, tools_by_name
from activities.toolkit.registry import REGISTRY, Tool
from config.schema.agent import AgentConfig
from protocol.state import PhaseKind

CORE_GROUPS = ("files", "todos", "job", "discovery", "skills", "images")
"""Groups that are never deferred."""
IMAGES = "images"
"""The group that only models have that can look."""
SEARCH_TOOL = "search_tools"
MAX_OFFERED = 128
"""Tools that endpoints take in one request."""


@dataclass(frozen=True)
class ToolOffer:
    """The tools of one kind of phase: what is in requests, and what is not yet."""

    offered: list[Tool]
    """In the order in which they are sent, which only ever grows at its end."""
    deferred: list[Tool]


def offer_tools(
    config: AgentConfig,
    kind: PhaseKind,
    found_tools: Sequence[str] = (),
    unused: Collection[str] = (),
) -> ToolOffer:
    """What is offered and what is deferred.

    Args:
        config: The agent's.
        kind: Of the phase.
        found_tools: Deferred tools that were found.
        unused: Tools that the job has no use for at present.
    """
    tools = [entry for entry in agent_tools(config) if kind in entry.phases]
    if not config.model_for(kind).vision:
        tools = [entry for entry in tools if entry.group != IMAGES]
    # Not among what is counted: it is there for the others.
    tools = [entry for entry in tools if entry.name not in (SEARCH_TOOL, *unused)]
    deferred = {entry.name: entry for entry in tools if entry.group not in CORE_GROUPS}
    if len(tools) <= config.limits.tools_offered or not deferred:
        return ToolOffer(tools, [])
    core = {entry.name for entry in tools if entry.group in CORE_GROUPS} | {SEARCH_TOOL}
    at_hand = [entry for entry in REGISTRY.values() if entry.name in core]
    at_hand += [deferred.pop(name) for name in found_tools if name in deferred]
    return ToolOffer(at_hand, list(deferred.values()))


def unused_tools(files: Files, *, has_traces: bool, may_ask: bool = True) -> list[str]:
    """Tools that a phase does not offer, since the job has nothing for them when it begins.

    They can be called all the same: `tools/` documents them.

    Args:
        files: The workspace.
        has_traces: Whether earlier jobs left notes on such a situation.
        may_ask: Whether a question to a person is left.
    """
    groups = {"documents": bool(files.entry("documents") and files.children("documents"))}
    groups["traces"] = has_traces
    unused = [entry.name for entry in REGISTRY.values() if not groups.get(entry.group, True)]
    return unused if may_ask else [*unused, "request_clarification"]


def offered_names(config: AgentConfig, kind: PhaseKind, unused: Collection[str]) -> list[str]:
    """Names of the tools that a kind of phase has, deferred ones included."""
    tool_offer = offer_tools(config, kind, unused=unused)
    return [entry.name for entry in tool_offer.offered + tool_offer.deferred]


def equipped_tools(config: AgentConfig) -> list[Tool]:
    """Every tool a job of the agent may come to call, in the order of its equipment.

    Raises:
        UnknownTool: the configuration names what is neither a tool nor a group.
    """
    offers = [offer_tools(config, kind) for kind in get_args(PhaseKind)]
    tools = [entry for tool_offer in offers for entry in tool_offer.offered + tool_offer.deferred]
    names = {entry.name for entry in tools}
    return [entry for entry in tools_by_name(config).values() if entry.name in names]


def deferred_refusal(
    config: AgentConfig,
    kind: PhaseKind,
    found_tools: Sequence[str],
    unused: Collection[str],
    name: str,
) -> str | None:
    """What a call to a tool that is still deferred is answered, or None; arguments as of
    `offer_tools`.
    With all of them: a tool that requests have is never refused for being deferred.
    """
    if all(entry.name != name for entry in offer_tools(config, kind, found_tools, unused).deferred):
        return None
    return (
        f"{name} is not at hand yet, and you have not seen what it takes. Call "
        f"{SEARCH_TOOL} first: "
        f'{SEARCH_TOOL}("{name}") shows its arguments, and from then on you can call it.'
    )
