"""Commands about agents' configuration: config check, config schema, tools."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli import job_rendering
from cli.options import Json
from cli.output import FAILED, OK, UserError, print_advice, print_json, print_note, print_result
from config.agent_files import agent_names
from config.editor_schemas import Kind, editor_file_schema
from config.schema.agent import ConfigError
from engine.workspaces_root import workspaces_root

config = typer.Typer(
    help="Check the configuration, or have an editor check it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@config.command()
def check(
    agents: Annotated[
        list[str] | None,
        typer.Argument(help="Agents to check; all if left out.", metavar="AGENT..."),
    ] = None,
    json: Json = False,
) -> int:
    """Load agents as a start would, and report whether each is fine, or what is wrong and where.

    An agent is checked with its prompts, phrases, guards, hooks, tools and graph. Without names,
    guard files and prompts that no agent uses are checked too, and always the guards that the
    workspaces root has learned. Variables of `shell.environment` that are not set here are named.
    What else a machine may lack (an endpoint, a sandbox, MCP servers) is checked by `doctor` or the
    start. Exit code 1 if anything is wrong. Needs no server.
    """
    from cli import config_checks  # noqa: PLC0415 - loads the activities, which takes a second

    for name in agents or []:
        _check_agent_argument(name)
    findings = []
    for finding in config_checks.check_configuration(agents or (), root=workspaces_root()):
        findings.append(finding)
        if not json:
            print_advice(finding.as_line())
    if json:
        print_json([finding.as_json() for finding in findings])
    return OK if all(finding.ok for finding in findings) else FAILED


@config.command("schema")
def schema_(
    kind: Annotated[Kind, typer.Argument(help="Kind of file.")] = "agent", json: Json = False
) -> int:
    """Print the JSON Schema (2020-12) of a kind of file, with which editors complete and check it.

    Example: `starter.py config schema agent > agent.schema.json`; then, as the first line of an
    `agent.yaml`: `# yaml-language-server: $schema=../../../agent.schema.json`.
    """
    print_json(editor_file_schema(kind))
    return OK


def tools(
    agent: Annotated[
        str, typer.Argument(help="An agent, to list the tools it is offered in each kind of phase.")
    ] = "",
    json: Json = False,
) -> int:
    """List the tools: what each does, what it may change, and how it runs.

    `reads` and `writes` concern the workspace, `outside` is anything else. A `local` tool runs
    within the step, the others as separate activities. With AGENT, list the tools that its model is
    offered, by kind of phase, with the guards and hooks that may judge a call. --json adds each
    tool's arguments as JSON Schema.
    """
    from cli import tool_listing  # noqa: PLC0415 - loads the activities

    if not agent:
        every = tool_listing.full_tool_listing()
        if json:
            print_json([asdict(entry) for entry in every])
            return OK
        for line in job_rendering.render_text_table(
            [entry.as_row() for entry in every], tool_listing.COLUMNS
        ):
            print_result(line)
        return OK
    _check_agent_argument(agent)
    try:
        equipment = tool_listing.agent_tool_listing(agent)
    except ConfigError as problem:
        raise UserError(f"{problem} (`starter.py config check` shows all that is wrong)") from None
    if json:
        print_json(asdict(equipment))
        return OK
    for kind, offered in equipment.kinds.items():
        print_result(f"{kind}: {len(offered)} tools")
        for line in job_rendering.render_text_table(
            [entry.as_row() for entry in offered], tool_listing.OFFERED
        ):
            print_result(f"  {line}")
        print_result("")
    print_note(f"the agent {agent} is {equipment.file}")
    for guard, path in equipment.guard_files.items():
        print_note(f"the guard {guard} is in {path}")
    for server in equipment.servers:
        print_note(
            f"the tools of the MCP server {server} are known when a job starts, which asks it"
        )
    return OK


def _check_agent_argument(agent: str) -> None:
    if agent not in (names := agent_names()):
        raise UserError(f"agent {agent!r} is not known; the agents are {', '.join(names)}")


def add_config_commands(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.add_typer(config, name="config")
    app.command()(tools)
