"""The figures as Markdown, put between two markers of a page that people wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.compare.adapters import ADAPTERS
from benchmarks.drifting import ITEMS

MARKED = re.compile(r"(<!-- measured -->\n).*?(<!-- end -->)", re.DOTALL)


def write(page: Path, figures: dict[str, Any]) -> None:
    """Replace what stands between the markers.

    Raises:
        ValueError: the page has no markers.
    """
    text = page.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise ValueError(f"{page} has no <!-- measured --> and <!-- end -->; add them")
    made = MARKED.sub(lambda found: found.group(1) + markdown(figures) + found.group(2), text)
    page.write_text(made, encoding="utf-8")


def markdown(figures: dict[str, Any]) -> str:
    """Three tables: time, what is recorded and where it stops; drift; versions and notes."""
    asked = figures["asked"]
    lines = [
        f"Measured {figures['date']} on {figures['machine']}: {asked['steps']} files, at most "
        f"{asked['cap']:.0f} s a run. The unit of the ratios is a step of the bare engine (two "
        f"activities of Temporal that do nothing): {figures['bare_ms']:.1f} ms. Server: "
        f"`{figures['server']}`.",
        "",
        *_table(_STEPS, [_steps(name, one, figures) for name, one in _there(figures)]),
    ]
    if asked["seeds"]:
        rows = [_drift(name, one) for name, one in _there(figures)]
        lines += [
            "",
            f"A model that drifts at {asked['rate']:.0%} of its calls, {ITEMS} items, "
            f"{asked['seeds']} seeds:",
            "",
            *_table(_DRIFT, rows),
        ]
    rows = [
        [ADAPTERS[name].title, _versions(one), ADAPTERS[name].note] for name, one in _there(figures)
    ]
    lines += ["", *_table(["", "versions", "how it is used"], rows)]
    lines += [
        f"\nNot measured: {ADAPTERS[name].title}, for want of `{one['missing']}`."
        for name, one in figures["runners"].items()
        if "missing" in one
    ]
    return "\n".join(lines) + "\n"


_STEPS = [
    "",
    "ms a step, first and last tenth",
    "ratio, first and last",
    "recorded a step, first and last tenth",
    "recorded in all",
    "largest prompt",
    "as it comes",
    "went as far as",
]
_DRIFT = ["", "items made, mean", "least", "made all", "model calls", "ended"]


def _there(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, one) for name, one in figures["runners"].items() if "missing" not in one]


def _steps(name: str, one: dict[str, Any], figures: dict[str, Any]) -> list[str]:
    steps, unit, wanted = one["steps"], figures["bare_ms"], figures["asked"]["steps"]
    kept = steps["bytes_all"] > 0
    comes = one.get("as_it_comes")
    return [
        ADAPTERS[name].title,
        f"{steps['first_ms']:.0f} · {steps['last_ms']:.0f}",
        f"{steps['first_ms'] / unit:.2f} · {steps['last_ms'] / unit:.2f}",
        f"{_size(steps['bytes_first'])} · {_size(steps['bytes_last'])}" if kept else "nothing",
        _size(steps["bytes_all"]) if kept else "nothing",
        _size(steps["prompt_last"]),
        _far(comes, wanted) if comes else "no limit met",
        _far(steps, wanted),
    ]


def _far(steps: dict[str, Any], wanted: int) -> str:
    """Where a run ended, and why."""
    calls = f"{steps['calls']:,} calls"
    if steps["ended"] == "finished":
        runs = f" in {steps['runs']} runs" if steps["runs"] > 1 else ""
        return f"the end: {wanted:,} files, {calls}{runs}, {steps['seconds']:.0f} s"
    if steps["ended"] == "time":
        return f"{calls} when the time was up"
    return f"{calls}: {_cell(steps['error'])}"


def _drift(name: str, one: dict[str, Any]) -> list[str]:
    drift = one["drift"]
    ends = ", ".join(f"{_cell(end)} {count}" for end, count in drift["ends"].items())
    return [
        ADAPTERS[name].title,
        f"{drift['made']:.1f} of {ITEMS}",
        str(drift["least"]),
        f"{drift['whole']} of {drift['seeds']}",
        f"{drift['calls']:.0f}",
        ends,
    ]


def _versions(one: dict[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in one["versions"].items())


def _cell(text: str) -> str:
    """Text of an error, made fit for a table."""
    short = " ".join(text.split()).replace("|", "/")
    return f"`{short[:120]}`" if short else "no reason given"


def _size(size: float) -> str:
    if size < 1000:
        return f"{size:.0f} B"
    return f"{size / 1000:.1f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(row) + " |" for row in cells]
