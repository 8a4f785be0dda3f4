"""The rehearsal model as one of a project's agents: plans, writes its part, answers in the file."""

from __future__ import annotations

import json
import re
from typing import Any

from activities.rehearsal import generalist
from activities.rehearsal.plans import Plan, PlanPhase, slug_of
from activities.rehearsal.reading import read_all
from activities.rehearsal.replay import Steps, insist, once
from activities.rehearsal.seen import View, failed

MOST_FEATURES = 3
_ANSWER = re.compile(r"\bwrite\s+(output/(?:features|groups|verdict)\.json)", re.IGNORECASE)
_GROUP = re.compile(r"Work on the group \S+ of the project, in (\w+)/")
_FEATURE = re.compile(r"Make the feature (\S+) of the project, in (\w+)/: (.*)")
_ITEM = re.compile(r"^- (S\d+): (.*)$", re.MULTILINE)
_CHECKS = re.compile(r"each of these checks:\s+([a-z, ]+)")
_TODO = re.compile(r"Write `([\w-]+/[^`]+)`")


def plan(instructions: str) -> Plan | None:
    """The plan of a project's job; None for any other job."""
    asked = instructions.partition("## Amended")[2] or instructions
    if answer := _ANSWER.search(asked):
        steps = [f"Write `{answer[1]}` as the task asks"]
    elif group := _GROUP.search(asked):
        steps = [f"Write `{group[1]}/{slug_of(text)}.md`: {text}" for _, text in _items(asked)]
    elif feature := _FEATURE.search(asked):
        steps = [f"Write `{feature[2]}/{feature[1]}.md`: {feature[3]}"]
    else:
        return None
    head = "# Plan\n\nThe task is small: it is done at once, without a way to choose among others."
    return Plan(head, [PlanPhase("Do the task", "What was handed over is done.", steps)])


def procedure(view: View, text: str) -> Steps | None:
    """The procedure for a todo of such a plan."""
    named = _TODO.match(text)
    if named is None:
        return None
    path = named[1]
    if path in _ANSWERS:
        return _answer(view, path)
    return None if path.startswith(("output/", "notes/")) else generalist.write(path, text)


def _answer(view: View, path: str) -> Steps:
    told = "\n".join((yield from read_all("instructions.md")))
    if path == "output/verdict.json":
        yield from _run(view)
    answer = _ANSWERS[path](told)
    yield from insist("write_file", path=path, content=json.dumps(answer, indent=2) + "\n")
    return f"Wrote {path}."


def _run(view: View) -> Steps:
    """Run something, with what there is."""
    if "run_command" in view.tools:
        result = yield from once("run_command", command="ls -R repo")
        return "Nothing could be run." if failed(result) else "Looked at what is there."
    return "There is nothing to run commands with."


def _features(told: str) -> dict[str, Any]:
    brief = told.rpartition("\n# ")[2].partition("\n")[2]
    steps = generalist.steps_of(brief)[:MOST_FEATURES]
    return {
        "features": [
            {"id": f"f{n}", "description": step, "checks": ["unit"]}
            for n, step in enumerate(steps, 1)
        ]
    }


def _groups(told: str) -> dict[str, Any]:
    if "A wave of groups is through" in told:
        pending = re.search(r"^- \S+ \(pending\)", told, re.MULTILINE)
        return {"groups": []} if pending else {"groups": [], "complete": True}
    return {
        "groups": [
            {"id": f"g{n}", "title": text[:100], "items": [item]}
            for n, (item, text) in enumerate(_items(told), 1)
        ]
    }


def _verdict(told: str) -> dict[str, Any]:
    found = _CHECKS.search(told)
    checks = [name.strip() for name in found[1].split(",")] if found else ["unit"]
    return {
        "health": "What the coder left is there.",
        "checks": [{"check": check, "passed": True} for check in checks],
        "passed": True,
        "findings": [],
    }


_ANSWERS = {
    "output/features.json": _features,
    "output/groups.json": _groups,
    "output/verdict.json": _verdict,
}


def _items(told: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = _ITEM.findall(told)
    return found
