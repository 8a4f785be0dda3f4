"""Checks of configuration as a start would do them, without starting anything."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from activities.checkpoints import PathRefused, parse_path
from activities.commands.bubblewrap import missing_variable, missing_variables
from activities.job.typed_result import check_result_schema
from activities.model.prices import check_prices_for_cost_limit
from activities.preparation import agent_resolution
from activities.preparation.agent_models import check_agent_context_windows
from activities.projects.runner_commands import failing_required_command, required_commands
from activities.projects.verifier_runs import files_named, runners_named
from activities.text.indicators import Indicators
from activities.text.statement_words import StatementWords
from activities.tool_catalogue import REGISTRY
from activities.toolkit.agent_tools import check_agent_server_names
from activities.toolkit.own_tools import own_tools_by_file
from activities.toolkit.registry import Tool
from activities.tools.verdict import JUDGE
from cli.checks.check_result import CheckResult, ConfigFinding
from cli.output import UserError
from cli.start.start_files import project_input_agents, read_project_file
from config.agent_files import agent_file, agent_names, load_agent
from config.agent_inheritance import extended_agents
from config.guard_files import read_guards
from config.layers import SHIPPED, configuration_layers
from config.learned_guards import LearnedGuards
from config.schema.agent import AgentConfig, ConfigError
from config.schema.guards import Guard
from config.templates import read_prompt_template
from config.yaml_files import read_yaml_model
from engine.root_location import workspaces_root
from protocol.tools import ToolRoute


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent resolved as for a start, without the tools of its servers."""

    config: AgentConfig
    tools: list[Tool]
    routes: list[ToolRoute]
    reviews: bool
    """Whether it is a reviewer of other agents' work, which cannot have a job of its own."""


def check_configuration(
    names: Sequence[str] = (),
    *,
    root: Path | None = None,
    folder: Path = SHIPPED,
    tool_problems: Sequence[str] = (),
) -> Iterator[ConfigFinding]:
    """Yield one finding per file of tools that cannot be loaded, per agent, then for other files.

    Args:
        names: Agents to check; empty for all, including files that no agent uses.
        root: The workspaces root whose learned guards are checked, since every start reads them.
        folder: Folder with `defaults.yaml`, `agents/` and the rest.
        tool_problems: What is wrong with files of tools of one's own, which are loaded before.
    """
    for problem in tool_problems:
        yield ConfigFinding("own tools", problem=problem)
    reported: set[str] = set()
    for name in names or agent_names(folder):
        yield (finding := _check_agent_config(name, folder))
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
        yield from check_learned_guards(root)


def check_agent_exists(agent: str) -> None:
    """Raise UserError for an agent that is not known, with the names of those that are."""
    if agent not in (names := agent_names()):
        raise UserError(f"agent {agent!r} is not known; the agents are {', '.join(names)}")


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
        check_agent_guards(config)
        if config.reviewer:
            _check_agent_reviewer(config.reviewer, source)
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
        agent_resolution.resolve_reviewer_tools(config.reviewer)
    _tool_routes_to_check(config, agent_resolution.resolve_configured_tools(config))


def _check_agent_folders(config: AgentConfig) -> None:
    for folder in config.folders:
        try:
            parse_path(folder)
        except PathRefused as error:
            raise ConfigError(f"agent {config.name}: folders: {error}") from None


def _check_agent_reviewer(reviewer: AgentConfig, source: Path) -> None:
    try:
        agent_resolution.resolve_reviewer_tools(reviewer)
    except ConfigError as problem:
        raise ConfigError(f"{source}: review.agent: {problem}") from None


def _agent_tools_to_check(config: AgentConfig) -> tuple[list[Tool], bool]:
    """Return the agent's tools, and whether it is a reviewer."""
    try:
        return agent_resolution.resolve_configured_tools(config), False
    except ConfigError:
        if {"verdict", JUDGE}.isdisjoint(config.tools):
            raise
        return agent_resolution.resolve_reviewer_tools(config), True


def _tool_routes_to_check(config: AgentConfig, tools: list[Tool]) -> list[ToolRoute]:
    # Servers are not queried here, so the names of their tools are unknown.
    config.approve = [
        entry
        for entry, tool in zip(config.approve, config.approved_tools, strict=True)
        if not _is_configured_server_tool(tool, config)
    ]
    return agent_resolution.resolve_tool_routes(config, tools)


