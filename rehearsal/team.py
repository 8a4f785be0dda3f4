"""The rehearsal model as a project's agent: it plans, works, and writes the typed answer file."""

import json
import re
from collections.abc import Callable, Generator
from typing import Any

from protocol.agent_reports import REPORT_FILES, ReportKind
from protocol.handoffs import SAME_TASK
from rehearsal import generalist, programmer
from rehearsal.procedure_replay import (
    Call,
    Steps,
    call_procedure_tool,
    close_procedure_todo,
    write_and_close,
)
from rehearsal.rehearsal_plan import RehearsalPlan, RehearsalPlanPhase, rehearsed_plan_slug
from rehearsal.request_view import RequestView
from rehearsal.tool_answers import read_file_from_tool_answers

MAX_FEATURES = 8
ROLES = ("initializer", "coder", "tester", "manager")
"""Agents whose whole work is one configured list."""
_ANSWER = re.compile(r"\bwrite\s+(output/(?:features|groups|verdict)\.json)", re.IGNORECASE)
_GROUP = re.compile(
    r"Work on the group \S+ of the project, in (\w+)/[\s\S]*?items, all of them:\n((?:- .*\n)+)"
)
_FEATURE = re.compile(r"Make the feature (\S+) of the project, in (\w+)/:\s(.*)")
_ITEM = re.compile(r"^- (S\d+): (.*)$", re.MULTILINE)
_LISTED = re.compile(r"^- (.*)$", re.MULTILINE)
_SET_UP = re.compile(r"(\w+)/ is the project's repository: make what every feature")
_TESTED = re.compile(r"Test the feature (\S+), which is in (\w+)/")
_CHECKS = re.compile(r"each of these checks:\s+([a-z, ]+)")
_TODO = re.compile(r"Write `([\w-]+/[^`]+)`")


def plan_team_job(instructions: str) -> RehearsalPlan | None:
    """Return the plan of a project's job; None for any other job."""
    task = _current_task(instructions)
    if answer := _ANSWER.search(task):
        steps = [f"Write `{answer[1]}` as the task asks"]
    elif group := _GROUP.search(task):
        steps = [
            f"Write `{group[1]}/{rehearsed_plan_slug(text)}.md`: {text}"
            for text in _LISTED.findall(group[2])
        ]
    else:
        return None
    head = "# Plan\n\nThe task is small: it is done at once, without a way to choose among others."
    return RehearsalPlan(
        head, [RehearsalPlanPhase("Do the task", "What was handed over is done.", steps)]
    )


def _current_task(text: str) -> str:
    """Return the amended part of a job that continues another one, unless the task is the same."""
    amended = text.partition("## Amended")[2]
    return amended if amended and SAME_TASK not in amended else text


def team_role_procedure(view: RequestView, text: str) -> Steps | None:
    """Return the procedure for a todo of such a configured list; None for other agents."""
    if view.agent not in ROLES:
        return None
    lowered = text.lower()
    task = _current_task(view.opening)
    if "job_complete" in lowered:
        return finish_team_role(view)
    if "verdict.json" in lowered:
        return _write_team_verdict(task)
    if answer := re.search(r"output/(?:features|groups)\.json", lowered):
        return _write_team_answer(answer[0])
    if "layout" in lowered:
        return _write_team_layout(task)
    if "make the feature" in lowered:
        return _make_feature(task)
    if "run the tests" in lowered or "run each named check" in lowered:
        return _test_feature(task)
    return _note_team_todo("What is to be made stands in the task.")


def finish_team_role(view: RequestView) -> Steps:
    """End the job of such an agent."""
    reports: dict[str, ReportKind] = {
        "initializer": "features",
        "tester": "verdict",
        "manager": "groups",
    }
    kind = reports.get(view.agent)
    failed_before = [call for call in view.calls if call.tool == "job_complete"]
    arguments: dict[str, Any] = {
        "summary": "The task is done as it asks.",
        "deliverables": [REPORT_FILES[kind]] if kind else [],
        "confidence": 0.8,
        "notes": "Worked through by the rehearsal model, by rules.",
    }
    if failed_before:
        why = failed_before[-1].result[:300]
        checks = ", ".join(re.findall(r"\b(?:unit|api|browser|db)\b", why)[:1]) or "unit"
        arguments["unresolved"] = [f"{checks}: could not be mended by rules. {why}"]
    yield [("job_complete", arguments)]
    return "The job is complete."


def _write_team_verdict(task: str) -> Steps:
    content = json.dumps((yield from _verdict_on_feature_tests(task)), indent=2) + "\n"
    path = REPORT_FILES["verdict"]
    return (yield from write_and_close(f"Wrote {path}.", path, content))


def _note_team_todo(note: str) -> Steps:
    yield from ()
    return note


