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
from activities.toolkit.equipment import equipment, toolbox
from activities.toolkit.registry import REGISTRY, Tool
from config.schema.agent import AgentConfig
from protocol.state import PhaseKind

CORE = ("files", "todos", "job", "discovery")
"""Groups that are never deferred."""
SEARCH = "search_tools"
MOST_OFFERED = 128
"""Tools that endpoints take in one request."""


@dataclass(frozen=True)
class Offer:
    """The tools of one kind of phase: what is in requests, and what is not yet."""

    offered: list[Tool]
    """In the order in which they are sent, which only ever grows at its end."""
    deferred: list[Tool]


def offer(
    config: AgentConfig,
    kind: PhaseKind,
    found: Sequence[str] = (),
    unused: Collection[str] = (),
) -> Offer:
    """What is offered and what is deferred.

    Args:
        config: The agent's.
        kind: Of the phase.
        found: Deferred tools that were found.
        unused: Tools that the job has no use for at present.
    """
    tools = [entry for entry in equipment(config) if kind in entry.phases]
    # Not among what is counted: it is there for the others.
    tools = [entry for entry in tools if entry.name not in (SEARCH, *unused)]
    deferred = {entry.name: entry for entry in tools if entry.group not in CORE}
    if len(tools) <= config.limits.tools_offered or not deferred:
        return Offer(tools, [])
    core = {entry.name for entry in tools if entry.group in CORE} | {SEARCH}
    at_hand = [entry for entry in REGISTRY.values() if entry.name in core]
    at_hand += [deferred.pop(name) for name in found if name in deferred]
    return Offer(at_hand, list(deferred.values()))


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
    made = offer(config, kind, unused=unused)
    return [entry.name for entry in made.offered + made.deferred]


def tools_of(config: AgentConfig) -> list[Tool]:
    """Every tool a job of the agent may come to call, in the order of its equipment.

    Raises:
        NoSuchTool: the configuration names what is neither a tool nor a group.
    """
    offers = [offer(config, kind) for kind in get_args(PhaseKind)]
    found = [entry for made in offers for entry in made.offered + made.deferred]
    names = {entry.name for entry in found}
    return [entry for entry in toolbox(config).values() if entry.name in names]


def not_found_yet(
    config: AgentConfig,
    kind: PhaseKind,
    found: Sequence[str],
    unused: Collection[str],
    name: str,
) -> str | None:
    """What a call to a tool that is still deferred is answered, or None; arguments as of `offer`.

    With all of them: a tool that requests have is never refused for being deferred.
    """
    if all(entry.name != name for entry in offer(config, kind, found, unused).deferred):
        return None
    return (
        f"{name} is not at hand yet, and you have not seen what it takes. Call {SEARCH} first: "
        f'{SEARCH}("{name}") shows its arguments, and from then on you can call it.'
    )
