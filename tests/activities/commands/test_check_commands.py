"""Commands by which the system looks for itself: `done_when` of a todo, verifiers of a phase."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.commands import sandbox
from activities.commands.sealed_files import sealed_digest
from activities.guards.tool_routes import guarded_route
from activities.job.done_when import read_done_when
from activities.phases.phase_tags import phase_tag
from activities.steps.gate_facts import gate_facts
from activities.steps.judge_ending import judge_ending
from activities.toolkit.registry import REGISTRY
from config.agent_files import load_agent
from protocol.endings import EndingRequest, EndingVerdict, FactsRequest, GateFacts, GuardPoint
from protocol.todo_list import Todo
from tests.activities.guards.hooks.scripts import hook
from tests.activities.projects.proving import SHELL as SANDBOXED
from tests.activities.standing import AT, Standing, environment

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
TOOLS = ["files", "todos", "job", "shell"]


def standing(path: Path, **config: Any) -> Standing:
    return Standing.begin(path, kind="tactical", set={"tools": TOOLS, **config})


def condition(job: Standing, command: str) -> None:
    snapshot = job.open()
    snapshot.state.phase.todos = [
        Todo(id=1, content="Build.", done_when=read_done_when({"command": command})),
        Todo(id=2, content="Look."),
    ]
    job.commit = snapshot.save("condition", AT)


def place(job: Standing) -> dict[str, Any]:
    return {"root": job.root.id, "commit": job.commit, "at": AT, "step": job.step, "call": 0}


def facts(job: Standing) -> GateFacts:
    job.reply(("todo_complete", "{}"))
    reply = environment(local=False).run(gate_facts(job.root), FactsRequest(**place(job)))
    found: GateFacts = reply.facts
    return found


def ending(
    job: Standing, *points: GuardPoint, tool: str = "todo_complete", **more: Any
) -> EndingVerdict:
    raw = {"summary": "s", "deliverables": [], "confidence": 1} if tool == "job_complete" else {}
    job.reply((tool, json.dumps(raw)))
    request = EndingRequest(**place(job), points=list(points), **more)
    verdict: EndingVerdict = environment(local=False).run(judge_ending(job.root), request)
    return verdict


def test_a_todo_is_done_when_its_command_succeeds(tmp_path: Path) -> None:
    job = standing(tmp_path)
    condition(job, "echo looking; touch left; grep -q tea tea.md")
    refused = job.call("todo_complete")
    assert "done when this command succeeds: echo looking" in refused
    assert "exit code 2" in refused
    assert "looking" in refused
    job.write("tea.md", "tea")
    assert job.call("todo_complete").startswith("Completed todo 1")
    assert "left" not in job.paths()


@pytest.mark.parametrize(
    ("command", "is_done"),
    [
        ("echo 1 failed && false | tail -3", False),
        ("(echo passed; exit 1) 2>&1 | tee log | tail -3 && echo seen", False),
        ("(echo passed; exit 1)|tail -3", False),
        ("echo passed | tail -3", True),
        ("n=$(grep refused /dev/null | wc -l) && test $n -eq 0 && echo passed", True),
        ("(echo refused; exit 2) | grep -q refused", True),
        ("(echo refused; exit 2) | sed s/r/R/ | grep -q Refused", True),
        ("printf 'a;|b' | /usr/bin/wc -l", True),
    ],
)
def test_a_filter_behind_a_pipe_does_not_hide_a_failure(
    tmp_path: Path, command: str, is_done: bool
) -> None:
    job = standing(tmp_path)
    condition(job, command)
    assert job.call("todo_complete").startswith("Completed todo 1") is is_done


def test_the_gate_of_a_phase_runs_it_too(tmp_path: Path) -> None:
    job = standing(tmp_path)
    condition(job, "test -e tea.md")
    assert "It failed (exit code 1) without output." in (facts(job).unmet or "")
    job.write("tea.md", "tea")
    assert facts(job).unmet is None


def test_a_list_with_commands_is_refused_where_none_can_be_run(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    todos = (
        "phase: p\ndescription: d\ntodos: [{id: 1, content: c, done_when: {command: make test}}]"
    )
    job.write("todos.yaml", todos)
    assert "no command can be run here" in (facts(job).todos[0].done_when_error or "")


def test_an_agent_with_commands_completes_todos_in_a_regular_activity() -> None:
    config = load_agent("generalist", {"tools": TOOLS})
    route = guarded_route(config, REGISTRY["todo_complete"])
    assert not route.local
    assert route.seconds > config.shell.seconds
    assert guarded_route(load_agent("generalist"), REGISTRY["todo_complete"]).local


def test_a_verifier_keeps_a_phase_from_ending_until_it_passes(tmp_path: Path) -> None:
    verifier = {"name": "tests", "command": "touch left; cat tea.md"}
    job = standing(tmp_path, verifiers=[verifier])
    refused = ending(job, "todo_complete", "phase_end")
    assert refused.guard == "tests"
    assert "Refused by tests: It failed (exit code 1)" in refused.refusal
    assert "cat: tea.md" in refused.refusal
    assert "touch" not in refused.refusal
    passed_over = ending(job, "todo_complete", "phase_end", bypass=["tests"])
    assert (passed_over.refusal, passed_over.bypassed_guard) == ("", "tests")
    job.write("tea.md", "tea")
    assert ending(job, "todo_complete", "phase_end").refusal == ""
    assert "left" not in job.paths()


def test_a_bypass_is_not_used_up_by_a_call_that_another_refuses(tmp_path: Path) -> None:
    hooks = {"PreToolUse": [hook(tmp_path / "h0.py", "sys.exit(2)")]}
    job = standing(tmp_path, hooks=hooks, verifiers=[{"name": "tests", "command": "cat tea.md"}])
    refused = ending(job, "todo_complete", "phase_end", bypass=["h0"])
    assert (refused.guard, refused.bypassed_guard) == ("tests", "")
    job.write("tea.md", "tea")
    passed_over = ending(job, "todo_complete", "phase_end", bypass=["h0"])
    assert (passed_over.refusal, passed_over.bypassed_guard) == ("", "h0")


def test_a_verifier_runs_at_the_end_of_its_phases_and_of_the_job(tmp_path: Path) -> None:
    job = standing(tmp_path, verifiers=[{"name": "v", "command": "false", "phases": ["strategic"]}])
    assert ending(job, "todo_complete", "phase_end").refusal == ""
    assert ending(job, "job_complete", tool="job_complete").guard == "v"
    config = load_agent("generalist", {"verifiers": [{"name": "v", "command": "true"}]})
    assert guarded_route(config, REGISTRY["todo_complete"]).guarded
    assert guarded_route(config, REGISTRY["job_complete"]).guarded


def test_a_verifier_that_cannot_run_is_no_pass(tmp_path: Path) -> None:
    job = standing(
        tmp_path,
        verifiers=[
            {"name": "lint", "command": "no-such-linter ."},
            {"name": "slow", "command": "sleep 60", "seconds": 1},
        ],
    )
    lint = ending(job, "todo_complete", "phase_end").refusal
    assert "exit code 127, which says that a program could not be run" in lint
    slow = ending(job, "todo_complete", "phase_end", bypass=["lint"])
    assert "did not end within 1 s" in slow.refusal


TEST = "from tea import brew\n\n\ndef test_one():\n    assert brew(1) == 2\n"
SHELL = {"readable": SANDBOXED.readable, "path": SANDBOXED.path}


def begun_with(
    path: Path, verifier: dict[str, Any], files: dict[str, str], **config: Any
) -> Standing:
    """Return a job that began with these files."""
    job = standing(path, verifiers=[{"name": "v", **verifier}], shell=SHELL, **config)
    for name, text in files.items():
        job.write(name, text)
    job.open().checkpoints.tag(phase_tag(1), job.commit)
    return job


HOLLOW = [
    ("make check", {"Makefile": "check:\n\t@echo 5 passed\n"}, "put back Makefile"),
    ("sh check.sh", {"check.sh": "exit 0\n"}, "put back check.sh"),
    ("python3 -m pytest -q", {"test_tea.py": ""}, "exit code 5"),
    ("python3 -m unittest", {"unittest.py": "print('OK')\n"}, "in place of the real"),
    ("python3 -m pytest -q", {"pytest.ini": "[pytest]\naddopts = --co\n"}, "found no tests"),
    (
        "python3 -m pytest -q",
        {"conftest.py": "import pytest\n\n\n@pytest.hookimpl(tryfirst=True)\n"
         "def pytest_runtest_setup(item):\n    item.obj = item.runtest = lambda: None\n"},
        "does not show it as failed",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "wrong", "why"), HOLLOW)
def test_a_verifier_cannot_be_hollowed_out(
    tmp_path: Path, command: str, wrong: dict[str, str], why: str
) -> None:
    begun = {"tea.py": "def brew(cups):\n    return 1\n", "test_tea.py": TEST}
    begun |= {"Makefile": "check:\n\tpython3 -m pytest\n", "check.sh": "python3 -m pytest\n"}
    job = begun_with(tmp_path, {"command": command}, begun)
    for name, text in wrong.items():
        job.write(name, text)
    refused = ending(job, "todo_complete", "phase_end").refusal
    assert why in refused


def test_a_verifier_of_tests_passes_honest_work(tmp_path: Path) -> None:
    job = begun_with(tmp_path, {"command": "python3 -m pytest -q"}, {"test_tea.py": TEST})
    job.write("tea.py", "def brew(cups):\n    return cups * 2\n")
    job.write("conftest.py", "import pytest\n\n\n@pytest.fixture\ndef cup():\n    return 1\n")
    assert ending(job, "job_complete", tool="job_complete").refusal == ""
    job.write("test_tea.py", TEST.replace("test_one", "test_other"))
    refused = ending(job, "job_complete", tool="job_complete").refusal
    assert "are gone, skipped or expected to fail: test_tea.py::test_one" in refused


def test_files_that_a_verifier_names_as_frozen(tmp_path: Path) -> None:
    verifier = {"command": "sh ci/check.sh", "frozen": ["ci/**"]}
    job = begun_with(tmp_path, verifier, {"ci/check.sh": "cat ci/data tea.md\n", "ci/data": "x\n"})
    job.write("tea.md", "tea")
    assert ending(job, "todo_complete", "phase_end").refusal == ""
    job.write("ci/data", "y\n")
    assert "put back ci/data" in ending(job, "todo_complete", "phase_end").refusal


def test_sealed_files_are_read_by_checks_alone(tmp_path: Path) -> None:
    sealed = tmp_path / "answers"
    sealed.mkdir()
    (sealed / "want").write_text("secret tea")
    config = {"sealed": [{"path": str(sealed), "digest": sealed_digest(sealed)}]}
    job = begun_with(tmp_path, {"command": "diff /sealed/answers/want tea.md"}, {}, **config)
    assert "No such file" in job.call("run_command", command="cat /sealed/answers/want")
    job.write("tea.md", "other tea")
    refused = ending(job, "todo_complete", "phase_end").refusal
    assert "It failed (exit code 1) without output." in refused
    job.write("tea.md", "secret tea")
    assert ending(job, "todo_complete", "phase_end").refusal == ""
    told = {**config["sealed"][0], "done_when": True}
    for place, (entry, holds) in enumerate(((config["sealed"][0], False), (told, True))):
        other = standing(tmp_path / str(place), sealed=[entry])
        condition(other, "test -e /sealed/answers")
        assert other.call("todo_complete").startswith("Completed todo 1") is holds
    (sealed / "want").write_text("easy tea")
    assert "is not as it was" in ending(job, "todo_complete", "phase_end").refusal
