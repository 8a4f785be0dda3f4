"""A job with encrypted payloads: unreadable in Temporal, readable with our commands."""

import asyncio
import base64
import json
from typing import Any

import pytest
from temporalio.api.failure import v1 as wire
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from activities.checkpoints import Root
from cli.jobs.job_view import job_failure_message, view_job
from cli.jobs.watch import fetch_recent_steps
from engine.codec import encrypting_converter
from engine.converter import DATA_CONVERTER
from engine.workflow_runner import JobWorkflowRunner
from protocol.payload_reading import EncryptedPayloadError
from rehearsal.request_view import RequestView
from rehearsal.wire import Answer, Failure, Request
from tests.workflows.serving import FAILS, Jobs, serving
from tests.workflows.short import DONE, Call, Short, job
from workflows.job import Job

KEYS = {"2026": bytes(range(32))}
WORDS = ("oolong", "kettle", "teapot")
"""Words in the instructions, in the model's text, and in a failure."""


def connected(temporal: Client, keys: dict[str, bytes] | None) -> Client:
    converter = encrypting_converter(keys) if keys else DATA_CONVERTER
    config = temporal.config()
    config["data_converter"] = converter
    return Client(**config)


class Failing:
    """The short model, whose endpoint fails once."""

    def __init__(self) -> None:
        work: list[Call] = [
            ("write_file", {"path": "output/tea.md", "content": "kettle"}),
            ("write_file", {"path": "notes/kettle.md", "content": "kettle"}),
            DONE,
        ]
        self.short, self.failed = Short({"Work": lambda view: self.work(view, work)}), False

    def work(self, view: RequestView, calls: list[Call]) -> list[Call]:
        return [calls[view.replies % len(calls)]]

    def __call__(self, request: Request) -> Answer:
        if not self.failed:
            self.failed = True
            return Failure(503, "the teapot is broken")
        return self.short(request)


async def raw(jobs: Jobs, job_id: str) -> str:
    """Return everything that Temporal stores of a job, with payloads decoded and as base64."""
    handle = jobs.client.get_workflow_handle(job_id)
    described = await handle.describe()
    parts = [(await handle.fetch_history()).to_json(), str(described.raw_description)]
    parts += [described.raw_description.SerializeToString().decode("latin-1")]
    return "\n".join([*parts, *payload_texts(json.loads(parts[0]))])


def payload_texts(node: object) -> list[str]:
    if isinstance(node, dict):
        texts = [text for value in node.values() for text in payload_texts(value)]
        if isinstance(node.get("data"), str):
            texts.append(base64.b64decode(node["data"]).decode("latin-1"))
        return texts
    return [text for item in node for text in payload_texts(item)] if isinstance(node, list) else []


@pytest.mark.parametrize("keys", [KEYS, None], ids=["encrypted", "plain"])
async def test_what_temporal_holds_of_a_job(
    temporal: Client, root: Root, keys: dict[str, bytes] | None
) -> None:
    client = connected(temporal, keys)
    async with serving(client, root, Failing()) as jobs:
        handle = await jobs.start(job(instructions="Make oolong."))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        raw_history = await raw(jobs, handle.id)
        # The unencrypted case shows that the search finds the words.
        assert [word in raw_history for word in WORDS] == [keys is None] * 3
        assert ("Make" in raw_history) == (keys is None)
        view = await view_job(client, handle.id)
        assert view.status.status == "completed"
        assert "oolong" in str(view.status)
        assert any(
            "notes/kettle.md" in line for _, line in await fetch_recent_steps(client, handle.id, 60)
        )
        replayer = Replayer(
            workflows=[Job],
            data_converter=client.data_converter,
            workflow_runner=JobWorkflowRunner(),
        )
        await replayer.replay_workflow(await handle.fetch_history())
        if keys:
            with pytest.raises(EncryptedPayloadError, match="LONGHAUL_CODEC_KEYS is not set here"):
                await view_job(connected(temporal, None), handle.id)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (None, "LONGHAUL_CODEC_KEYS is not set here"),
        (KEYS, "LONGHAUL_CODEC_KEYS here holds no key 'a'"),
    ],
)
async def test_of_a_failure_that_is_encrypted_is_told_why_it_cannot_be_read(
    keys: dict[str, bytes] | None, why: str
) -> None:
    failure = wire.Failure()
    await encrypting_converter({"a": bytes(32)}).encode_failure(
        ApplicationError("No tea."), failure
    )
    converter = encrypting_converter(keys) if keys else DATA_CONVERTER
    read = job_failure_message(await converter.decode_failure(failure))
    assert read == f"what it says cannot be read here: it is encrypted, and {why}"
    assert (
        job_failure_message(await encrypting_converter({"a": bytes(32)}).decode_failure(failure))
        == "No tea."
    )


async def failed_task(handle: WorkflowHandle[Any, Any]) -> str:
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.HasField("workflow_task_failed_event_attributes"):
            return event.workflow_task_failed_event_attributes.failure.message
    raise AssertionError("the job ended")


async def test_a_worker_without_the_key_leaves_the_job_to_one_that_has_it(
    temporal: Client, root: Root
) -> None:
    with_key = connected(temporal, KEYS)
    async with serving(connected(temporal, None), root, Short(), queue="codec-missing"):
        handle = await Jobs(with_key, root, "codec-missing").start(job(), task_timeout=FAILS)
        async with asyncio.timeout(20):
            await failed_task(handle)
    async with serving(with_key, root, Short(), queue="codec-missing") as jobs:
        assert (await jobs.result(handle))["status"] == "completed"


async def test_a_worker_that_takes_a_continued_job_over_says_which_key_it_lacks(
    temporal: Client, root: Root
) -> None:
    with_key = connected(temporal, KEYS)
    waits: Call = ("request_clarification", {"question": "Black?", "default": "Yes."})
    notes: list[Call] = [
        ("write_file", {"path": f"output/{name}.md", "content": f"{name}."})
        for name in ("tea", *"abcdefghijk")
    ]
    model = Short({"Work": [*notes, waits, DONE]})
    async with serving(with_key, root, model, queue="codec-continued") as jobs:
        handle = await jobs.start(job(set={"limits.history_events": 100}), task_timeout=FAILS)
        await jobs.until(handle, waiting_for="clarification")
    continued = with_key.get_workflow_handle(
        handle.id, run_id=(await handle.describe()).run_id, result_type=dict
    )
    assert continued.run_id != handle.first_execution_run_id
    await continued.signal("answer", {"text": "Green."})
    async with serving(connected(temporal, None), root, model, queue="codec-continued"):
        async with asyncio.timeout(20):
            assert "LONGHAUL_CODEC_KEYS is not set here" in await failed_task(continued)
    async with serving(with_key, root, model, queue="codec-continued") as jobs:
        assert (await jobs.result(handle))["status"] == "completed"


async def test_a_signal_with_another_key_is_refused_visibly(temporal: Client, root: Root) -> None:
    def ask(view: RequestView) -> list[Call]:
        return [("request_clarification", {"question": "Black?", "default": "Yes."})]

    client = connected(temporal, KEYS)
    async with serving(client, root, Short({"Work": ask})) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, waiting_for="clarification")
        other = connected(temporal, {"other": bytes(32)})
        await other.get_workflow_handle(handle.id).signal("answer", {"text": "Green."})
        status = await jobs.until(handle, notices=lambda told: "no key 'other'" in str(told))
        assert status["waiting_for"] == "clarification"
        await handle.signal("cancel", {"reason": "Enough."})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
