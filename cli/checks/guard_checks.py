"""Checks of guards: those of an agent, and those that were learned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from activities.tool_catalogue import REGISTRY
from cli.checks.check_result import ConfigFinding
from config.learned_guards import LearnedGuards
from config.schema.agent import AgentConfig, ConfigError
from config.schema.guards import Guard

_PLAIN = re.compile(r"(?!.*__)[a-z0-9_]+")
"""Matches patterns that name one of our own tools."""


def check_agent_guards(config: AgentConfig) -> None:
    """Refuse guards on unknown tools or arguments, which would silently never match."""
    for guard in config.rules:
        for pattern in [*guard.match.tool, *guard.match.not_ran]:
            # Other names are, or may be, tools of servers.
            if _PLAIN.fullmatch(pattern) and pattern not in REGISTRY:
                raise ConfigError(
                    f"agent {config.name}: guards: {guard.name}: no tool is called {pattern!r}; "
                    "`starter.py tools` lists them"
                )
        if all(map(_PLAIN.fullmatch, guard.match.tool)):
            _check_guard_arguments(config, guard)


def _check_guard_arguments(config: AgentConfig, guard: Guard) -> None:
    """Check argument names; with several tools, one of them must have each."""
    tools = guard.match.tool
    known_arguments = {
        argument.name for tool in tools for argument in REGISTRY[tool].arguments.listed
    }
    named = [*guard.match.arguments, *guard.match.ignoring, *guard.rewrite]
    if tools and (unknown := [name for name in named if name not in known_arguments]):
        raise ConfigError(
            f"agent {config.name}: guards: {guard.name}: {' and '.join(tools)} "
            f"take{'s' if len(tools) == 1 else ''} no argument {unknown[0]!r}; expected "
            f"{' or '.join(sorted(known_arguments)) or 'none'}"
        )


def check_learned_guards(root: Path) -> Iterator[ConfigFinding]:
    learned = LearnedGuards(root)
    try:
        names = learned.names()
    except OSError as error:
        yield ConfigFinding("learned guards", problem=f"{root}: cannot be read ({error.strerror})")
        return
    wrong = []
    for name in names:
        try:
            learned.revisions(name)
        except ConfigError as problem:
            wrong.append(ConfigFinding(f"learned guard {name}", problem=str(problem)))
    yield from wrong
    if names and not wrong:
        yield ConfigFinding(
            "learned guards", f"{', '.join(names)} in {root}", data={"guards": names}
        )
