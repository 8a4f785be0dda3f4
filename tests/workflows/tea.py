"""Jobs on tea: a guide of two documents in eight phases, and one page in three."""

from typing import Any

from tests.brief import BRIEF

SHORT = {
    **BRIEF,
    "todos.rewind": ["Write in notes/ what went wrong", "Revise plan.md", "Call todo_write"],
    "todos.fork": ['Note what "Amended" changes', "Revise plan.md", "Call todo_write"],
}
"""As few todos as possible, for any agent: half the steps of the shipped configuration."""
TEA = {
    "agent": "generalist",
    "instructions": "Write a guide on tea. Cover green tea.",
    "set": SHORT,
}
PAGE: dict[str, Any] = {
    "agent": "generalist",
    "instructions": "Work on the group tea of the project, in output/.\n\n"
    "It covers these items, all of them:\n- green tea\n",
    "set": {
        **SHORT,
        "todos.bootstrap": ["Write plan.md", "Call todo_write"],
        "todos.rewind": ["Revise plan.md", "Call todo_write"],
        "todos.transition": ["Mark progress in plan.md", "Call job_complete"],
    },
}
"""One page, written in phase 2 of three: a quarter of the steps, for tests that need no more."""


def tea(**details: Any) -> dict[str, Any]:
    """Return the input of such a job with further details; `set` adds to the short lists."""
    return {**TEA, **details, "set": {**SHORT, **details.get("set", {})}}


def page(**details: Any) -> dict[str, Any]:
    """Return the input of such a job with further details; `set` adds to its lists."""
    return {**PAGE, **details, "set": {**PAGE["set"], **details.get("set", {})}}


def in_phase(number: int) -> Any:
    """Return a condition for `Jobs.until`: the job has reached the phase of that number; phases are
    short.
    """
    return lambda phase: phase and phase["number"] >= number


def start_of(status: dict[str, Any], number: int) -> str:
    """Return the checkpoint that a phase began with."""
    [checkpoint] = [entry["id"] for entry in status["checkpoints"] if entry["phase"] == number]
    return str(checkpoint)
