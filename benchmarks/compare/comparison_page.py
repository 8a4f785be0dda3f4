"""Writes the figures as Markdown between two markers of a hand-written page."""

import re
from pathlib import Path
from typing import Any

from benchmarks.compare.adapters import ADAPTERS
from benchmarks.drifting_model import ITEMS


def update_comparison_page(page: Path, part: str, measured: str) -> None:
    """Replace the text between this part's markers. Raises ValueError: the page has no markers."""
    text, marker = page.read_text(encoding="utf-8"), f"<!-- measured: {part} -->"
    marked = re.compile(rf"({marker}\n).*?(<!-- end -->)", re.DOTALL)
    if not marked.search(text):
        raise ValueError(f"{page} has no {marker} and <!-- end -->; add them")
    updated = marked.sub(lambda match: match.group(1) + measured + match.group(2), text)
    page.write_text(updated, encoding="utf-8")


def comparison_page_markdown(figures: dict[str, Any]) -> str:
    """Render three tables: steps, drift, and versions with notes."""
    plan = figures["asked"]
    lines = [
        f"Measured {figures['date']} on {figures['machine']}: {plan['steps']} files, at most "
        f"{plan['cap']:.0f} s a run. The unit of the ratios is a step of the bare engine (two "
        f"activities of Temporal that do nothing): {figures['bare_ms']:.1f} ms. Server: "
        f"`{figures['server']}`.",
        "",
        *comparison_page_table(
            _STEPS,
            [
                _adapter_steps_row(name, measured, figures)
                for name, measured in _compared_adapters(figures)
            ],
        ),
    ]
    if plan["seeds"]:
        rows = [
            _comparison_drift_row(name, measured) for name, measured in _compared_adapters(figures)
        ]
        lines += [
            "",
            f"A model that drifts at {plan['rate']:.0%} of its calls, {ITEMS} items, "
            f"{plan['seeds']} seeds:",
            "",
            *comparison_page_table(_DRIFT, rows),
        ]
    rows = [
        [
            ADAPTERS[name].title,
            ", ".join(" ".join(each) for each in measured["versions"].items()),
            ADAPTERS[name].note,
        ]
        for name, measured in _compared_adapters(figures)
    ]
    lines += ["", *comparison_page_table(["", "versions", "how it is used"], rows)]
    lines += [
        f"\nNot measured: {ADAPTERS[name].title}, for want of `{measured['missing']}`."
        for name, measured in figures["runners"].items()
        if "missing" in measured
    ]
    return "\n".join(lines) + "\n"


_STEPS = [
    "",
    "ms a step, first and last tenth",
    "ratio, first and last",
    "recorded a step, first and last tenth",
    "recorded in all",
    "Actions a model call",
    "largest prompt",
    "as it comes",
    "went as far as",
]
_DRIFT = ["", "items made, mean", "least", "made all", "model calls", "ended"]


def _compared_adapters(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, measured)
        for name, measured in figures["runners"].items()
        if "missing" not in measured
    ]


def _adapter_steps_row(name: str, runner: dict[str, Any], figures: dict[str, Any]) -> list[str]:
    steps, unit, expected = runner["steps"], figures["bare_ms"], figures["asked"]["steps"]
    records = steps["bytes_all"] > 0
    as_it_comes = runner.get("as_it_comes")
    return [
        ADAPTERS[name].title,
        f"{steps['first_ms']:.0f} · {steps['last_ms']:.0f}",
        f"{steps['first_ms'] / unit:.2f} · {steps['last_ms'] / unit:.2f}",
        f"{_comparison_size_text(steps['bytes_first'])} · "
        f"{_comparison_size_text(steps['bytes_last'])}"
        if records
        else "nothing",
        _comparison_size_text(steps["bytes_all"]) if records else "nothing",
        f"{steps['actions_per_call']:.2f}" if steps["actions_per_call"] else "no Temporal",
        _comparison_size_text(steps["prompt_last"]),
        _comparison_reach_text(as_it_comes, expected) if as_it_comes else "no limit met",
        _comparison_reach_text(steps, expected),
    ]


def _comparison_reach_text(steps: dict[str, Any], steps_wanted: int) -> str:
    """Describe where a run ended, and why."""
    calls = f"{steps['calls']:,} calls"
    if steps["ended"] == "finished":
        runs = f" in {steps['runs']} runs" if steps["runs"] > 1 else ""
        return f"the end: {steps_wanted:,} files, {calls}{runs}, {steps['seconds']:.0f} s"
    if steps["ended"] == "time":
        return f"{calls} when the time was up"
    return f"{calls}: {page_cell(steps['error'])}"


def _comparison_drift_row(name: str, figures: dict[str, Any]) -> list[str]:
    drift = figures["drift"]
    ends = ", ".join(f"{page_cell(end)} {count}" for end, count in drift["ends"].items())
    return [
        ADAPTERS[name].title,
        f"{drift['made']:.1f} of {ITEMS}",
        str(drift["least"]),
        f"{drift['whole']} of {drift['seeds']}",
        f"{drift['calls']:.0f}",
        ends,
    ]


def page_cell(text: str) -> str:
    """Escape an error's text for a table cell."""
    short = " ".join(text.split()).replace("|", "/")
    return f"`{short[:120]}`" if short else "no reason given"


def _comparison_size_text(size: float) -> str:
    if size < 1000:
        return f"{size:.0f} B"
    return f"{size / 1000:.1f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def comparison_page_table(head: list[str], rows: list[list[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(row) + " |" for row in cells]
