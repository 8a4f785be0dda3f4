"""`starter.py`: registers the commands and sets exit codes."""

import inspect
import logging
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from cli import output
from cli.commands.adopt_command import adopt
from cli.commands.config_commands import config, init
from cli.commands.diff_command import diff
from cli.commands.doctor_command import doctor
from cli.commands.evidence_command import evidence, verify
from cli.commands.files_command import files
from cli.commands.forget_command import forget
from cli.commands.graph_command import graph
from cli.commands.learning_commands import guards, traces
from cli.commands.look_commands import list_, log, report, show, watch
from cli.commands.mcp_command import mcp
from cli.commands.requirements_command import requirements
from cli.commands.sandbox_command import sandbox
from cli.commands.schedules_commands import schedules
from cli.commands.signal_commands import (
    answer,
    approve,
    bypass,
    cancel,
    deny,
    limit,
    pause,
    resume,
    rewind,
    tell_job,
)
from cli.commands.start_commands import demo, fork, project, start
from cli.commands.tools_command import tools
from cli.commands.trial_command import trial
from config.schema.agent import ConfigError
from engine import logs
from engine.exit_codes import INTERRUPTED
from engine.program_names import name_running_program
from protocol.errors import Refusal
from protocol.payload_reading import EncryptedPayloadError
from protocol.short_text import one_line

GONE = output.OK
"""A reader such as `head` has closed the pipe, which is no error."""

app = typer.Typer(
    name="starter.py",
    help=(
        "Run language-model agents as durable jobs.\n\n"
        "A job is a Temporal workflow: it survives any crash, and whatever is done to it here can "
        "be done in the Temporal Web UI as well.\n\n"
        "First time: `starter.py demo` shows everything on a real document. Then, with a server "
        "and a worker (`python worker.py`) running: `start`, `watch`, `show`, `files`.\n\n"
        "Exit codes: 0 well, 1 the job failed or was cancelled or a check failed, 2 a mistake in "
        "the command, no server or output that cannot be written, 130 after Ctrl-C."
    ),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
_BEGIN, _LOOK, _STEER, _SET_UP = "Begin", "Look", "Steer", "Set up and keep house"
for begin in (demo, start, project, fork, trial):
    app.command(rich_help_panel=_BEGIN)(begin)
app.add_typer(schedules, name="schedules", rich_help_panel=_BEGIN)
app.command("list", rich_help_panel=_LOOK)(list_)
for look in (show, watch, files, diff, log, report, evidence, verify, traces, requirements, graph):
    app.command(rich_help_panel=_LOOK)(look)
app.command("tell", rich_help_panel=_STEER)(tell_job)
for steer in (pause, resume, rewind, cancel, limit, answer, approve, deny, bypass, adopt):
    app.command(rich_help_panel=_STEER)(steer)
app.add_typer(config, name="config", rich_help_panel=_SET_UP)
for set_up in (doctor, sandbox, tools, guards, init, forget, mcp):
    app.command(rich_help_panel=_SET_UP)(set_up)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        output.print_result(_version())
        raise typer.Exit


@app.callback()
def app_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def _version() -> str:
    try:
        return metadata.version("longhaul-agents")
    except metadata.PackageNotFoundError:
        project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
        return f"{project['project']['version']} (checkout)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: Command line without the program's name; None for the process's own.
    """
    output.escape_unencodable_output()
    _name_program_in_help(app)
    try:
        code = _run_reporting_errors(arguments)
    except BrokenPipeError:
        return GONE
    except SystemExit as ended:
        # Typer and Rich turn a broken pipe into this.
        if isinstance(ended.__context__, BrokenPipeError):
            return GONE
        return ended.code if isinstance(ended.code, int) else output.FAILED
    except OSError:
        # The stream may have dropped the output, so write one more line to see the error again.
        if not (error := output.write_error_line("\n")):
            raise
    else:
        if not (error := output.write_error_line()):
            return code
    with suppress(OSError):  # this message may be unwritable too
        output.print_note(f"error: the output cannot be written: {error.strerror}")
    return output.MISTAKE


def _name_program_in_help(group: typer.Typer) -> None:
    """Let the help name commands as this process was called."""
    info = group.info
    for attribute in ("name", "help"):
        if isinstance(text := getattr(info, attribute), str):
            setattr(info, attribute, name_running_program(text))
    for command in group.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = name_running_program(text)
    for inner in group.registered_groups:
        if inner.typer_instance:
            _name_program_in_help(inner.typer_instance)


def _run_reporting_errors(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        logging.basicConfig(level=logs.log_level("ERROR"))
        return _run_app_command(words)
    except (Refusal, ConfigError) as error:
        output.print_error(str(error), json="--json" in words)
        return output.MISTAKE
    except EncryptedPayloadError as error:
        output.print_error(f"what Temporal holds cannot be read: {error}", json="--json" in words)
        return output.MISTAKE
    except (KeyboardInterrupt, Abort):
        return INTERRUPTED


def _run_app_command(arguments: list[str]) -> int:
    _check_command_encoding(arguments)
    try:
        code = app(arguments, standalone_mode=False)
    except TyperException as error:
        # Replace Pydantic's wording, which Typer shows for a wrong choice.
        if message := error.format_message().replace(": Value error, ", ": ", 1):
            message = f"{one_line(message, output.LONGEST).rstrip('.')} (see --help)"
            output.print_error(message, json="--json" in arguments)
        return output.MISTAKE
    return code if isinstance(code, int) else output.OK if code is None else output.FAILED


def _check_command_encoding(arguments: list[str]) -> None:
    for argument in arguments:
        # Python represents undecodable bytes as surrogates, which cannot be encoded later.
        raw = argument.encode(errors="surrogateescape")
        try:
            raw.decode()
        except UnicodeDecodeError:
            printable = one_line(raw.decode(errors="backslashreplace"), output.SHOWN)
            raise output.UserError(
                f"argument '{printable}' is not UTF-8; write it in UTF-8, and give a file with "
                "such a name another one"
            ) from None
