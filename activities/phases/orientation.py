"""The first messages of a phase: system prompt and re-orientation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import Any, get_args

from activities.job.snapshot import Snapshot
from activities.phases.archive import FORKED, PAGE
from activities.phases.summary import SUMMARY, folded
from activities.tokens import clip
from activities.toolkit.offering import offer
from activities.toolkit.registry import Tool
from config.schema import AgentConfig
from config.templates import render
from protocol.state import PhaseKind
from protocol.text import first_few

PART_TOKENS = 3000
MOST_LATER = 30
"""Tools of tactical phases that a strategic one is told the names of."""
TOOL_LINE = 120
"""Characters that a deferred tool has in the system prompt."""


def first_messages(
    snapshot: Snapshot,
    issue: str,
    page: str,
    traces: Sequence[str] = (),
    *,
    restored: bool = False,
) -> list[dict[str, Any]]:
    """System prompt and first message of the phase in the snapshot's state.

    `workspace.md` is in the system prompt as it is now and stays so for the phase: what does
    not change can be cached by the provider.

    Args:
        snapshot: The phase's beginning.
        issue: What went wrong, after a rewind.
        page: Archive page of the phase before.
        traces: What other jobs noted in situations like this one, a line each.
        restored: Whether a rewind took the files back too.
    """
    config, phase = snapshot.config, snapshot.state.phase
    limits = config.limits
    workspace = snapshot.text("workspace.md") or "(workspace.md is not written yet)"
    system = render(
        config.templates[phase.kind],
        agent=config.name,
        description=config.description,
        number=phase.number,
        min_todos=limits.min_todos,
        max_todos=limits.max_todos,
        workspace_tokens=limits.workspace_tokens,
        deferred=[
            {"name": entry.name, "line": shorten(entry.summary, TOOL_LINE, placeholder=" …")}
            for entry in offer(config, phase.kind).deferred
        ],
        later=_later(config) if phase.kind == "strategic" else "",
        workspace=clip(workspace, limits.workspace_tokens, 'read_file("workspace.md") shows all'),
    )
    first = render(
        config.templates["orientation"],
        bootstrap=phase.purpose == "bootstrap",
        forked=phase.purpose == "fork",
        number=phase.number,
        kind=phase.kind,
        name=phase.name,
        description=phase.description,
        issue=issue,
        restored=restored,
        away=sorted(config.away),
        experience=last_experience(snapshot),
        traces="\n".join(f"- {line}" for line in traces),
        can_look=any(entry.name == "get_trace" for entry in _all(config, phase.kind)),
        scope=clip(
            "\n".join(f"- {item.told}" for item in snapshot.state.scope),
            PART_TOKENS,
            f"{SUMMARY} lists what is open",
        ),
        instructions=_part(snapshot, "instructions.md"),
        summary=_part(snapshot, SUMMARY, folded),
        plan=_part(snapshot, "plan.md"),
        archive_name=last_page(snapshot),
        archive=clip(page or "(none yet)", PART_TOKENS, "archive/ holds all pages"),
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": first}]


def last_experience(snapshot: Snapshot) -> str:
    """The last attempt that failed and what was learned of it; empty when none has."""
    entries = snapshot.text("experiences.md").split("\n## ")
    if len(entries) < 2:
        return ""
    text = clip(entries[-1].strip(), PART_TOKENS, 'read_file("experiences.md") shows all')
    return f"The last attempt that failed, and what was learned of it (experiences.md):\n\n{text}"


def _later(config: AgentConfig) -> str:
    """The tools that only tactical phases have: a plan is made for them."""
    names = {kind: [entry.name for entry in _all(config, kind)] for kind in get_args(PhaseKind)}
    later = [name for name in names["tactical"] if name not in names["strategic"]]
    return first_few([f"`{name}`" for name in later], MOST_LATER)


def _all(config: AgentConfig, kind: PhaseKind) -> list[Tool]:
    made = offer(config, kind)
    return made.offered + made.deferred


def _part(snapshot: Snapshot, path: str, made: Callable[[str], str] = str) -> str:
    text = made(snapshot.text(path)) or "(not written yet)"
    return clip(text, PART_TOKENS, f'read_file("{path}") shows all')


def last_page(snapshot: Snapshot) -> str:
    """Path of the newest archive page of a phase that was begun; empty when there is none."""
    if snapshot.files.entry("archive") is None:
        return ""
    found = (PAGE.fullmatch(entry.path) for entry in snapshot.files.children("archive"))
    # By number: from phase 1000 on, names do not sort by it.
    pages = sorted((int(page[1]), page[0]) for page in found if page and page[2] == "md")
    # Of the phase that a fork took the place of there is nothing to tell.
    begun = (path for _, path in reversed(pages) if FORKED not in snapshot.text(path))
    return next(begun, "")
