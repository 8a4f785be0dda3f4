"""The span of a job: sent once, by the worker that ends it, whatever was replayed before."""

from collections import Counter

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory
from temporalio.worker import Replayer

from activities.checkpoints import Root
from engine.converter import DATA_CONVERTER
from engine.development import DevelopmentServer
from engine.workflow_runner import JobWorkflowRunner
from rehearsal import Failure, rehearse
from rehearsal.wire import Answer, Request
from tests.engine.otel.conftest import Exported
from tests.replay import record
from tests.replay.test_replay import RECORDED, recorded
from tests.soak import soak
from tests.workflows.serving import serving
from tests.workflows.short import Short, job
from workflows.job import Job
from workflows.project import Project
from workflows.trial import Trial

PLANTED = "sk-planted-2b9e04d1c7"


def revoked(_: Request) -> Answer:
    """A model that stops a job for as long as a test wants."""
    return Failure(401, "the key was revoked")


@pytest.fixture(scope="module")
async def traced(exported: Exported, running: DevelopmentServer) -> Client:
    return await Client.connect(
        running.address,
        data_converter=DATA_CONVERTER,
        plugins=exported.pipeline.otlp_export_plugins(),
    )


async def test_replays_after_each_eviction_send_no_span_twice(
    traced: Client, root: Root, exported: Exported
) -> None:
    async with serving(traced, root, Short(), max_cached_workflows=0) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
    spans = exported.spans(handle.id)
    assert Counter(span.id for span in spans).most_common(1)[0][1] == 1
    assert [span.name for span in spans if not span.parent] == ["invoke_agent generalist"]
    chat_spans = [span for span in spans if span.name.startswith("chat ")]
    assert len(chat_spans) == result["usage"]["model_calls"]


async def test_a_job_that_cannot_start_fails_without_what_it_was_given(
    traced: Client, root: Root, exported: Exported
) -> None:
    async with serving(traced, root, rehearse) as jobs:
        handle = await jobs.start({"agent": PLANTED, "instructions": PLANTED})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
    [whole, prepare] = exported.spans(handle.id)
    assert (whole.name, whole.failed, prepare.name) == ("invoke_agent", True, "prepare")
    assert whole.attributes["error.type"] == prepare.attributes["error.type"] == "BadStart"
    assert PLANTED.encode() not in b"".join(exported.receiver.bodies)


async def test_a_cancelled_job_says_so(traced: Client, root: Root, exported: Exported) -> None:
    async with serving(traced, root, revoked) as jobs:
        handle = await jobs.start({"agent": "generalist", "instructions": "Write a guide on tea."})
        await jobs.until(handle, waiting_for="credentials")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
    [whole] = [span for span in exported.spans(handle.id) if not span.parent]
    assert (whole.attributes["longhaul.status"], whole.failed) == ("cancelled", False)


async def test_a_job_left_by_its_worker_sends_no_end(
    traced: Client, root: Root, exported: Exported
) -> None:
    async with serving(traced, root, revoked) as jobs:
        handle = await jobs.start({"agent": "generalist", "instructions": "Write a guide on tea."})
        await jobs.until(handle, waiting_for="credentials")
    assert all(span.parent for span in exported.spans(handle.id))
    await handle.terminate()


async def test_recorded_histories_replay_with_it_and_send_nothing(exported: Exported) -> None:
    replayer = Replayer(
        workflows=[Job, Project, Trial],
        data_converter=DATA_CONVERTER,
        workflow_runner=JobWorkflowRunner(),
        plugins=exported.pipeline.otlp_export_plugins(),
    )
    # Spans of earlier tests may still be on their way.
    exported.pipeline.span_export().tracers.force_flush()
    before = len(exported.receiver.spans())
    for path in soak(RECORDED[::6], RECORDED):
        history = WorkflowHistory.from_json(record.RECORDED, recorded(path))
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        assert result.replay_failure is None, result.replay_failure
    exported.pipeline.span_export().tracers.force_flush()
    assert len(exported.receiver.spans()) == before
