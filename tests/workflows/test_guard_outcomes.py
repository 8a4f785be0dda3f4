"""Guards and hooks in a job on a real server: refusals, one-time bypasses, Stop hooks."""

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from rehearsal.request_view import RequestView
from rehearsal.wire import Answer, Request
from tests.activities.guards.hooks.scripts import hook
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, TEA, Call, Short, close, job

SECRET = "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE"
WRITE: Call = ("write_file", {"path": "notes/key.md", "content": SECRET})
Asked = tuple[Jobs, WorkflowHandle[Any, Any]]
ASK: Call = ("request_clarification", {"question": "May I?", "default": "No."})


async def test_a_refusal_shows_and_a_bypass_holds_once(temporal: Client, root: Root) -> None:
    short, messages = Short({"Work": [WRITE, ASK, WRITE, WRITE, TEA, DONE]}), []

    def model(request: Request) -> Answer:
        messages.append(str(request["messages"][-1]["content"]))
        return short(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        await handle.signal("bypass", {"guard": "secrets"})
        status = await jobs.until(handle, waiting_for="clarification")
        assert status["guards"]["refused"] == {"secrets": 1}
        assert status["refusals"] >= 1
        assert any("has refused nothing" in line for line in status["notices"])
        [refusal] = [line for line in status["notices"] if "guard secrets refused" in line]
        assert "refused write_file: " in refusal
        assert "Refused by" not in refusal
        assert "AKIA" not in str(status)
        await handle.signal("bypass", {"guard": "secrets", "reason": "an example"})
        await jobs.until(handle, guards=lambda told: bool(told["bypasses"]))
        await handle.signal("answer", {"text": "Yes."})
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        status = await query_status(handle)
        assert status["guards"]["refused"] == {"secrets": 2}
        assert status["guards"]["bypasses"] == {}
        assert any("bypass of secrets let write_file through" in s for s in status["notices"])
        assert "lets through once what secrets refused" in "".join(messages)
        assert (jobs.folder(handle) / "notes/key.md").read_text() == SECRET


async def test_a_person_is_shown_the_call_as_guards_have_rewritten_it(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    body = (
        "if event['arguments']['path'] == 'notes/a.txt':\n"
        "    print(json.dumps({'permissionDecision': 'ask', 'permissionDecisionReason': 'Sure?',\n"
        "        'updatedInput': {'file_path': 'output/a.md'}}))"
    )
    hooks = {"PreToolUse": [hook(tmp_path / "asks.py", body, matcher="Write")]}
    write: Call = ("write_file", {"path": "notes/a.txt", "content": "A."})
    async with serving(temporal, root, Short({"Work": [write, TEA, DONE]})) as jobs:
        handle = await jobs.start(job(set={"hooks": hooks}))
        status = await jobs.until(handle, waiting_for="approval")
        assert status["approval"]["arguments"] == {"path": "output/a.md", "content": "A."}
        assert status["waiting"]["about"]["  path"] == "output/a.md"
        await handle.signal("approve", {})
        await jobs.result(handle)
        folder = jobs.folder(handle)
        assert (folder / "output/a.md").read_text() == "A."
        assert not (folder / "notes/a.txt").exists()


@dataclass
class Sending:
    """A job with a command that reaches outside, and that is asked about once it has run."""

    outside: Path
    """What the command reaches."""
    start: dict[str, Any]

    @property
    def model(self) -> Short:
        command = (
            f"echo sent >> {self.outside}; echo '{{\"done\": true}}' > a.json; echo new > b.md"
        )
        return Short({"Work": [("run_command", {"command": command}), TEA, DONE]})


@pytest.fixture
def sending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sending:
    guards = tmp_path / "config" / "guards"
    guards.mkdir(parents=True)
    (guards / "mine.yaml").write_text(
        "- {name: mine, point: before_tool, decision: ask, message: Sure?,\n"
        "   match: {changes: {path: [a.json], field: done}}}\n"
    )
    (tmp_path / "config" / "defaults.yaml").write_text('start: {set: ["*"]}\n')
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path / "config"))
    settings = {
        "tools": ["files", "todos", "job", "shell"],
        "guards": ["mine"],
        "shell.sandbox": "none",
        "shell.network": True,
    }
    return Sending(tmp_path / "outside", job(set=settings))


@asynccontextmanager
async def sent_and_asked(temporal: Client, root: Root, sending: Sending) -> AsyncIterator[Asked]:
    """The job once its command has run, and a person is asked about it."""
    async with serving(temporal, root, sending.model) as jobs:
        handle = await jobs.start(sending.start)
        await jobs.until(handle, waiting_for="approval")
        yield jobs, handle


async def test_a_remark_before_the_approval_does_not_run_a_command_twice(
    temporal: Client, root: Root, sending: Sending
) -> None:
    async with sent_and_asked(temporal, root, sending) as (jobs, handle):
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        (jobs.folder(handle) / "c.md").write_text("a person's")
        await handle.signal("tell", {"text": "Use green tea."})
        await handle.signal("resume", {})
        await jobs.until(handle, waiting_for="approval")
        await handle.signal("approve", {})
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        folder = jobs.folder(handle)
        assert (folder / "a.json").read_text() == '{"done": true}\n'
        assert (folder / "b.md").read_text() == "new\n"
        assert (folder / "c.md").read_text() == "a person's"
    assert sending.outside.read_text() == "sent\n"