def _is_configured_server_tool(tool: str, config: AgentConfig) -> bool:
    return any(tool == server or tool.startswith(f"{server}__") for server in config.mcp)


def _check_agent_config(name: str, folder: Path) -> ConfigFinding:
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
    parts += list_open_verifiers(resolved.config)
    if missing:
        # Workers may have them: the command can run on another machine.
        parts.append(f"shell.environment needs {', '.join(missing)}, not set here")
    return ConfigFinding(name, ", ".join(parts), data=data)


def list_open_verifiers(config: AgentConfig) -> list[str]:
    """Return a warning for each verifier that goes through a file that the agent can write."""
    warnings = []
    for verifier in config.verifiers:
        paths = [path for path in files_named(verifier.command) if not path.startswith("..")]
        patterns = verifier.frozen or []
        if runners_named(verifier.command):
            continue
        loose = [path for path in paths if not any(fnmatch(path, each) for each in patterns)]
        if loose:
            warnings.append(
                f"warning: the verifier {verifier.name} goes through {loose[-1]}, a file that the "
                "agent can write: name it under frozen, or keep it under sealed"
            )
    return warnings


def _shared_config_files(folder: Path) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield shared files with their readers, which otherwise read them only on use."""
    readers: dict[str, Callable[[Path], object]] = {
        "guards/*.yaml": read_guards,
        "agents/*/guards/*.yaml": read_guards,
        "prompts/*.md": read_prompt_template,
        "requirements/*.yaml": partial(read_yaml_model, kind=Indicators),
        "briefs/*.yaml": partial(read_yaml_model, kind=StatementWords),
    }
    for pattern, read in readers.items():
        for path in sorted(folder.glob(pattern)):
            yield path, read


def summarise_config_findings() -> CheckResult:
    """Check all agents and shared files, in one line."""
    wrong = [
        finding.problem for finding in check_configuration(root=workspaces_root()) if not finding.ok
    ]
    if wrong:
        more = f" (and {len(wrong) - 1} more: `starter.py config check`)" if wrong[1:] else ""
        return CheckResult("configuration", False, f"{wrong[0]}{more}", "correct it")
    return CheckResult("configuration", True, f"agents {', '.join(agent_names())}")


def list_own_tools(problems: Sequence[str] = ()) -> CheckResult:
    """Name the tools of one's own, or what is wrong with their files."""
    if problems:
        remedy = "correct the files: until then no worker starts"
        return CheckResult("own tools", False, "; ".join(problems), remedy)
    files = own_tools_by_file()
    listing = "; ".join(f"{', '.join(names)} ({file})" for file, names in files.items())
    return CheckResult("own tools", True, listing or "none")


def check_command_variables() -> CheckResult:
    """Check that the variables of `shell.environment` are set here."""
    name, missing, count = "variables of commands", list[str](), 0
    for agent in agent_names():
        try:
            shell = load_agent(agent).shell
        except ConfigError:
            continue  # the check of the configuration says what is wrong
        count += len(shell.environment)
        missing += [
            f"{agent}: {source} (for {variable})"
            for variable, source in missing_variables(shell).items()
        ]
    if missing:
        return CheckResult(
            name, False, f"shell.environment names what is not set here: {', '.join(missing)}",
            "set them where workers start, or take them out of shell.environment",
        )  # fmt: skip
    return CheckResult(name, True, f"{count} named, all set" if count else "none are named")


def check_project_needs(file: Path) -> CheckResult:
    """Check what the agents of a project need on this machine."""
    name = "needs of the project"
    try:
        start = read_project_file(file)[0]
        agents = project_input_agents(start)
    except (UserError, ConfigError) as error:
        return CheckResult(name, False, str(error), "correct the file")
    if why := failing_required_command(start, agents):
        return CheckResult(name, False, why)
    if lacking := list(filter(None, (missing_variable(agent.shell) for agent in agents))):
        return CheckResult(name, False, lacking[0])
    return CheckResult(name, True, ", ".join(required_commands(start)) or "none are named")


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