def _write_team_layout(task: str) -> Steps:
    match = _SET_UP.search(task)
    folder = match[1] if match else "repo"
    readme = "# The project\n\nTests are in tests/: python3 -m unittest.\n"
    first = ("write_file", {"path": f"{folder}/README.md", "content": readme})
    note = "The layout is there, and how its tests are run."
    path = f"{folder}/tests/__init__.py"
    return (yield from close_procedure_todo(note, "write_file", first, path=path, content=""))


def _make_feature(task: str) -> Steps:
    match = _FEATURE.search(task)
    if match is None:
        return "Nothing names a feature."
    folder, description, module = match[2], match[3], programmer.feature_module_path(match[1])
    source = {
        "path": f"{folder}/{module}.py",
        "content": programmer.feature_module_source(description),
    }
    note, path = f"Made {module}.py with its tests.", f"{folder}/tests/test_{module}.py"
    tests = programmer.feature_test_source(module, description)
    return (
        yield from close_procedure_todo(
            note, "write_file", ("write_file", source), path=path, content=tests
        )
    )


def _test_feature(task: str) -> Steps:
    feature = _FEATURE.search(task)
    if feature:
        return (yield from _run_team_tests(feature[2], programmer.feature_module_path(feature[1])))
    tested = _TESTED.search(task)
    if tested is None:
        return "Nothing names a feature."
    return (yield from _run_team_tests(tested[2], programmer.feature_module_path(tested[1])))


def choose_team_procedure(text: str) -> Steps | None:
    """Return the procedure for a todo of a plan by `plan_team_job`; None for other todos."""
    named = _TODO.match(text)
    if named is None:
        return None
    path = named[1]
    if path in REPORT_FILES.values():
        return _write_team_answer(path)
    return (
        None
        if path.startswith(("output/", "notes/"))
        else generalist.write_generalist_result(path, text)
    )


def _run_team_tests(folder: str, module: str) -> Steps:
    result = yield from call_procedure_tool(
        "run_command", command=programmer.programmer_test_in_workspace(folder, module)
    )
    findings = programmer.programmer_test_findings(result)
    return f"The tests fail: {findings[0]}" if findings else "The tests pass."


def _write_team_answer(path: str) -> Steps:
    instructions = "\n".join((yield from read_file_from_tool_answers("instructions.md")))
    task = instructions.rpartition("## Amended")[2]
    answer: dict[str, Any]
    if path == "output/verdict.json":
        answer = yield from _verdict_on_feature_tests(task)
    else:
        answer = _ANSWERS[path](instructions)
    content = json.dumps(answer, indent=2) + "\n"
    return (yield from write_and_close(f"Wrote {path}.", path, content))


def _list_team_features(instructions: str) -> dict[str, Any]:
    brief = instructions.rpartition("\n# ")[2].partition("\n")[2]
    steps = generalist.steps_in_instructions(brief)[:MAX_FEATURES]
    features = []
    for number, step in enumerate(steps, 1):
        shown = programmer.parse_programmer_examples(step)
        name = shown[0].name if shown else f"f{number}"
        tests = {"unit": programmer.programmer_test_command(name)}
        features.append({"id": name, "description": step, "checks": ["unit"], "tests": tests})
    return {"features": features}


def _list_team_groups(instructions: str) -> dict[str, Any]:
    if "A wave of groups is through" in instructions:
        pending = re.search(r"^- \S+ \(pending\)", instructions, re.MULTILINE)
        return {"groups": []} if pending else {"groups": [], "complete": True}
    return {
        "groups": [
            {"id": f"g{n}", "title": text[:100], "items": [item]}
            for n, (item, text) in enumerate(_team_scope_items(instructions), 1)
        ]
    }


def _verdict_on_feature_tests(task: str) -> Generator[list[Call], list[str], dict[str, Any]]:
    """Run the feature's tests and return the verdict on them."""
    match = _CHECKS.search(task)
    checks = [name.strip() for name in match[1].split(",")] if match else ["unit"]
    tested = _TESTED.search(task)
    feature, folder = (tested[1], tested[2]) if tested else ("f1", "repo")
    result = yield from call_procedure_tool(
        "run_command", command=programmer.programmer_test_in_workspace(folder, feature)
    )
    wrong = programmer.programmer_test_findings(result)
    return {
        "health": "The tests can be started." if "Ran " in result else "Nothing can be started.",
        "checks": [{"check": check, "passed": not wrong} for check in checks],
        "passed": not wrong,
        "findings": wrong,
    }


_ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "output/features.json": _list_team_features,
    "output/groups.json": _list_team_groups,
}


def _team_scope_items(instructions: str) -> list[tuple[str, str]]:
    items: list[tuple[str, str]] = _ITEM.findall(instructions)
    return items
