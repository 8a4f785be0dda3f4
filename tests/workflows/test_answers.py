"""Every possible answer of an endpoint is handled, and a person can read what happened."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from activities.model.endpoint import connect_endpoint
from benchmarks.zero_cost import ZeroCost
from engine.service import build_worker
from rehearsal import Cut, Failure, Reply, Stall
from rehearsal.server import ModelServer
from rehearsal.wire import Answer, Request
from tests.brief import BRIEFEST
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.test_retried_calls import until_receiving
from workflows.rules.text_replies import DEMAND_AFTER

START: dict[str, Any] = {
    "agent": "generalist",
    "instructions": "Keep a log.",
    "set": {**BRIEFEST, "model.stall_seconds": 1, "model.patience_seconds": 600},
}
FEW = ZeroCost(steps=2, todos=1)
"""A model that completes a job in as few replies as possible."""
LISTED = Reply(calls=[("list_files", {})])
FIVE = Reply(calls=[("list_files", {"path": path}) for path in ("", "output", "notes", "", "")])
AT_ONCE = {"retry-after": "0"}
AWAY = Failure(503, headers=AT_ONCE)
TROUBLES: dict[str, Answer] = {
    "429": Failure(429, "slow down", headers={"retry-after": "1"}),
    "500": Failure(500, "went wrong", headers=AT_ONCE),
    "503": Failure(503, "overloaded", headers=AT_ONCE),
    "cut": Cut(LISTED),
    "stalled": Stall(LISTED),
    "too long": Failure(400, "no", code="context_length_exceeded"),
    "401": Failure(401, "bad key"),
    "404": Failure(404, "no such model"),
    "empty": Reply(""),
    "malformed": Reply(calls=[("write_file", '{"path": "a.md", "content": "half')]),
    "cut by the limit": Reply(calls=[("write_file", '{"path": "a.md", "con')], finish="length"),
    "unknown tool": Reply(calls=[("make_tea", {})]),
    "five at once": FIVE,
    "megabyte": Reply("word " * 200_000),
}


class Troubled:
    """Keeps a log, and meets every failure once, each before another reply."""

    def __init__(self) -> None:
        self.waiting = list(TROUBLES.values())
        self.model = ZeroCost(steps=16, todos=1)
        self.requests: list[Request] = []
        self.calls = 0

    def __call__(self, request: Request) -> Answer:
        if not request.get("tools"):
            return Reply("The log was kept.")
        self.requests.append(request)
        self.calls += 1
        tactical = "tactical phase" in request["messages"][-1]["content"]
        if tactical and self.waiting and self.calls % 2:
            return self.waiting.pop(0)
        return self.model(request)


async def test_a_job_meets_with_every_answer_and_completes(temporal: Client, root: Root) -> None:
    model = Troubled()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        for message in ("bad key", "no such model"):
            status = await jobs.until(
                handle, waiting=lambda now, text=message: text in now["message"]
            )
            assert status["waiting_for"] == "credentials"
            await handle.signal("resume", {})
        result = await jobs.result(handle)
        failures = await told(handle)
        corrections = [str(r["messages"][-1]["content"]) for r in model.requests]
    assert result["status"] == "completed"
    assert not model.waiting
    for text in (
        "answered 429: slow down",
        "answered 500",
        "answered 503",
        "broke off",
        "said nothing for 1 s",
        "too long for",
        "refused the key in OPENAI_API_KEY (401",
        "does not offer",
    ):
        assert any(text in failure for failure in failures), text
    assert sum("called no tool" in text for text in corrections) == 2
    results = [
        str(message["content"])
        for request in model.requests
        for message in request["messages"]
        if message["role"] == "tool"
    ]
    for text in (
        "the arguments are not valid JSON",
        "the reply reached the output limit",
        "There is no tool 'make_tea'",
    ):
        assert any(text in result for result in results), text
    assert max(len(str(request)) for request in model.requests) < 300_000


async def told(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return messages of failed activities, as Temporal Web shows them."""
    messages = []
    async for event in handle.fetch_history_events():
        started = event.activity_task_started_event_attributes
        failed = event.activity_task_failed_event_attributes
        messages += [started.last_failure.message, failed.failure.message]
    return [message for message in messages if message]


