"""Checks every agent's configuration as a start would, without starting anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from activities.checkpoints import PathRefused, parse_path
from activities.commands.variables import missing_variables
from activities.job.typed_result import check_result_schema
from activities.model.prices import check_prices_for_cost_limit
from activities.requirements.text.indicators import Indicators
from activities.starting.agent_resolution import (
    check_agent_context_windows,
    resolve_configured_tools,
    resolve_tool_routes,
)
from activities.steps.review_job import VERDICTS, reviewer_tools
from activities.tool_catalogue import REGISTRY
from activities.toolkit.agent_tools import check_agent_server_names
from activities.toolkit.registry import Tool
from config.agent_files import agent_file, agent_names, load_agent
from config.agent_inheritance import extended_agents
from config.guard_files import read_guards
from config.layers import SHIPPED, configuration_layers
from config.learned_guards import LearnedGuards
from config.schema.agent import AgentConfig, ConfigError
from config.schema.guards import Guard
from config.templates import read_prompt_template
from config.yaml_files import read_yaml_model
from protocol.tools import ToolRoute

_PLAIN = re.compile(r"(?!.*__)[a-z0-9_]+")
"""Matches patterns that name one of our own tools."""


@dataclass(frozen=True)
class ConfigFinding:
    """The result for an agent, or for a file besides agents."""

    name: str
    summary: str = ""
    problem: str = ""
    """File, key, the value and what was expected; empty if nothing is wrong."""
    data: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return not self.problem

    def as_line(self) -> str:
        return f"✓ {self.name}: {self.summary}" if self.ok else f"✗ {self.name}: {self.problem}"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            **(self.data or {}),
            **({"problem": self.problem} if self.problem else {}),
        }


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent resolved as for a start, without the tools of its servers."""

    config: AgentConfig
    tools: list[Tool]
    routes: list[ToolRoute]
    reviews: bool
    """Whether it is a reviewer of other agents' work, which cannot have a job of its own."""


def check_configuration(
    names: Sequence[str] = (), *, root: Path | None = None, folder: Path = SHIPPED
) -> Iterator[ConfigFinding]:
    """Yield one finding per agent, then for other files.

    Args:
        names: Agents to check; empty for all, including files that no agent uses.
        root: The workspaces root whose learned guards are checked, since every start reads them.
        folder: Folder with `defaults.yaml`, `agents/` and the rest.
    """
    reported: set[str] = set()
    for name in names or agent_names(folder):
        yield (finding := _check_agent(name, folder))
        reported.add(finding.problem)
    if not names:
        for layer in configuration_layers(folder).folders:
            for path, read in _shared_config_files(layer):
                try:
                    read(path)
                except ConfigError as problem:
                    if str(problem) not in reported:
                        yield ConfigFinding(str(path.relative_to(layer)), problem=str(problem))
    if root is not None:
        yield from _check_learned_guards(root)


def resolve_agent_for_check(name: str, folder: Path = SHIPPED) -> ResolvedAgent:
    """Resolve an agent as for a start, assuming the machine has everything it may need.

    Raises:
        ConfigError: Something is wrong; the message says what and where.
    """
    config = load_agent(name, folder=folder)
    source = agent_file(name, folder)
    try:
        check_agent_server_names(config)
        check_result_schema(config)
        check_prices_for_cost_limit(config)
        check_agent_context_windows(config)
        _check_agent_folders(config)
        _check_guards(config)
        if config.reviewer:
            _check_reviewer(config.reviewer, source)
        tools, reviews = _agent_tools_to_check(config)
        return ResolvedAgent(config, tools, _tool_routes_to_check(config, tools), reviews)
    except ConfigError as problem:
        raise ConfigError(str(problem).replace(f"agent {name}: ", f"{source}: ", 1)) from None


def check_config_for_start(config: AgentConfig) -> None:
    """Refuse what every worker refuses, whatever its environment, machine and servers.

    Prices are left to the worker, whose environment may choose another model.

    Raises:
        ConfigError: Something is wrong.
    """
    check_agent_server_names(config)
    check_result_schema(config)
    _check_agent_folders(config)
    if config.reviewer:
        reviewer_tools(config.reviewer)
    _tool_routes_to_check(config, resolve_configured_tools(config))


def _check_agent_folders(config: AgentConfig) -> None:
    for folder in config.folders:
        try:
            parse_path(folder)
        except PathRefused as error:
            raise ConfigError(f"agent {config.name}: folders: {error}") from None


def _check_guards(config: AgentConfig) -> None:
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


def _check_reviewer(reviewer: AgentConfig, source: Path) -> None:
    try:
        reviewer_tools(reviewer)
    except ConfigError as problem:
        raise ConfigError(f"{source}: review.agent: {problem}") from None


def _agent_tools_to_check(config: AgentConfig) -> tuple[list[Tool], bool]:
    """Return the agent's tools, and whether it is a reviewer."""
    try:
        return resolve_configured_tools(config), False
    except ConfigError:
        if {"verdict", *VERDICTS}.isdisjoint(config.tools):
            raise
        return reviewer_tools(config), True


def _tool_routes_to_check(config: AgentConfig, tools: list[Tool]) -> list[ToolRoute]:
    # Servers are not queried here, so the names of their tools are unknown.
    config.approve = [
        tool for tool in config.approve if not _is_configured_server_tool(tool, config)
    ]
    return resolve_tool_routes(config, tools)


def _is_configured_server_tool(tool: str, config: AgentConfig) -> bool:
    return any(tool == server or tool.startswith(f"{server}__") for server in config.mcp)


def _check_agent(name: str, folder: Path) -> ConfigFinding:
    try:
        resolved, above = resolve_agent_for_check(name, folder), extended_agents(name, folder)
    except ConfigError as problem:
        return ConfigFinding(name, problem=str(problem))
    source = agent_file(name, folder)
    missing = sorted(set(missing_variables(resolved.config.shell).values()))
    data = {
        "file": str(source),
        "extends": above[0] if above else None,
        "model": resolved.config.model.name,
        "tools": len(resolved.tools),
        "servers": sorted(resolved.config.mcp),
        "missing_variables": missing,
    }
    parts = [
        f"extends {', '.join(above) or 'the defaults'}",
        f"model {resolved.config.model.name}",
        f"{len(resolved.tools)} tools"
        + (" and those of its servers" if resolved.config.mcp else ""),
    ]
    if configuration_layers(folder).is_own(source):
        parts.append(str(source))
    if missing:
        # Workers may have them: the command can run on another machine.
        parts.append(f"shell.environment needs {', '.join(missing)}, not set here")
    return ConfigFinding(name, ", ".join(parts), data=data)


def _shared_config_files(folder: Path) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield shared files with their readers, which otherwise read them only on use."""
    readers: dict[str, Callable[[Path], object]] = {
        "guards/*.yaml": read_guards,
        "agents/*/guards/*.yaml": read_guards,
        "prompts/*.md": read_prompt_template,
        "requirements/*.yaml": partial(read_yaml_model, kind=Indicators),
    }
    for pattern, read in readers.items():
        for path in sorted(folder.glob(pattern)):
            yield path, read


def _check_learned_guards(root: Path) -> Iterator[ConfigFinding]:
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
