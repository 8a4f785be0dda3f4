"""Signals from people: each is applied once or visibly refused, whatever it contains."""

import asyncio
import errno
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError

from activities.checkpoints import Root
from activities.steps import close_job, show_folder
from rehearsal import Hang
from rehearsal.request_view import RequestView
from rehearsal.wire import Answer, Request
from tests.soak import patient, soak
from tests.workflows.holding import Held, gate_held, paused_at_gate
from tests.workflows.queries import query_status
from tests.workflows.resting import at_todo
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, TEA, Call, Short, job
from workflows.runtime.continuation import MAX_HISTORY_BYTES
from workflows.runtime.inbox import FULL, MAX_BYTES

SIGNALS = soak(80, 200)
"""More signals than a run of a job that continues as new has steps."""
STEPS = soak(16, 60)
START = job()


@pytest.fixture
async def jobs(temporal: Client, root: Root) -> AsyncIterator[Jobs]:
    async with serving(temporal, root, Short()) as served:
        yield served


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "one JSON object"),
        ([None], "expected a JSON object"),
        (["generalist"], "expected a JSON object"),
        ([START, START], "found 2 values"),
        ([{}], "start: agent: field required"),
        ([{"agent": 7}], "agent: input should be a valid string"),
        ([{"agent": "generalist", "instruktions": "x"}], "instruktions: unknown key"),
        ([{"agent": "nobody", "instructions": "x"}], "agent 'nobody' is not known"),
        ([{"agent": "../creator", "instructions": "x"}], "is not known"),
        ([{"agent": "generalist"}], "has no instructions of its own"),
        ([{"agent": "creator"}], "works on documents"),
        ([{"agent": "creator", "documents": ["/nowhere.pdf"]}], "/nowhere.pdf"),
        ([{"agent": "creator", "documents": ["staged:../../x"]}], "not a staged document"),
        ([{**START, "set": {"limits.min_todo": 3}}], "limits.min_todo: unknown key"),
        ([{**START, "set": {"model.temperature": "hot"}}], "model.temperature"),
        ([{**START, "set": {"tools": ["files", "crystal_ball"]}}], "crystal_ball"),
    ],
)
async def test_bad_start_fails_the_job_at_once_and_makes_nothing(
    jobs: Jobs, values: list[Any], expected: str
) -> None:
    handle = await jobs.start(*values)
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(handle)
    assert isinstance(failed.value.cause, ApplicationError)
    assert expected in failed.value.cause.message
    assert "\n" not in failed.value.cause.message
    assert not jobs.folder(handle).exists()
    assert not jobs.root.repository(handle.id).exists()


async def test_a_failed_start_has_a_title_in_lists(jobs: Jobs) -> None:
    handle = await jobs.start({"agent": "nobody", "instructions": "# Make tea.\nGreen."})
    with pytest.raises(WorkflowFailureError):
        await jobs.result(handle)
    assert (await (await handle.describe()).memo())["title"] == "Make tea."


async def test_job_id_used_before_is_refused(jobs: Jobs) -> None:
    first = await jobs.start(START)
    await jobs.until(first, step=lambda step: step > 0)
    await first.signal("cancel", {})
    with pytest.raises(WorkflowFailureError):
        await jobs.result(first)
    again = await jobs.start(START, job_id=first.id)
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(again)
    assert "already run" in str(failed.value.cause)


async def test_bad_signals_are_refused_visibly_and_disturb_nothing(jobs: Jobs) -> None:
    with gate_held("todo_complete") as gate:
        handle = await jobs.start(START)
        await gate.until_begun()
        await handle.signal("rewind")
        await handle.signal("rewind", "again")
        await handle.signal("rewind", args=[{"issue": "x"}, 2])
        await handle.signal("rewind", {"issue": "x", "fase": 3})
        await handle.signal("rewind", {"issue": ""})
        await handle.signal("rewind", {"issue": "x", "phase": 77})
        await handle.signal("resume", {})
        await handle.signal("rewnid", {"issue": "x"})
        await _raw_signal(jobs, handle.id, "pause", Payload(metadata={"encoding": b"odd/kind"}))
        await _raw_signal(
            jobs, handle.id, "pause", Payload(metadata={"encoding": b"json/plain"}, data=b"{{")
        )
        gate.go.set()
    result = await jobs.result(handle)
    status = await query_status(handle)
    assert result["rewinds"] == 0
    assert status["refusals"] >= 10
    notices = "\n".join(status["notices"])
    for part in ("issue", "fase", "77", "rewnid", "not waiting", "pause"):
        assert part in notices
    assert await _failed_tasks(handle) == 0