async def test_an_endpoint_that_stays_away_shows_and_the_job_goes_on_by_itself(
    temporal: Client, root: Root
) -> None:
    away = {"now": True}

    def model(request: Request) -> Answer:
        if away["now"]:
            return Failure(503, "gone fishing", headers={"retry-after": "1"})
        return FEW(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "set": {**BRIEFEST, "model.patience_seconds": 2}})
        status = await jobs.until(handle, waiting_for="endpoint")
        assert "gone fishing" in status["waiting"]["message"]
        assert "goes on trying by itself" in status["waiting"]["remedy"]
        await asyncio.sleep(2)
        assert (await query_status(handle))["waiting_for"] == "endpoint"
        away["now"] = False
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert (await query_status(handle))["waiting_for"] is None


async def test_a_fallback_answers_where_the_model_fails_or_refuses(
    temporal: Client, root: Root
) -> None:
    models: list[str] = []

    def model(request: Request) -> Answer:
        models.append(request["model"])
        if request["model"] == "first" and len(models) < 8:
            return AWAY if len(models) < 4 else Failure(400, "I will not")
        return FEW(request)

    settings = {
        **BRIEFEST,
        "model.name": "first",
        "model.base_url": "http://model/v1",
        "fallbacks": [{"name": "second", "temperature": 1}],
    }
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "set": settings})
        result = await jobs.result(handle)
        status = await query_status(handle)
    assert result["status"] == "completed"
    # After three failures in transit, and at once after a refusal.
    assert models[:4] == ["first", "first", "first", "second"]
    assert models[-1] == "first"
    assert any("the fallback second answered" in notice for notice in status["notices"])


async def test_a_fallback_that_takes_too_little_keeps_nobody_from_the_model(
    temporal: Client, root: Root
) -> None:
    too_long = Failure(400, "no", code="context_length_exceeded")
    # Until the fallback is used, and once more after the compaction for it, which is in vain.
    troubles = [AWAY] * 6

    def model(request: Request) -> Answer:
        if not request.get("tools"):
            return Reply("The log was kept.")
        if request["model"] == "small":
            return too_long
        return troubles.pop(0) if troubles else FEW(request)

    named = {**BRIEFEST, "model.name": "first", "model.base_url": "http://model/v1"}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "set": {**named, "fallbacks": [{"name": "small"}]}})
        assert (await jobs.result(handle, 60))["status"] == "completed"
    assert not troubles


async def test_what_is_too_long_from_the_start_is_sent_once(temporal: Client, root: Root) -> None:
    requests: list[Request] = []

    def model(request: Request) -> Answer:
        requests.append(request)
        return Failure(400, "no", code="context_length_exceeded")

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        status = await jobs.until(handle, waiting_for="endpoint")
        await handle.terminate()
    assert len(requests) == 1
    assert "too long for" in status["waiting"]["message"]
    remedy = status["waiting"]["remedy"]
    assert "by our count, the tools " in remedy
    assert "leave out tools of the agent generalist" in remedy


def of_one_family(request: Request) -> str:
    """Refuse like servers that know fewer settings and require turns and ids of a certain form."""
    for name in ("max_completion_tokens", "stream_options"):
        if name in request:
            return f"Unrecognized request argument supplied: {name}"
    roles = [message["role"] for message in request["messages"]]
    if ("tool", "user") in itertools.pairwise(roles):
        return "Unexpected role 'user' after role 'tool'"
    ids = [message.get("tool_call_id", "123456789") for message in request["messages"]]
    wrong = [one for one in ids if not (len(one) == 9 and one.isalnum())]
    return f"Tool call id was {wrong[0]} but must have a length of 9." if wrong else ""


def of_another(request: Request) -> str:
    """Refuse like an endpoint whose reasoning models are not fully available to this account."""
    if "temperature" in request:
        return "Unsupported value: 'temperature' does not support 0 with this model."
    if request.get("stream"):
        return "Your organization must be verified to stream this model."
    if request["max_completion_tokens"] > 4096:
        return "max_tokens is too large: 8000. This model supports at most 4096 completion tokens."
    return ""


