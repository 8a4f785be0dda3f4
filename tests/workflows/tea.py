"""Jobs that write a guide on tea, in eight phases: two documents and what goes with them."""

from __future__ import annotations

from typing import Any

from tests.brief import BRIEF

SHORT = {
    **BRIEF,
    "todos.rewind": ["Write in notes/ what went wrong", "Revise plan.md", "Call todo_write"],
    "todos.fork": ['Note what "Amended" changes', "Revise plan.md", "Call todo_write"],
}
"""As few todos as there can be, for any agent: half the steps of the shipped configuration."""
WHOLE = {"agent": "generalist", "instructions": "Write a guide on tea. Cover green tea."}
"""With the todos of the shipped configuration."""
TEA = {**WHOLE, "set": SHORT}


def tea(**details: Any) -> dict[str, Any]:
    """The input of such a job with further details; `set` adds to the short lists."""
    return {**TEA, **details, "set": {**SHORT, **details.get("set", {})}}


def in_phase(number: int) -> Any:
    """For `Jobs.until`: the job is in the phase of that number, or was: a phase is short."""
    return lambda phase: phase and phase["number"] >= number


def start_of(status: dict[str, Any], number: int) -> str:
    """The checkpoint a phase began with."""
    [found] = [entry["id"] for entry in status["checkpoints"] if entry["phase"] == number]
    return str(found)