async def test_many_signals_while_continuing_as_new_are_each_applied_once(
    temporal: Client, root: Root
) -> None:
    def work(view: RequestView) -> Sequence[Call]:
        if (call_count := len(view.calls)) < STEPS:
            return [("write_file", {"path": f"{call_count}.md", "content": "tea"})]
        return [TEA, DONE]

    async with serving(temporal, root, Short({"Work": work})) as jobs:
        # The job does not end before the last signal is sent.
        with gate_held("job_complete") as gate:
            handle = await jobs.start(job(set={"limits.history_events": 100}))
            for number in range(SIGNALS):
                if number % 10 == 9:
                    name = "resume" if number % 20 == 9 else "bogus"
                    await handle.signal(name, ["not an object"])
                else:
                    await handle.signal("resume", {})
                if number % 5 == 0:
                    await asyncio.sleep(0.02)
            gate.go.set()
            await jobs.result(handle)
        status = await query_status(handle)
    # Each is refused, as nothing waits; the count shows that each was handled once.
    assert status["refusals"] == SIGNALS
    described = await jobs.client.get_workflow_handle(handle.id).describe()
    assert described.run_id != handle.first_execution_run_id
    async for run in jobs.client.list_workflows(f'WorkflowId="{handle.id}"'):
        chained = jobs.client.get_workflow_handle(handle.id, run_id=run.run_id)
        assert await _failed_tasks(chained) == 0


async def test_letters_in_any_script_fit_into_a_payload(temporal: Client, root: Root) -> None:
    queue, most = "long-letters", 20_000
    handle = await temporal.start_workflow("Job", START, id=f"{queue}-1", task_queue=queue)
    for _ in range(10):
        await handle.signal("cancel", {"reason": "\N{TEACUP WITHOUT HANDLE}" * most})
    async with serving(temporal, root, Short(), queue=queue):
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 40)
        status = await query_status(handle)
    assert f"{FULL}{10 - MAX_BYTES // (4 * most)} cancel" in status["notices"]


async def test_signals_that_fill_the_history_begin_a_new_run(jobs: Jobs) -> None:
    """The run ends long before there are many events, as the server ends a run of 50 MB."""
    handle, _ = await paused_at_gate(jobs, START)
    for _ in range(MAX_HISTORY_BYTES // 1_000_000 + 2):
        await handle.signal("rewind", {"issue": "x" * 1_000_000})
    await handle.signal("resume", {})
    assert (await jobs.result(handle))["status"] == "completed"
    first = jobs.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
    assert (await first.describe()).status == WorkflowExecutionStatus.CONTINUED_AS_NEW


async def test_pause_holds_resume_takes_the_edited_folder_in(jobs: Jobs) -> None:
    handle, status = await paused_at_gate(jobs, START)
    step = status["step"]
    assert status["waiting"]["remedy"]
    folder = jobs.folder(handle)
    (folder / "from_a_person.md").write_text("# Mind the oolong\n")
    (folder / "archive/phase_001.md").write_text("forged")
    await asyncio.sleep(0.5)
    assert (await query_status(handle))["step"] == step
    await handle.signal("resume", {})
    result = await jobs.result(handle)
    files = jobs.snapshot(handle, result["checkpoint"]).files
    assert files.read("from_a_person.md") == b"# Mind the oolong\n"
    assert files.read("archive/phase_001.md") != b"forged"


async def test_a_pause_whose_folder_cannot_be_shown_is_one_and_not_called_refused(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(show_folder, "update_job_folder", full)
        handle, status = await paused_at_gate(jobs, START)
    [notice, _] = status["notices"]
    assert notice.startswith("the folder may lack the last steps: show_folder: ")
    assert "No space left" in notice
    assert status["refusals"] == 0
    await handle.signal("resume", {})
    assert (await jobs.result(handle))["status"] == "completed"


class Hanging:
    """Does a short job, but hangs forever at the n-th call."""

    def __init__(self, at: int) -> None:
        self.at, self.calls, self.short = at, 0, Short()
        self.hanging = asyncio.Event()

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        if self.calls < self.at:
            return self.short(request)
        self.hanging.set()
        return Hang()


@pytest.mark.parametrize("by", ["signal", "temporal"])
async def test_cancel_takes_seconds_even_while_a_model_call_hangs(
    temporal: Client, root: Root, by: str
) -> None:
    model = Hanging(at=3)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        async with asyncio.timeout(20):
            await model.hanging.wait()
        (jobs.folder(handle) / "mine.md").write_text("Mine.")
        begun = time.monotonic()
        if by == "signal":
            await handle.signal("cancel", {"reason": "changed my mind"})
        else:
            await handle.cancel()
        with pytest.raises(WorkflowFailureError) as ended:
            await jobs.result(handle)
        assert time.monotonic() - begun < patient(5)
        assert isinstance(ended.value.cause, CancelledError)
        described = await handle.describe()
        assert described.status == WorkflowExecutionStatus.CANCELED
        completion = (jobs.folder(handle) / "output/completion.json").read_text()
        assert '"cancelled"' in completion
        assert ("changed my mind" in completion) == (by == "signal")
        # A file in the folder's way at the end is reported as well.
        notice = f"moved to lost+found: lost+found/{handle.id}/0001/mine.md"
        assert (await query_status(handle))["notices"][-1] == notice


async def test_a_cancel_whose_closing_fails_waits_until_it_can_be_closed(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    model = Hanging(at=2)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        async with asyncio.timeout(20):
            await model.hanging.wait()
        repository, backup = root.repository(handle.id), tmp_path / "kept.git"
        shutil.move(repository, backup)
        await handle.signal("cancel", {"reason": "enough"})
        status = await jobs.until(handle, status="waiting")
        assert "closing is tried again" in status["waiting"]["remedy"]
        shutil.move(backup, repository)
        await handle.signal("resume", {})
        with pytest.raises(WorkflowFailureError) as ended:
            await jobs.result(handle, 20)
        assert isinstance(ended.value.cause, CancelledError)
        assert '"cancelled"' in (jobs.folder(handle) / "output/completion.json").read_text()


async def test_cancel_and_pause_before_anything_is_prepared(jobs: Jobs) -> None:
    handle = await jobs.client.start_workflow(
        "Job",
        START,
        id=f"{jobs.queue}-early",
        task_queue=jobs.queue,
        start_signal="cancel",
        start_signal_args=[{"reason": "at once"}],
    )
    with pytest.raises(WorkflowFailureError) as ended:
        await asyncio.wait_for(handle.result(), 20)
    assert isinstance(ended.value.cause, CancelledError)


async def _raw_signal(jobs: Jobs, job_id: str, name: str, payload: Payload) -> None:
    """Send bytes that no client of ours would."""
    await jobs.client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=jobs.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=job_id),
            signal_name=name,
            input=Payloads(payloads=[payload]),
        )
    )


