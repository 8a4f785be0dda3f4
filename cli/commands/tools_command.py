"""The command `tools`: the tools, and those of an agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Json
from cli.output import (
    FAILED,
    OK,
    UserError,
    print_error,
    print_json,
    print_note,
    print_result,
    render_text_table,
)
from config.schema.agent import ConfigError

if TYPE_CHECKING:
    from cli.tool_listing import ToolListing


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
    tool's arguments as JSON Schema. Exit code 1 if a file of your own tools cannot be loaded.
    """
    # Loading the activities loads the tools.
    from activities.toolkit.own_tools import collecting_tool_problems  # noqa: PLC0415

    with collecting_tool_problems() as tool_problems:
        from cli import tool_listing  # noqa: PLC0415
        from cli.checks.config_checks import check_agent_exists  # noqa: PLC0415

    for problem in tool_problems:
        print_error(problem)
    code = FAILED if tool_problems else OK
    if not agent:
        every = tool_listing.full_tool_listing()
        if json:
            print_json([asdict(entry) for entry in every])
            return code
        for line in render_text_table([entry.as_row() for entry in every], tool_listing.COLUMNS):
            print_result(line)
        _print_own_files(every)
        return code
    check_agent_exists(agent)
    try:
        equipment = tool_listing.agent_tool_listing(agent)
    except ConfigError as problem:
        raise UserError(f"{problem} (`starter.py config check` shows all that is wrong)") from None
    if json:
        print_json(asdict(equipment))
        return code
    for kind, offered in equipment.kinds.items():
        print_result(f"{kind}: {len(offered)} tools")
        for line in render_text_table([entry.as_row() for entry in offered], tool_listing.OFFERED):
            print_result(f"  {line}")
        print_result("")
    print_note(f"the agent {agent} is {equipment.file}")
    for guard, path in equipment.guard_files.items():
        print_note(f"the guard {guard} is in {path}")
    _print_own_files(entry for offered in equipment.kinds.values() for entry in offered)
    for server in equipment.servers:
        print_note(
            f"the tools of the MCP server {server} are known when a job starts, which asks it"
        )
    return code


def _print_own_files(listed: Iterable[ToolListing]) -> None:
    for tool, path in {entry.tool: entry.file for entry in listed if entry.file}.items():
        print_note(f"the tool {tool} is in {path}")
