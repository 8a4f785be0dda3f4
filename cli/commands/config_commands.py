"""Commands about configuration: `config check`, `config schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import Json
from cli.output import FAILED, OK, print_advice, print_json
from config.editor_schemas import Kind, editor_file_schema
from engine.root_location import workspaces_root

config = typer.Typer(
    help="Check the configuration, or have an editor check it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@config.command("check")
def config_check(
    agents: Annotated[
        list[str] | None,
        typer.Argument(help="Agents to check; all if left out.", metavar="AGENT..."),
    ] = None,
    json: Json = False,
) -> int:
    """Load agents as a start would, and report whether each is fine, or what is wrong and where.

    An agent is checked with its prompts, phrases, guards, hooks, tools and graph. Without names,
    guard files and prompts that no agent uses are checked too, and always the guards that the
    workspaces root has learned, and the files of your own tools. Variables of `shell.environment`
    that are not set here are named. What else a machine may lack (an endpoint, a sandbox, MCP
    servers) is checked by `doctor` or the start. Exit code 1 if anything is wrong. Needs no server.
    """
    # Loading the activities takes a second. It loads the tools, which are among what is checked.
    from activities.toolkit.own_tools import collecting_tool_problems  # noqa: PLC0415

    with collecting_tool_problems() as tool_problems:
        from cli.checks import config_checks  # noqa: PLC0415

    for name in agents or []:
        config_checks.check_agent_exists(name)
    findings = []
    for finding in config_checks.check_configuration(
        agents or (), root=workspaces_root(), tool_problems=tool_problems
    ):
        findings.append(finding)
        if not json:
            print_advice(finding.as_line())
    if json:
        print_json([finding.as_json() for finding in findings])
    return OK if all(finding.ok for finding in findings) else FAILED


@config.command("schema")
def config_schema(
    kind: Annotated[Kind, typer.Argument(help="Kind of file.")] = "agent", json: Json = False
) -> int:
    """Print the JSON Schema (2020-12) of a kind of file, with which editors complete and check it.

    Example: `starter.py config schema agent > agent.schema.json`; then, as the first line of an
    `agent.yaml`: `# yaml-language-server: $schema=../../../agent.schema.json`.
    """
    print_json(editor_file_schema(kind))
    return OK
