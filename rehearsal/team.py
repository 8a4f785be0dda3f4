"""The rehearsal model as one of a project's agents: plans, writes its part, answers in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from typing import Any

from protocol.handoffs import REPORT_FILES
from rehearsal import generalist, software
from rehearsal.plans import Plan, PlanPhase, slug_of
from rehearsal.replay import Call, Steps, closing, once
from rehearsal.request_view import View
from rehearsal.tool_answers import read_all

MOST_FEATURES = 8
ROLES = ("initializer", "coder", "tester")
"""Agents whose work is one list."""
_ANSWER = re.compile(r"\bwrite\s+(output/(?:features|groups|verdict)\.json)", re.IGNORECASE)
_GROUP = re.compile(
    r"Work on the group \S+ of the project, in (\w+)/[\s\S]*?items, all of them:\n((?:- .*\n)+)"
)
_FEATURE = re.compile(r"Make the feature (\S+) of the project, in (\w+)/: (.*)")
_ITEM = re.compile(r"^- (S\d+): (.*)$", re.MULTILINE)
_LISTED = re.compile(r"^- (.*)$", re.MULTILINE)
_SET_UP = re.compile(r"(\w+)/ is the project's repository: make what every feature")
_TESTED = re.compile(r"Test the feature (\S+), which is in (\w+)/")
_CHECKS = re.compile(r"each of these checks:\s+([a-z, ]+)")
_TODO = re.compile(r"(Write|Run) `([\w-]+/[^`]+)`(?:: (.*))?")
_PYTHON = re.compile(r"(\w+)/(?:(tests/test_)|tests/)?(\w+)\.py")


def plan(instructions: str) -> Plan | None:
    """The plan of a project's job; None for any other job."""
    asked = instructions.partition("## Amended")[2] or instructions
    if answer := _ANSWER.search(asked):
        steps = [f"Write `{answer[1]}` as the task asks"]
        if set_up := _SET_UP.search(asked):
            folder = set_up[1]
            layout = [f"Write `{folder}/README.md`: how it is laid out and its tests are run"]
            steps = [*layout, f"Write `{folder}/tests/__init__.py`", *steps]
    elif group := _GROUP.search(asked):
        steps = [
            f"Write `{group[1]}/{slug_of(text)}.md`: {text}" for text in _LISTED.findall(group[2])
        ]
    elif feature := _FEATURE.search(asked):
        folder, module = feature[2], software.module_of(feature[1])
        steps = [
            f"Write `{folder}/{module}.py`: {feature[3]}",
            f"Write `{folder}/tests/test_{module}.py`: {feature[3]}",
            f"Run `{folder}/tests/test_{module}.py`",
        ]
    else:
        return None
    head = "# Plan\n\nThe task is small: it is done at once, without a way to choose among others."
    return Plan(head, [PlanPhase("Do the task", "What was handed over is done.", steps)])


def of_role(view: View, text: str) -> Steps | None:
    """The procedure for a todo of the list that an agent of a project brings; None for others."""
    if view.agent not in ROLES:
        return None
    wanted = text.lower()
    # What is asked now: of a job that goes on from another the amended part.
    task = view.opening.partition("## Amended")[2] or view.opening
    if "verdict.json" in wanted:
        return _judge(task)
    if "features.json" in wanted:
        return _answer("output/features.json")
    if "layout" in wanted:
        return _lay_out(task)
    if "make the feature" in wanted:
        return _make(task)
    if "run the tests" in wanted or "run each named check" in wanted:
        return _test(task)
    return _noted("What is to be made stands in the task.")


def finish_role(view: View) -> Steps:
    """End the job of such an agent."""
    made = {"initializer": ["output/features.json"], "tester": ["output/verdict.json"]}
    failed_before = [one for one in view.made if one.tool == "job_complete"]
    arguments: dict[str, Any] = {
        "summary": "The task is done as it asks.",
        "deliverables": made.get(view.agent, []),
        "confidence": 0.8,
        "notes": "Worked through by the rehearsal model, by rules.",
    }
    if failed_before:
        why = failed_before[-1].result[:300]
        checks = ", ".join(re.findall(r"\b(?:unit|api|browser|db)\b", why)[:1]) or "unit"
        arguments["unresolved"] = [f"{checks}: could not be mended by rules. {why}"]
    yield [("job_complete", arguments)]
    return "The job is complete."