async def _failed_tasks(handle: Any) -> int:
    history = await handle.fetch_history()
    return sum(
        event.WhichOneof("attributes") == "workflow_task_failed_event_attributes"
        # A signal that arrives with a closing command makes the server retry: not a failure.
        and "UNHANDLED_COMMAND" not in str(event)
        for event in history.events
    )


async def test_what_comes_while_the_result_is_written_is_refused(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, gate = close_job._close_job, Held()

    def _close(*arguments: Any) -> Any:
        gate()
        return close(*arguments)

    monkeypatch.setattr(close_job, "_close_job", _close)
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(job())
        await gate.until_begun()
        await handle.signal("limit", {"cost": 3})
        await handle.signal("pause", {})
        gate.go.set()
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
    late = "refused: signal {}: it came too late, the result was written"
    assert status["notices"] == [late.format("limit"), late.format("pause")]
    assert status["refusals"] == 2


@pytest.mark.parametrize("ends", ["todo_complete", "job_complete"])
async def test_a_step_given_up_at_its_gate_begins_nothing_more(
    temporal: Client, root: Root, ends: str
) -> None:
    """The facts for the gate are complete long before the cancellation can be noticed."""
    # A cancellation is only seen after a local activity, so the gate has to be a regular one.
    verified = job(set={"verifiers": [{"name": "tea", "command": "true"}]})
    async with serving(temporal, root, Short()) as jobs:
        with gate_held(ends) as gate:
            handle = await jobs.start(verified)
            await gate.until_begun()
            await handle.signal("cancel", {"reason": "No longer needed."})
            gate.go.set()
            with pytest.raises(WorkflowFailureError) as failed:
                await jobs.result(handle)
        assert isinstance(failed.value.cause, CancelledError)
        names = [
            event.activity_task_scheduled_event_attributes.activity_type.name
            for event in (await handle.fetch_history()).events
            if event.HasField("activity_task_scheduled_event_attributes")
        ]
    assert names[-2:] == ["gate_facts", "close_job"]


async def test_a_signal_refused_while_a_step_goes_on_is_counted_at_once(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, at_todo(phase=2, number=1, model=Short())) as jobs:
        handle = await jobs.start(START)
        before = (await jobs.until(handle, waits_until=bool))["refusals"]
        await handle.signal("limit", {"nonsense": 1})
        status = await jobs.until(handle, refusals=before + 1)
        assert status["waits_until"]
        assert "nonsense" in status["notices"][-1]
        await handle.signal("cancel", {})