async def test_an_approval_on_another_host_does_not_run_a_command_twice(
    temporal: Client, root: Root, sending: Sending
) -> None:
    async with sent_and_asked(temporal, root, sending) as (jobs, handle):
        # The ledger is on the host where the command ran.
        shutil.rmtree(root.repository(handle.id) / "replies")
        await handle.signal("approve", {})
        assert (await jobs.result(handle))["status"] == "completed"
        assert not (jobs.folder(handle) / "a.json").exists()
    assert sending.outside.read_text() == "sent\n"


async def test_hooks_deny_rewrite_and_keep_the_job_from_ending(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    gate = (
        "if not os.path.exists(os.path.join(event['cwd'], 'output/proof.md')):\n"
        "    print('write output/proof.md', event['stop_hook_active'], file=sys.stderr)\n"
        "    sys.exit(2)"
    )
    moves = (
        "path = event['arguments']['path']\n"
        "if path == 'output/proof.txt':\n"
        "    print(json.dumps({'updatedInput': {'file_path': 'output/proof.md'}}))\n"
        "if path == 'forbidden.md':\n"
        "    print('never', file=sys.stderr)\n"
        "    sys.exit(2)"
    )
    hooks = {
        "PreToolUse": [hook(tmp_path / "moves.py", moves, matcher="Write")],
        "Stop": [hook(tmp_path / "gate.py", gate)],
    }

    def finish(view: RequestView) -> Sequence[Call]:
        last = view.calls[-1].result if view.calls else ""
        if "write output/proof.md True" in last:
            return [("write_file", {"path": "output/proof.txt", "content": "done"})]
        if "write output/proof.md False" in last:
            return [("write_file", {"path": "forbidden.md", "content": "x"})]
        return [close("output/tea.md")]

    async with serving(temporal, root, Short({"Close": finish})) as jobs:
        handle = await jobs.start(job(set={"hooks": hooks}))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        status = await query_status(handle)
        assert status["guards"]["refused"] == {"gate": 2, "moves": 1}
        assert any("moves rewrote the arguments" in line for line in status["notices"])
        folder = jobs.folder(handle)
        assert (folder / "output/proof.md").read_text() == "done"
        assert not (folder / "forbidden.md").exists()


async def test_a_stop_hook_is_told_in_the_next_phase_that_it_has_blocked_before(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    once = "if not event['stop_hook_active']: print('not yet', file=sys.stderr); sys.exit(2)"

    def finish(view: RequestView) -> Sequence[Call]:
        refused = view.calls and "not yet" in view.calls[-1].result
        return [
            ("todo_rewind", {"issue": "The hook says no."}) if refused else close("output/tea.md")
        ]

    async with serving(temporal, root, Short({"Close": finish})) as jobs:
        settings = {"hooks": {"Stop": [hook(tmp_path / "once.py", once)]}, "reflection": False}
        handle = await jobs.start(job(set=settings))
        result = await jobs.result(handle)
        assert (result["status"], result["rewinds"]) == ("completed", 1)
        assert (await query_status(handle))["guards"]["refused"] == {"once": 1}


async def test_a_job_that_its_hook_never_lets_end_waits_for_a_person(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    never = hook(tmp_path / "never.py", "print('never', file=sys.stderr); sys.exit(2)")
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(job(set={"hooks": {"Stop": [never]}}))
        status = await jobs.until(handle, waiting_for="review")
        assert status["guards"]["refused"] == {"never": 3}
        assert status["refused_completions"] == 3
        await handle.signal("resume", {})
        status = await jobs.until(
            handle, waiting_for="review", step=lambda step: step > status["step"]
        )
        assert status["refused_completions"] == 3
        await handle.signal("cancel", {})


NEVER = {
    "request_clarification": ASK,
    "wait": ("wait", {"seconds": 80_000, "until": "the kettle boils"}),
}


@pytest.mark.parametrize("tool", NEVER)
async def test_a_refused_wait_or_question_does_not_begin(
    temporal: Client, root: Root, tmp_path: Path, tool: str
) -> None:
    body = "print('never', file=sys.stderr); sys.exit(2)"
    hooks = {"PreToolUse": [hook(tmp_path / "never.py", body, matcher=tool)]}
    async with serving(temporal, root, Short({"Work": [NEVER[tool], TEA, DONE]})) as jobs:
        handle = await jobs.start(job(set={"hooks": hooks}))
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
    assert status["guards"]["refused"] == {"never": 1}
    assert status["clarification"]["used"] == 0


async def test_a_wait_that_a_person_approves_begins_then_and_is_judged_once(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    body = (
        f"open({str(tmp_path / 'asked')!r}, 'a').write('.')\n"
        "print(json.dumps({'permissionDecision': 'ask', 'permissionDecisionReason': 'So long?'}))"
    )
    hooks = {"PreToolUse": [hook(tmp_path / "asks.py", body, matcher="wait")]}
    wait: Call = ("wait", {"seconds": 1})
    async with serving(temporal, root, Short({"Work": [wait, TEA, DONE]})) as jobs:
        handle = await jobs.start(job(set={"hooks": hooks}))
        await jobs.until(handle, waiting_for="approval")
        log_length = len((tmp_path / "asked").read_text())
        await handle.signal("approve", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert len((tmp_path / "asked").read_text()) == log_length + 1
