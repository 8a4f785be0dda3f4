"""Commands in a job on a real server: todos and phases that end when commands succeed; a cancel."""

import asyncio
import io
import json
import logging
import time
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.commands import sandbox
from cli.jobs.job_view import view_job
from engine.logs import shorten_logged_failure
from rehearsal import Reply, call
from rehearsal.script import Script
from tests.soak import patient
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, hand_over, job, plan

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
SET: dict[str, Any] = {"tools": ["files", "todos", "job", "shell"]}


def run(command: str) -> Call:
    return ("run_command", {"command": command})


async def test_a_phase_ends_when_its_commands_succeed(temporal: Client, root: Root) -> None:
    # The command makes first what the todo's check wants, then what the verifier wants.
    work = run("cd output; if [ -e tea.md ]; then echo x > tested.md; else echo tea > tea.md; fi")
    command = "grep -q tea output/tea.md"
    model = Short(
        {
            "Plan": [
                plan("[ ] Boil", "[ ] Brew"),
                hand_over({"done_when": {"command": command}}),
                DONE,
            ],
            "Work": [work, DONE],
            "Close": [close("output/tea.md", "output/tested.md")],
        }
    )
    verifier = {"name": "tests", "command": "test -e output/tested.md"}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**SET, "verifiers": [verifier]}))
        result = await jobs.result(handle, 30)
        assert result["status"] == "completed"
        status = await handle.query("status")
        assert status["guards"]["refused"] == {"tests": 1}
        log = (jobs.folder(handle) / "commands" / "log.jsonl").read_text()
        assert log.count('"exit_code": 0') == 2
        # Private folders of commands are removed with the job.
        assert not list((root.path / ".longhaul" / "private").iterdir())


async def test_a_phase_does_not_end_over_a_command_that_failed_unread(
    temporal: Client, root: Root
) -> None:
    """Otherwise its output would be lost with the phase before the model has seen it."""
    succeeding, failing = run("echo tea > output/tea.md"), run("echo cold; exit 3")
    works = iter([[succeeding, failing, DONE]])
    model = Short(
        {
            "Plan": [plan("[ ] Boil", "[ ] Brew"), hand_over({}), DONE],
            "Work": lambda view: next(works, [DONE]),
            "Close": [close("output/tea.md")],
        }
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=SET))
        result = await jobs.result(handle, 30)
        assert result["status"] == "completed"
        page = (jobs.folder(handle) / "archive" / "phase_002.md").read_text()
        history = jobs.snapshot(handle, result["checkpoint"]).history
    assert "completed" in page
    messages = [
        json.loads(line)["content"]
        for entry in history.walk()
        if entry.kind == "file"
        for line in history.read_entry(entry).splitlines()
        if b"Not counted yet" in line
    ]
    assert messages == [
        "Error: Not counted yet: run_command before it failed (Exit code 3). See to that, then "
        "call todo_complete again."
    ]


async def test_retries_of_a_failing_setup_are_shown_and_logged_in_one_line(
    temporal: Client, root: Root
) -> None:
    model = Short({"Work": [run("true"), DONE]})
    log = logging.StreamHandler(io.StringIO())
    log.addFilter(shorten_logged_failure)
    logger = logging.getLogger("temporalio.activity")
    logger.addHandler(log)
    setting = {**SET, "shell.setup": ["echo one; echo no such index; exit 3"]}
    failed = "of shell.setup failed (exit code 3): no such index. Mend what it installs from."
    try:
        async with serving(temporal, root, model) as jobs:
            handle = await jobs.start(job(set=setting))
            retried: list[str] = []
            for _ in range(300):
                if retried := (await view_job(temporal, handle.id)).status.retrying:
                    break
                await asyncio.sleep(0.1)
            status = await jobs.until(handle, status="waiting")
            await handle.signal("cancel", {})
            await jobs.until(handle, status="cancelled")
    finally:
        logger.removeHandler(log)
    assert retried[0].startswith("run_command: attempt ")
    assert failed in retried[0]
    assert f"starter.py fork {handle.id} --phase N --set 'shell.setup=" in retried[0]
    assert status["waiting_for"] == "dependency"
    lines = log.stream.getvalue().splitlines()
    assert len(lines) == 4
    assert (
        f"run_command of {handle.id} failed (Dependency), attempt 1; next attempt in 1 s"
        in (lines[0])
    )
    assert all(failed in line for line in lines)


