"""Commands about configuration: `config check`, `config schema`, `init`."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from cli.options import Json
from cli.output import FAILED, OK, UserError, print_advice, print_json, print_note, print_result
from config.editor_schemas import Kind, editor_file_schema
from config.layers import VARIABLE
from engine.program_names import name_running_program
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


FOLDER = Path(__file__).parents[1] / "first_folder"
TEXTS = (".md", ".py", ".yaml")


def init(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder to create; it may exist if it is empty.", metavar="FOLDER"),
    ] = Path("longhaul"),
    json: Json = False,
) -> int:
    """Write a commented folder for your own agents, guards, tools and projects; say what is next.

    LONGHAUL_CONFIG names such folders. Existing files are not overwritten.
    """
    target = folder.expanduser().absolute()
    try:
        present = sorted(path.name for path in target.iterdir()) if target.exists() else []
        if present:
            raise UserError(
                f"{target}: the folder is not empty ({', '.join(present[:5])}); nothing was "
                "written. Name another one"
            )
        written = _copy_first_folder(target)
    except OSError as error:
        where = error.filename or target
        raise UserError(f"{where}: cannot be written ({error.strerror or error})") from None
    if json:
        print_json({"folder": str(target), "files": [str(path) for path in written]})
        return OK
    for path in written:
        print_result(str(path))
    print_note(
        "next:\n"
        f"  export {VARIABLE}={shlex.quote(str(target))}\n"
        "  starter.py config check editor\n"
        "  starter.py demo --agent editor --keep\n"
        'or, with a server and a worker: starter.py start editor --instructions "…"'
    )
    return OK


def _copy_first_folder(target: Path) -> list[Path]:
    written = []
    for source in sorted(path for path in FOLDER.rglob("*") if path.suffix in TEXTS):
        place = target / source.relative_to(FOLDER)
        place.parent.mkdir(parents=True, exist_ok=True)
        # Make the copies writable: a package's files may be read-only.
        shutil.copyfile(source, place)
        place.write_text(name_running_program(place.read_text(encoding="utf-8")), encoding="utf-8")
        written.append(place)
    return written
