"""Describes the command line in Markdown, from the commands themselves."""

from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from cli.app import app
from scripts.docs.markdown import markdown_table

HELP = "--help"


def commands() -> str:
    """Describe every command: its usage, what it does, its arguments and options."""
    return "".join(_command(name, command) for name, command in registered_commands().items())


def registered_commands() -> dict[str, Any]:
    """Return the commands by name, such as `config check`, in the order of `--help`."""
    return _commands_below("", get_command(app))


def command_options(command: Any) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def _commands_below(name: str, command: Any) -> dict[str, Any]:
    inner: dict[str, Any] | None = getattr(command, "commands", None)
    if inner is None:
        return {name: command}
    commands_below: dict[str, Any] = {}
    for word, each in inner.items():
        commands_below |= _commands_below(f"{name} {word}".strip(), each)
    return commands_below


def _command(name: str, command: Any) -> str:
    named = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join(["starter.py", name, *(_command_argument_usage(param) for param in named)])
    rows = [_option_row(param) for param in command.params if HELP not in param.opts]
    description = cleandoc(command.help or "")
    parameters = markdown_table(["argument or option", ""], rows)
    return "\n".join([f"## {name}", "", f"`{usage}`", "", description, "", *parameters, "", ""])


def _command_argument_usage(param: Any) -> str:
    shown = param.metavar or param.name.upper()
    return str(shown if param.required else f"[{shown}]")


def _option_row(param: Any) -> tuple[str, str]:
    if param.param_type_name == "argument":
        return f"`{_command_argument_usage(param)}`", _option_help(param)
    shown = " / ".join([*param.opts, *param.secondary_opts])
    if not param.is_flag:
        shown += f" {param.metavar or param.name.upper()}"
    return f"`{shown}{' …' if param.multiple else ''}`", _option_help(param)


def _option_help(param: Any) -> str:
    """Return an option's help with its choices and its default."""
    text = param.help or ""
    kind = param.type_descriptor.annotation
    if get_origin(kind) is Literal:
        text += f" One of {', '.join(f'`{word}`' for word in get_args(kind))}."
    flag = param.param_type_name == "option" and param.is_flag
    if param.required:
        return str(text if param.param_type_name == "argument" else f"{text} Required.")
    if not flag and param.show_default and param.default not in (None, "", ()):
        text += f" Default: {param.default}."
    return str(text)