def _judge(task: str) -> Steps:
    content = json.dumps((yield from _verdict(task)), indent=2) + "\n"
    path = REPORT_FILES["verdict"]
    return (yield from closing(f"Wrote {path}.", "write_file", path=path, content=content))


def _noted(note: str) -> Steps:
    yield from ()
    return note


def _lay_out(task: str) -> Steps:
    found = _SET_UP.search(task)
    folder = found[1] if found else "repo"
    readme = "# The project\n\nTests are in tests/: python3 -m unittest.\n"
    first = ("write_file", {"path": f"{folder}/README.md", "content": readme})
    note = "The layout is there, and how its tests are run."
    path = f"{folder}/tests/__init__.py"
    return (yield from closing(note, "write_file", first, path=path, content=""))


def _make(task: str) -> Steps:
    found = _FEATURE.search(task)
    if found is None:
        return "Nothing names a feature."
    folder, told, module = found[2], found[3], software.module_of(found[1])
    source = {"path": f"{folder}/{module}.py", "content": software.source(told)}
    note, path = f"Made {module}.py with its tests.", f"{folder}/tests/test_{module}.py"
    tests = software.tests(module, told)
    return (
        yield from closing(note, "write_file", ("write_file", source), path=path, content=tests)
    )


def _test(task: str) -> Steps:
    found = _FEATURE.search(task)
    if found:
        return (yield from _run(found[2], software.module_of(found[1])))
    tested = _TESTED.search(task)
    if tested is None:
        return "Nothing names a feature."
    return (yield from _run(tested[2], software.module_of(tested[1])))


def procedure(text: str) -> Steps | None:
    """The procedure for a todo of such a plan."""
    named = _TODO.match(text)
    if named is None:
        return None
    verb, path, told = named.groups()
    if path in REPORT_FILES.values():
        return _answer(path)
    if python := _PYTHON.fullmatch(path):
        folder, of_tests, module = python.groups()
        if verb == "Run":
            return _run(folder, module)
        if not told:
            return _write(path, "")
        return _write(path, software.tests(module, told) if of_tests else software.source(told))
    return None if path.startswith(("output/", "notes/")) else generalist.write(path, text)


def _write(path: str, content: str) -> Steps:
    return (yield from closing(f"Wrote {path}.", "write_file", path=path, content=content))


def _run(folder: str, module: str) -> Steps:
    result = yield from once("run_command", command=software.command(folder, module))
    found = software.findings(result)
    return f"The tests fail: {found[0]}" if found else "The tests pass."


def _answer(path: str) -> Steps:
    told = "\n".join((yield from read_all("instructions.md")))
    asked = told.rpartition("## Amended")[2]
    answer: dict[str, Any]
    if path == "output/verdict.json":
        answer = yield from _verdict(asked)
    else:
        answer = _ANSWERS[path](told)
    content = json.dumps(answer, indent=2) + "\n"
    return (yield from closing(f"Wrote {path}.", "write_file", path=path, content=content))


def _features(told: str) -> dict[str, Any]:
    brief = told.rpartition("\n# ")[2].partition("\n")[2]
    steps = generalist.steps_of(brief)[:MOST_FEATURES]
    found = []
    for number, step in enumerate(steps, 1):
        shown = software.examples(step)
        name = shown[0].name if shown else f"f{number}"
        tests = {"unit": software.test_command(name)}
        found.append({"id": name, "description": step, "checks": ["unit"], "tests": tests})
    return {"features": found}


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


def _verdict(told: str) -> Generator[list[Call], list[str], dict[str, Any]]:
    """Run the feature's tests and say what came of it."""
    found = _CHECKS.search(told)
    checks = [name.strip() for name in found[1].split(",")] if found else ["unit"]
    tested = _TESTED.search(told)
    feature, folder = (tested[1], tested[2]) if tested else ("f1", "repo")
    result = yield from once("run_command", command=software.command(folder, feature))
    wrong = software.findings(result)
    return {
        "health": "The tests can be started." if "Ran " in result else "Nothing can be started.",
        "checks": [{"check": check, "passed": not wrong} for check in checks],
        "passed": not wrong,
        "findings": wrong,
    }


_ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "output/features.json": _features,
    "output/groups.json": _groups,
}


def _items(told: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = _ITEM.findall(told)
    return found
