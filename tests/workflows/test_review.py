"""The review of a completion: a new reader accepts it, sends it back, or gives no verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.job.conversation import Conversation
from rehearsal import Reply, Request, call, rehearse
from tests.activities.guards.hooks.scripts import hook
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Short, close, in_turn, job
from tests.workflows.tea import page

REVIEWED = {"reflection": False, "review": {"agent": "reviewer", "attempts": 2, "calls": 3}}
FINDINGS = "output/tea.md says nothing of the water."


@dataclass
class Reviewer:
    """Gives its replies in turn and records its requests."""

    replies: list[Reply]
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.replies[min(len(self.requests), len(self.replies)) - 1]


async def test_sends_back_with_findings_then_accepts(temporal: Client, root: Root) -> None:
    reviewer = Reviewer(
        [
            call("read_file", path="output/tea.md"),
            call("send_back", findings=FINDINGS),
            call("accept", findings="The water is there."),
        ]
    )
    mended = ("append_file", {"path": "output/tea.md", "content": " and water"})
    model = Short({"Close": [close("output/tea.md"), mended, close("output/tea.md")]}, reviewer)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=REVIEWED))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        [refusal] = model.refusals
        assert FINDINGS in refusal
        assert "call job_complete again" in refusal
        status = await handle.query("status")
        # The deliverables have changed since they were refused.
        assert status["refused_completions"] == 0
        assert status["reviewing"] is False
        # This helps people too: after too many refusals the job waits for one.
        assert FINDINGS in status["notices"][-1]

    first, second, third = (request["messages"] for request in reviewer.requests)
    # It sees the job's claim and what it read itself, but not how the work was done.
    assert [message["role"] for message in first] == ["system", "user"]
    assert "Tea was made." in first[1]["content"]
    assert "- P2 (completed): Brew" in first[1]["content"]
    assert second[-1]["role"] == "tool"
    assert "1\ttea" in second[-1]["content"]
    assert [message["role"] for message in third] == ["system", "user"]
    offered = [tool["function"]["name"] for tool in reviewer.requests[0]["tools"]]
    assert "read_file" in offered
    assert "write_file" not in offered

    replies = await summaries(jobs, handle)
    assert sum("review call" in text for text in replies) == 3
    model_calls = sum("model call" in text for text in replies)
    assert result["usage"]["model_calls"] == model_calls + 3


async def test_what_it_looks_up_counts_and_is_limited(temporal: Client, root: Root) -> None:
    look = ("read_file", {"path": "output/tea.md"})
    replies = [Reply(calls=[look] * 6), call("accept", findings="Yes.")]
    async with serving(temporal, root, Short(reviewer=in_turn(*replies))) as jobs:
        handle = await jobs.start(job(set={**REVIEWED, "limits.job.tool_calls": 8}))
        status = await jobs.until(handle, waiting_for="budget")
        assert "5 are made and the next step may make 4" in status["waiting"]["message"]
        await handle.signal("limit", {"tool_calls": 14})
        used = (await jobs.result(handle))["usage"]
        # The reviewer made seven calls, two of them too many for one reply.
        counts = [used[f"{word}_calls"] for word in ("sent", "tool", "refused", "failed")]
        assert counts == [13, 11, 2, 0]


async def summaries(jobs: Jobs, handle: Any) -> list[str]:
    history = await handle.fetch_history()
    return [
        jobs.client.data_converter.payload_converter.from_payload(event.user_metadata.summary)
        for event in history.events
        if event.HasField("user_metadata")
    ]


@pytest.mark.parametrize(
    ("reply", "calls"),
    [(Reply(content="It looks fine to me."), 3), (Reply(calls=[("accept", "{not json")]), 1)],
)
async def test_without_a_verdict_that_can_be_read_the_answer_is_no(
    temporal: Client, root: Root, reply: Reply, calls: int
) -> None:
    reviewer = Reviewer([reply])
    async with serving(temporal, root, Short(reviewer=reviewer)) as jobs:
        handle = await jobs.start(job(set=REVIEWED))
        status = await jobs.until(handle, waiting_for="review")
        assert len(reviewer.requests) == 2 * calls
        assert status["refused_completions"] == 2
        if calls > 1:
            contents = [message["content"] for message in reviewer.requests[calls - 1]["messages"]]
            assert "This is your last reply" in contents[-1]
        await handle.signal("resume", {})
        status = await jobs.until(
            handle, waiting_for="review", step=lambda step: step > status["step"]
        )
        assert len(reviewer.requests) == 4 * calls
        await handle.signal("cancel", {})


async def test_a_rewind_ends_the_review_and_edits_of_a_person_begin_it_anew(
    temporal: Client, root: Root
) -> None:
    reading = Reviewer([call("read_file", path="plan.md")])
    # After the refusal it asks, and stays where the test looks at it.
    asks = ("request_clarification", {"question": "Where is it?", "default": "Gone."})
    model = Short({"Close": [close("output/tea.md"), asks], "Rethink": [close(), DONE]}, reading)
    endless = {"review": {"agent": "reviewer", "attempts": 1, "calls": 100}}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=endless))
        await jobs.until(handle, reviewing=True)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        before = len(reading.requests)
        (jobs.folder(handle) / "output/tea.md").unlink()
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for="clarification")
        assert status["refused_completions"] == 1
        assert len(reading.requests) <= before + 1
        assert "output/tea.md: does not exist" in model.refusals[-1]
        await handle.signal("rewind", {"issue": "No tea."})
        await jobs.until(handle, reviewing=True, phase=lambda phase: phase["purpose"] == "rewind")
        await handle.signal("rewind", {"issue": "Still none."})
        status = await jobs.until(handle, rewinds=2)
        assert status["phase"]["purpose"] == "rewind"
        await handle.signal("cancel", {})


async def test_a_bypass_holds_until_the_reviewer_too_lets_the_job_end(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    stop = hook(tmp_path / "gate.py", "print('no', file=sys.stderr)\nsys.exit(2)")
    ended = close("output/tea.md")
    # After the hook's refusal it asks, and stays where it can be let through.
    ask = ("request_clarification", {"question": "What is wrong?", "default": "Nothing."})
    verdicts = in_turn(call("send_back", findings=FINDINGS), call("accept", findings="Yes."))
    model = Short({"Close": [ended, ask, ended, ended]}, verdicts)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**REVIEWED, "hooks": {"Stop": [stop]}}))
        status = await jobs.until(handle, waiting_for="clarification")
        assert status["guards"]["refused"] == {"gate": 1}
        await handle.signal("bypass", {"guard": "gate", "reason": "It is tea."})
        await handle.signal("answer", {"text": "Nothing."})
        assert (await jobs.result(handle))["status"] == "completed"
        status = await handle.query("status")
        assert status["guards"] == {"refused": {"gate": 1}, "bypasses": {}}


async def test_the_rehearsal_model_judges_and_reviews_as_well(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, rehearse) as jobs:
        handle = await jobs.start(page(set={**REVIEWED, "judge": {}}))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        last = jobs.snapshot(handle, result["checkpoint"])
        assert list(last.judge.walk())
        review = Conversation(last.review)
        assert review.messages()[-1]["tool_calls"][0]["function"]["name"] == "accept"
