"""A waiting job gets the model settings it needs with `resume`, and goes on."""

import json
from typing import Any

from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from activities.model.endpoint import connect_endpoint
from activities.preparation.agent_models import change_model_settings
from activities.stores.stored_traces import read_job_traces
from benchmarks.zero_cost import ZeroCost
from config.agent_files import load_agent
from engine.service import build_worker
from protocol.limits import JobLimits
from protocol.waiting import WaitState
from rehearsal import Failure, Reply, wire
from rehearsal.wire import Answer, Request
from tests.brief import BRIEFEST
from tests.http_server import Handler, served
from tests.provider.server import Provider, ProviderServer
from tests.provider.strict import Responses
from tests.workflows.queries import query_status
from tests.workflows.records import record
from tests.workflows.serving import Jobs, serving
from workflows.rules import budget, endpoint_remedies
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.wait_states import step_failure_wait

FEW = ZeroCost(steps=2, todos=1)
LONGER = ZeroCost(steps=8, todos=1)
START: dict[str, Any] = {"agent": "generalist", "instructions": "Keep a log."}


def named(**settings: Any) -> dict[str, Any]:
    model = {"model.name": "first", "model.base_url": "http://model/v1"}
    return {**START, "set": {**BRIEFEST, **model, **settings}}


async def test_a_job_takes_another_model_and_keeps_it(temporal: Client, root: Root) -> None:
    models: list[str] = []

    def model(request: Request) -> Answer:
        models.append(request["model"])
        if request["model"] == "first" and len(models) > 2:
            return Failure(400, "first does not support tools")
        return FEW(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(named())
        status = await jobs.until(handle, waiting_for="endpoint")
        before = status["checkpoint"]
        assert (
            "`--set model.name=…` takes another model, one that calls tools"
            in (status["waiting"]["remedy"])
        )
        for wrong, why in [
            ({"limits.rewinds": 9}, "'limits.rewinds' cannot be set of a job under way"),
            ({"shell.x": 9}, "`starter.py fork JOB --phase N --set 'shell.x=…'`"),
            ({"limits.phase.cost": 9}, "`starter.py limit JOB phase.cost=…` sets that limit"),
            ({"model.nmae": "second"}, "model.nmae"),
            ({"model.window": 9}, "model.window"),
        ]:
            refused = status["refusals"]
            await handle.signal("resume", {"set": wrong})
            status = await jobs.until(handle, refusals=lambda n, was=refused: n > was)
            assert status["waiting_for"] == "endpoint"
            assert status["notices"][-1].startswith("refused: signal resume: set")
            assert why in status["notices"][-1]
        assert status["checkpoint"] == before
        await handle.signal("resume", {"set": {"model.name": "second", "model.temperature": None}})
        result = await jobs.result(handle)
        status = await query_status(handle)
        pinned = jobs.snapshot(handle, status["checkpoint"]).config.model
    assert result["status"] == "completed"
    assert (pinned.name, pinned.temperature, status["model"]) == ("second", None, "second")
    assert models[-1] == "second"
    change = "model.name: first -> second; model.temperature: 0 -> null"
    assert f"the model is set: {change}" in " ".join(status["notices"])
    traces = [one for one in read_job_traces(root, handle.id) if one.guard == "resume"]
    assert [(one.type, one.source) for one in traces] == [("correction", "person")]
    assert change in traces[0].what_happened


async def test_a_job_that_waits_is_given_a_model_that_sees(temporal: Client, root: Root) -> None:
    offered: list[set[str]] = []

    def model(request: Request) -> Answer:
        offered.append({tool["function"]["name"] for tool in request.get("tools", [])})
        return FEW(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(named())
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        blind = len(offered)
        await handle.signal("resume", {"set": {"model.vision": True}})
        result = await jobs.result(handle)
        snapshot = jobs.snapshot(handle, result["checkpoint"])
        status = await query_status(handle)
    assert snapshot.config.model.vision
    assert snapshot.read_text("tools/view_image.md")
    assert not any("view_image" in tools for tools in offered[:blind])
    assert any("view_image" in tools for tools in offered[blind:])
    assert "model.vision: false -> true" in " ".join(status["notices"])


async def test_a_job_that_does_not_wait_is_not_given_another_model(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, FEW) as jobs:
        handle = await jobs.start(named())
        await handle.signal("resume", {"set": {"model.name": "second"}})
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
    assert "refused: signal resume: the job is not waiting" in status["notices"]
    assert status["model"] == "first"


async def test_a_model_that_never_calls_a_tool_is_a_matter_of_its_server(
    temporal: Client, root: Root
) -> None:
    """A rewind would change nothing, and pay for as many replies five times more."""
    models: list[str] = []

    def model(request: Request) -> Answer:
        models.append(request["model"])
        if request["model"] == "first":
            return Reply('<tool_call>{"name": "list_files", "arguments": {}}</tool_call>')
        return FEW(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(named())
        status = await jobs.until(handle, waiting_for="endpoint")
        assert "None has since the start" in status["waiting"]["message"]
        assert "tool-call parser: docs/model-endpoints.md" in status["waiting"]["remedy"]
        assert (status["rewinds"], len(models)) == (0, 6)
        await handle.signal("resume", {})
        await jobs.until(handle, waiting_for="endpoint", step=12)
        await handle.signal("resume", {"set": {"model.name": "second"}})
        assert (await jobs.result(handle))["status"] == "completed"


class NeverDone(Handler):
    """Its streams end without a final event."""

    def do_POST(self) -> None:
        incoming = wire.parse_wire_request(self.body())
        assert isinstance(incoming, wire.WireRequest)
        answer = FEW(incoming.request)
        assert isinstance(answer, Reply)
        if incoming.streams:
            answer = Reply("I go on.")
        else:
            self.give(wire.encode_wire_reply(incoming, answer), "application/json")
            return
        ends = (b'"finish_reason":"', b"[DONE]", b'"usage"')
        events = wire.stream_wire_reply(incoming, answer)
        remaining = [event for event in events if not any(end in event for end in ends)]
        self.give(b"".join(remaining), "text/event-stream")


async def test_streams_that_never_say_that_they_are_over_can_be_done_without(
    temporal: Client, root: Root
) -> None:
    """Those of calls need no end, but a text is whole only with one."""
    with served(NeverDone) as address:
        base = {"model.base_url": f"{address}/v1", "model.patience_seconds": 2}
        activities = all_activities(root, connect=connect_endpoint)
        async with build_worker(temporal, root=root, task_queue="ends", activities=activities):
            jobs = Jobs(temporal, root, "ends")
            handle = await jobs.start(named(**base))
            status = await jobs.until(handle, waiting_for="endpoint")
            assert "neither a finish_reason nor [DONE]" in status["waiting"]["message"]
            assert "cannot be reached" not in status["waiting"]["message"]
            assert f"resume {handle.id} --set model.stream=false" in status["waiting"]["remedy"]
            await handle.signal("resume", {"set": {"model.stream": False}})
            assert (await jobs.result(handle))["status"] == "completed"


async def test_a_job_goes_from_chat_to_responses_and_back(temporal: Client, root: Root) -> None:
    """On a real server, in the middle of phases: neither API is sent what the other made."""
    models: list[str] = []

    def model(request: Request) -> Answer:
        models.append(request["model"])
        if len(models) in (6, 9):
            return Failure(400, "I will not")
        return LONGER(request)

    provider = Provider(Responses(model), chat=frozenset({"first"}))
    with ProviderServer(provider) as server:
        activities = all_activities(root, connect=connect_endpoint)
        async with build_worker(temporal, root=root, task_queue="to-fro", activities=activities):
            jobs = Jobs(temporal, root, "to-fro")
            handle = await jobs.start(named(**{"model.base_url": server.base_url}))
            await jobs.until(handle, waiting_for="endpoint")
            other = {"model.name": "gpt-6", "model.api": "responses", "model.temperature": None}
            await handle.signal("resume", {"set": other})
            await jobs.until(handle, waiting_for="endpoint", model="gpt-6")
            await handle.signal("resume", {"set": {"model.name": "first", "model.api": "chat"}})
            assert (await jobs.result(handle))["status"] == "completed"
    assert provider.responses.refusals == []
    assert models[:10] == ["first"] * 6 + ["gpt-6"] * 3 + ["first"]
    sent = provider.responses.requests[-1]["input"]
    own = [item for item in sent if item.get("id")]
    replies = [item for item in sent if item["type"] == "function_call"]
    assert own
    assert len([item for item in own if item["type"] == "function_call"]) < len(replies)
    last = json.dumps(provider.chats[-1]["messages"])
    assert not any(item["id"] in last or item.get("call_id", "?") in last for item in own)


def test_settings_hold_where_the_same_was_in_force() -> None:
    config = load_agent(
        "generalist",
        {
            "model.name": "thinker",
            "phase_models": {"tactical": {"name": "doer", "reasoning_effort": "low"}},
            "fallbacks": [{"name": "other"}],
            "judge.prompt": "judge.md",
        },
    )
    changed = change_model_settings(config, {"model.send_reasoning": True}, "strategic")
    assert changed.model.send_reasoning
    assert changed.phase_models["tactical"].send_reasoning
    assert not changed.fallbacks[0].send_reasoning
    changed = change_model_settings(config, {"model.name": "another"}, "strategic")
    assert (changed.model.name, changed.phase_models["tactical"].name) == ("another", "doer")
    changed = change_model_settings(config, {"model.name": "another"}, "tactical")
    assert changed.phase_models["tactical"].name == "another"
    assert changed.phase_models["tactical"].reasoning_effort == "low"
    assert (config.model.name, config.phase_models["tactical"].name) == ("thinker", "doer")


def test_a_limit_on_cost_needs_the_price_of_the_new_model() -> None:
    limits = JobLimits.model_validate({"job": {"cost": 5}})
    refused = budget.budget_limits_with_model(limits, "second", JobLimits())
    assert isinstance(refused, str)
    assert "the price of the model second is not known" in refused
    assert budget.budget_limits_with_model(
        JobLimits(), "second", JobLimits(model_seconds=7)
    ) == JobLimits(model_seconds=7)


def test_what_helps_is_said_behind_the_remedy() -> None:
    waiting = WaitState(reason="endpoint", message="no", remedy="Check the endpoint.")
    failed = StepFailed("model_call", ApplicationError("no", type="ModelRefused"))
    unknown = endpoint_remedies.wait_with_remedy(waiting, record(), failed)
    failed.helps = "another wording"
    told = endpoint_remedies.wait_with_remedy(waiting, record(), failed)
    assert told.remedy == "Check the endpoint. What may help: another wording."
    assert "model.name=" in unknown.remedy


def test_a_remedy_names_another_model_once() -> None:
    failed = StepFailed("model_call", ApplicationError("too long", type="ContextTooLong"))
    waiting = endpoint_remedies.wait_with_remedy(step_failure_wait(failed), record(), failed)
    assert waiting.remedy.count("model.name=") == 1
