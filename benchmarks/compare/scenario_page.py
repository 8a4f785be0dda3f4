"""Renders what happened in the scenarios: a row per runner, a column per scenario."""

from collections.abc import Callable
from typing import Any

from benchmarks.compare.adapters import ADAPTERS
from benchmarks.compare.comparison_page import comparison_page_table, page_cell


def scenario_page_markdown(figures: dict[str, Any]) -> str:
    """Render the table of `measure_scenarios`."""
    rows = [
        [ADAPTERS[runner].title, ADAPTERS[runner].resumes]
        + [_scenario_cell(name, measured.get(name)) for name in _COLUMNS]
        for runner, measured in figures["runners"].items()
    ]
    head = ["", "goes on after a kill", *(heading for heading, _ in _COLUMNS.values())]
    lines = [f"Seen {figures['date']} on {figures['machine']}, once each.", ""]
    return "\n".join([*lines, *comparison_page_table(head, rows)]) + "\n"


def _scenario_cell(name: str, figures: dict[str, Any] | None) -> str:
    if figures is None or "missing" in figures:
        return f"not measured: {figures['missing']}" if figures else "not measured"
    cell, ending = _COLUMNS[name][1](figures), _scenario_ending(figures)
    return f"{ending}; {cell}" if "with_a" in figures else f"{cell}; {ending}"


def _scenario_ending(figures: dict[str, Any]) -> str:
    if figures["ended"] == "finished":
        return "it ends"
    reason = f": {page_cell(figures['error'])}" if figures["error"] else ""
    return ("it stands still" if figures["ended"] == "time" else "it stops") + reason


def _begun_call(figures: dict[str, Any]) -> str:
    return "begun once" if figures["begun"] == 1 else f"begun {figures['begun']} times"


def _cut_reply(figures: dict[str, Any]) -> str:
    return (
        f"{figures['done_again']} of {figures['done']} answered calls made twice, "
        f"{figures['cut_again']} of {figures['cut']} under way begun again, {figures['lost']} lost"
    )


def _changed_loop(figures: dict[str, Any]) -> str:
    if "with_a" in figures:
        ends = figures["with_a"] == "finished"
        return "ends once A is back" if ends else "does not end with A back either"
    return "begins anew" if figures["done_again"] else "goes on"


def _changed_prompt(figures: dict[str, Any]) -> str:
    seen = f"B's {figures['version']}" if figures["version"] else "A's prompt and tools"
    return _changed_loop(figures) + ("" if "with_a" in figures else f" with {seen}")


_COLUMNS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "long": ("a call of 10 minutes, default limits", _begun_call),
    "cut": ("killed in a call of 60 s", _begun_call),
    "reply": ("killed after 2 of a reply's 5 calls", _cut_reply),
    "recovery": ("killed, and its server or database in recovery", _begun_call),
    "prompt": ("B has another prompt and tool", _changed_prompt),
    "loop": ("B has another step", _changed_loop),
}
"""Heading and cell by scenario."""
