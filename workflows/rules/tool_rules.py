"""Rules on which tools a phase has, and the refusals of other calls. Pure functions."""

from collections.abc import Sequence

from protocol.phase import PhaseKind
from protocol.short_text import first_few
from protocol.tools import ToolRoute

MOST_NAMED = 30
SHELLS = frozenset(
    {"bash", "shell", "sh", "terminal", "execute_bash", "run_shell_command", "local_shell"}
)
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "apply_patch": ("edit_file", "write_file"),
    "attempt_completion": ("job_complete", "todo_complete"),
    "cat": ("read_file",),
    "create_file": ("write_file",),
    "edit": ("edit_file",),
    "finish": ("job_complete", "todo_complete"),
    "glob": ("list_files",),
    "grep": ("search_files",),
    "list_dir": ("list_files",),
    "ls": ("list_files",),
    "multiedit": ("edit_file",),
    "read": ("read_file",),
    "str_replace": ("edit_file",),
    "str_replace_based_edit_tool": ("read_file", "edit_file", "write_file"),
    "str_replace_editor": ("read_file", "edit_file", "write_file"),
    "task_complete": ("todo_complete", "job_complete"),
    "todowrite": ("todo_write", "todo_complete"),
    "update_plan": ("todo_write", "todo_complete"),
    "view": ("read_file",),
    "write": ("write_file",),
}
"""Lower-case names of other agents' tools that models are trained on, and our equivalents."""


def unknown_tool_refusal(tool: str, offered: Sequence[str]) -> str:
    """Return the answer to a call of a tool that does not exist."""
    if tool.lower() in SHELLS:
        if "run_command" in offered:
            return f"There is no tool {tool!r}; run_command runs a command."
        return (
            f"There is no tool {tool!r}, and no shell in this phase. read_file and search_files "
            "look at files; edit_file and write_file change them."
        )
    if instead := [name for name in OTHER_NAMES.get(tool.lower(), ()) if name in offered]:
        return f"There is no tool {tool!r}; here it is {' or '.join(instead)}."
    pages = ", each with a page in tools/" if len(offered) > MOST_NAMED else ""
    return f"There is no tool {tool!r}. The tools are: {first_few(offered, MOST_NAMED)}{pages}."


def phase_tool_rule(route: ToolRoute, kind: PhaseKind) -> str | None:
    """Return why a tool may not be called in this kind of phase, or None."""
    if kind in route.phases:
        return None
    rule = f"{route.name} belongs to {' and '.join(route.phases)} phases; this is a {kind} one."
    if kind == "strategic":
        return f"{rule} Hand over a todo that uses it with todo_write."
    return f"{rule} Do the current todo with the tools at hand; the next such phase has it."