@pytest.mark.parametrize(("refusal", "times"), [(of_one_family, 4), (of_another, 3)])
async def test_what_an_endpoint_does_not_take_is_left_out_from_then_on(
    temporal: Client, root: Root, refusal: Callable[[Request], str], times: int
) -> None:
    refused: list[str] = []

    def model(request: Request) -> Answer:
        if reason := refusal(request):
            refused.append(reason)
            return Failure(400, reason)
        heard = [one for one in request["messages"] if one["content"] != "I go on."]
        return FEW({**request, "messages": heard})

    named = {**BRIEFEST, "model.name": refusal.__name__, "model.base_url": "http://model/v1"}
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start({**START, "set": named}))
    assert (result["status"], result["usage"]["model_calls"] > 3) == ("completed", True)
    assert len(refused) == times


async def test_a_refusal_that_no_other_form_mends_is_told_and_nothing_is_learned(
    temporal: Client, root: Root
) -> None:
    refused: list[Request] = []

    def model(request: Request) -> Answer:
        if len(refused) < 3:
            refused.append(request)
            return Failure(422, "I will not: temperature 0, stream true")
        return FEW(request) if "temperature" in request else Failure(422, "where is it?")

    named = {**BRIEFEST, "model.name": "wilful", "model.base_url": "http://model/v1"}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "set": named})
        status = await jobs.until(handle, waiting_for="endpoint")
        assert "I will not" in status["waiting"]["message"]
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_content_that_is_filtered_is_a_refusal(temporal: Client, root: Root) -> None:
    models: list[str] = []

    def model(request: Request) -> Answer:
        models.append(request["model"])
        filtered = len(models) < 4 and models[-1] != "second"
        return Reply("The te", finish="content_filter") if filtered else FEW(request)

    named = {**BRIEFEST, "model.name": "first", "model.base_url": "http://model/v1"}
    async with serving(temporal, root, model) as jobs:
        fallen = {**named, "fallbacks": [{"name": "second"}]}
        result = await jobs.result(await jobs.start({**START, "set": fallen}))
        assert (result["status"], models[:2]) == ("completed", ["first", "second"])
        models.clear()
        handle = await jobs.start({**START, "set": named})
        status = await jobs.until(handle, waiting_for="endpoint")
        assert "(content_filter), of which had come: The te" in status["waiting"]["message"]
        assert status["refusals"] == 0
        models += ["first"] * 3
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_a_reply_that_breaks_off_counts_by_estimate(temporal: Client, root: Root) -> None:
    requests: list[Request] = []

    def model(request: Request) -> Answer:
        requests.append(request)
        return Cut(LISTED) if len(requests) == 1 else FEW(request)

    price = {"prices.rehearsal": {"prompt": 1_000_000, "completion": 0}}
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start({**START, "set": {**START["set"], **price}}))
    usage = result["usage"]
    assert usage["model_calls"] == len(requests) - 1
    first = len(json.dumps(requests[0])) // 4
    assert first // 2 < usage["unfinished_tokens"] < first * 2
    assert usage["cost"] == usage["prompt_tokens"] > usage["unfinished_tokens"]


async def test_a_reply_that_breaks_off_leaves_no_trace_in_files(
    temporal: Client, root: Root
) -> None:
    replies = [Cut(LISTED)]
    prices = {"prices.rehearsal": {"prompt": 0.3, "completion": 0.7}}
    start = {**START, "set": {**START["set"], **prices}}

    def cut(request: Request) -> Answer:
        return replies.pop() if replies else FEW(request)

    ends = []
    for model in (FEW, cut):
        async with serving(temporal, root, model) as jobs:
            ends.append(await jobs.result(await jobs.start(start)))
    whole, broken = ends
    assert broken["usage"]["cost"] > whole["usage"]["cost"] > 0
    assert broken["tree"] == whole["tree"]


@pytest.mark.parametrize("signal", ["rewind", "cancel"])
async def test_a_reply_that_a_person_interrupts_counts_by_estimate(
    temporal: Client, root: Root, signal: str
) -> None:
    """With the one before it, which broke off by itself."""
    requests: list[Request] = []
    answers: list[Answer] = [Cut(LISTED), Stall(LISTED)]

    def model(request: Request) -> Answer:
        requests.append(request)
        return answers.pop(0) if answers else FEW(request)

    price = {"prices.rehearsal": {"prompt": 1_000_000, "completion": 0}}
    settings = {**START["set"], **price, "model.stall_seconds": 60}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**START, "set": settings})
        await until_receiving(handle)
        if signal == "rewind":
            await handle.signal("rewind", {"issue": "Not that."})
            await jobs.until(handle, rewinds=1)
        await handle.signal("cancel", {})
        usage = (await jobs.until(handle, status="cancelled"))["usage"]
    first = len(json.dumps(requests[0])) // 4
    assert first * 1.5 < usage["unfinished_tokens"] < first * 3
    assert usage["cost"] == usage["prompt_tokens"]


