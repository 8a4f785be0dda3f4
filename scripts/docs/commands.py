"""The command line as Markdown, from the commands themselves."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from typer.main import get_command

from cli.app import app

HELP = "--help"


def commands() -> str:
    """Every command: its usage, what it does, its arguments and options."""
    return "".join(_command(name, command) for name, command in registered().items())


def registered() -> dict[str, Any]:
    """The commands by name, in the order in which `--help` lists them."""
    found: dict[str, Any] = getattr(get_command(app), "commands")  # noqa: B009 - Group or Command
    return found


def options(command: Any) -> set[str]:
    """Every option the command takes."""
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def _command(name: str, command: Any) -> str:
    named = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join(["starter.py", name, *(_argument(param) for param in named)])
    rows = [_row(param) for param in command.params if HELP not in param.opts]
    table = ["| argument or option | |", "|---|---|", *rows]
    told = cleandoc(command.help or "")
    return "\n".join([f"## {name}", "", f"`{usage}`", "", told, "", *table, "", ""])


def _argument(param: Any) -> str:
    shown = param.metavar or param.name.upper()
    return str(shown if param.required else f"[{shown}]")


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"| `{_argument(param)}` | {param.help} |"
    shown = " / ".join([*param.opts, *param.secondary_opts])
    if not param.is_flag:
        shown += f" {param.metavar or param.name.upper()}"
    told = param.help or ""
    if param.multiple:
        return f"| `{shown} …` | {told} |"
    if param.required:
        told += " Required."
    elif not param.is_flag and param.default not in (None, ""):
        told += f" Default: {param.default}."
    return f"| `{_escaped(shown)}` | {told} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