async def test_a_name_that_is_not_utf_8_stops_no_job(temporal: Client, root: Root) -> None:
    """Such a name passes through summaries, a rewind, a judge and a reviewer."""
    creation = run(r"echo old > $(printf 'notes/a\351'); seq 20000")
    changed = run(r"echo >> $(printf 'notes/a\351'); printf '\0' > $(printf 'b\377'); seq 20000")
    lost = ("todo_rewind", {"issue": "The water is cold."})
    works = iter([creation, creation, changed, creation, lost, creation, creation, changed])
    accepted = call("accept", findings="Good.")
    model = Short(
        {"Work": lambda view: [next(works, DONE)], "Rethink": [DONE], "Close": [close()]},
        reviewer=lambda request: accepted,
    )
    settings = {**SET, "judge": {"attempts": 2}, "context.tokens": 6000, "reflection": False}
    review = {"review": {"agent": "reviewer", "attempts": 2, "calls": 3}}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**settings, **review}))
        result = await jobs.result(handle, 40)
        status = await handle.query("status")
    assert (result["status"], status["rewinds"]) == ("completed", 1)


async def test_a_cancel_ends_a_running_command(temporal: Client, root: Root) -> None:
    model = Short({"Work": [run("touch begun; sleep 300")]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=SET))
        private = root.path / ".longhaul" / "private"
        until = time.monotonic() + 60
        while not list(private.glob("*/*/workspace/begun")) and time.monotonic() < until:
            await handle.query("status")
        began = time.monotonic()
        await handle.signal("cancel", {"reason": "enough"})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle, 30)
        assert time.monotonic() - began < patient(3)
        assert not (jobs.folder(handle) / "begun").exists()


LIST: dict[str, Any] = {
    **SET,
    "todos.work": ["Make the tea.", "Taste it."],
    "todos.final": ["Call job_complete with the tea."],
}
FINISH = ("job_complete", {"summary": "Tea.", "deliverables": ["output/tea.md"], "confidence": 1})


async def test_a_job_does_not_end_in_the_reply_of_a_command_that_failed(
    temporal: Client, root: Root
) -> None:
    model = Script(
        Reply(calls=[run("echo tea > output/tea.md"), DONE, DONE]),
        Reply(calls=[run("echo hot >> output/tea.md; grep -c cold output/tea.md"), FINISH]),
        Reply(calls=[run("cat output/tea.md"), FINISH]),
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(job(set=LIST)), 30)
    model.verify()
    assert (result["status"], result["phases"]) == ("completed", 1)
    told = [str(each["content"]) for each in model.requests[2]["messages"]]
    assert told[-2].startswith("Error: Not counted yet: run_command")


async def test_a_list_with_commands_is_completed_where_it_is_worked_on(
    temporal: Client, root: Root
) -> None:
    model = Script(
        Reply(calls=[FINISH]),
        Reply(calls=[run("echo tea > output/tea.md; echo cold | grep hot | tail -1"), DONE, DONE]),
        Reply(calls=[FINISH]),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=LIST))
        result = await jobs.result(handle, 30)
        status = await handle.query("status")
    model.verify()
    told = [
        str(each["content"]) for each in model.requests[2]["messages"] if each["role"] == "tool"
    ]
    assert "does not exist" in told[0]
    # A filter hides no failure, as in checks.
    assert told[1].startswith("Exit code 1")
    assert (result["status"], result["phases"]) == ("completed", 1)
    assert {todo["status"] for todo in status["todos"]} == {"completed"}
    assert status["scope"]["open"] == 0