async def test_replies_that_always_break_off_are_counted(temporal: Client, root: Root) -> None:
    settings = {
        **START["set"], "model.patience_seconds": 1,
        "prices.rehearsal": {"prompt": 1000, "completion": 1000},
    }  # fmt: skip
    async with serving(temporal, root, lambda _: Cut(LISTED)) as jobs:
        handle = await jobs.start({**START, "set": settings})
        status = await jobs.until(handle, waiting_for="endpoint")
        spent = status["usage"]["unfinished_tokens"]
        assert spent == status["usage"]["prompt_tokens"] + status["usage"]["completion_tokens"]
        await handle.signal("resume", {})
        status = await jobs.until(
            handle, usage=lambda now: now["unfinished_tokens"] > spent, waiting_for="endpoint"
        )
        assert status["usage"]["cost"] == status["usage"]["unfinished_tokens"] / 1000
        await handle.signal("cancel", {})


async def test_a_reply_taken_back_counts_although_the_job_goes_on(
    temporal: Client, root: Root
) -> None:
    requests: list[Request] = []

    def model(request: Request) -> Answer:
        requests.append(request)
        if len(requests) == DEMAND_AFTER + 1:
            return Reply("tea " * 40_000, finish="content_filter")
        return Reply("The tea.") if len(requests) <= DEMAND_AFTER else FEW(request)

    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(START))
    assert requests[DEMAND_AFTER]["tool_choice"] == "required"
    assert result["usage"]["completion_tokens"] > 40_000
    assert result["usage"]["model_calls"] == len(requests) - 1


async def test_a_person_reads_why_a_model_refuses(temporal: Client, root: Root) -> None:
    requests: list[Request] = []

    def model(request: Request) -> Answer:
        requests.append(request)
        return Reply("I cannot keep logs.", is_refusal=True) if len(requests) < 4 else FEW(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        status = await jobs.until(handle, waiting_for="endpoint")
        assert status["waiting"]["message"] == (
            "The model refused 3 times in a row: I cannot keep logs."
        )
        assert "--set model.name=" in status["waiting"]["remedy"]
        assert "step 1: the model refused: I cannot keep logs." in status["notices"]
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert "Your last reply was a refusal" in requests[1]["messages"][-1]["content"]


async def test_kinds_of_phase_may_have_models_of_their_own(temporal: Client, root: Root) -> None:
    models_by_kind: dict[str, set[str]] = {"strategic": set(), "tactical": set()}

    def model(request: Request) -> Answer:
        if request.get("tools"):
            todos = request["messages"][-1]["content"]
            models_by_kind["tactical" if "tactical phase" in todos else "strategic"].add(
                request["model"]
            )
        return FEW(request)

    settings = {
        **BRIEFEST,
        "model.name": "thinker",
        "model.base_url": "http://model/v1",
        "phase_models": {"tactical": {"name": "doer"}},
    }
    async with serving(temporal, root, model) as jobs:
        await jobs.result(await jobs.start({**START, "set": settings}))
    assert models_by_kind == {"strategic": {"thinker"}, "tactical": {"doer"}}


async def test_a_revoked_key_parks_the_job_and_a_new_one_finishes_it(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = itertools.count(1)
    # Between two requests, in the middle of the job.
    with ModelServer(FEW, key=lambda: "sk-old" if next(requests) < 4 else "sk-new") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-old")
        activities = all_activities(root, connect=connect_endpoint)
        queue = "revoked"
        async with build_worker(temporal, root=root, task_queue=queue, activities=activities):
            jobs = Jobs(temporal, root, queue)
            handle = await jobs.start(START)
            status = await jobs.until(handle, waiting_for="credentials")
            assert "OPENAI_API_KEY" in status["waiting"]["message"]
            assert "sk-" not in str(status)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-new")
            await handle.signal("resume", {})
            assert (await jobs.result(handle))["status"] == "completed"
