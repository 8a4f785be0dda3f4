"""A judge at the end of a phase: a no with findings, a yes, a garbled answer, and the limits."""

from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import sandbox
from protocol.job_record import Judgement
from protocol.limits import Budget, JobLimits
from rehearsal import Failure, Reply, Request
from rehearsal.request_view import RequestView, is_judge_request
from rehearsal.wire import Answer
from tests.workflows.queries import query_status
from tests.workflows.records import record
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, in_turn, job
from workflows.rules import budget, reservations

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
JUDGED: dict[str, Any] = {"judge": {"attempts": 2}}
NO = Reply("FAIL\nTodo 1: output/tea.md says nothing of the water.")


async def test_a_phase_ends_when_the_judge_says_yes(temporal: Client, root: Root) -> None:
    requests: list[Request] = []
    answers = in_turn(NO, Reply("PASS"))

    def judge(request: Request) -> Reply:
        requests.append(request)
        return answers(request)

    refusals: list[str] = []

    def work(view: Any) -> Any:
        refusals.extend([view.refusal] if view.refusal else [])
        text = " and water" if refusals else "tea"
        return [("append_file", {"path": "output/tea.md", "content": text}), DONE]

    async with serving(temporal, root, Short({"Work": work}, judge=judge)) as jobs:
        handle = await jobs.start(job(set=JUDGED))
        result = await jobs.result(handle, 40)
        status = await query_status(handle)
    assert result["status"] == "completed"
    assert status["guards"]["refused"] == {"judge": 1}
    assert "says nothing of the water" in refusals[0]
    assert "You judge" not in str(refusals)
    prompts = [request["messages"][-1]["content"] for request in requests]
    assert "+tea" in prompts[0]
    assert "+tea and water" in prompts[1]
    snapshot = jobs.snapshot(handle, result["checkpoint"])
    assert len(list(snapshot.judge.walk())) == 2
    # The totals include the judge: 2 calls besides those for replies.
    history = await handle.fetch_history()
    names = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
    ]
    calls = names.count("model_call") + names.count("judge_phase")
    assert names.count("judge_phase") == 2
    assert result["usage"]["model_calls"] == calls


async def test_after_some_noes_a_person_is_asked_and_may_let_one_through(
    temporal: Client, root: Root
) -> None:
    short, last = Short(judge=in_turn(Reply("FAIL\nNo."), Reply("FAIL\nNo."))), [""]

    def model(request: Request) -> Answer:
        last.append(str(request["messages"][-1]["content"]))
        return short(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=JUDGED))
        status = await jobs.until(handle, waiting_for="review")
        assert status["guards"]["refused"] == {"judge": 2}
        assert status["waiting"]["message"].endswith("let the phase end. No.")
        assert "bypass judge" in status["waiting"]["remedy"]
        await handle.signal("bypass", {"guard": "judge", "reason": "It is tea."})
        await handle.signal("resume", {})
        result = await jobs.result(handle, 40)
        assert result["status"] == "completed"
    # Not the advice that the person has overridden.
    [asked] = [text for text in last if "A person lets through once what judge refused" in text]
    assert "todo_complete was refused" not in asked


@pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
async def test_a_bypass_holds_until_the_judge_too_lets_the_phase_end(
    temporal: Client, root: Root
) -> None:
    verifier = {"name": "tests", "command": "false", "phases": ["tactical"]}
    answers = in_turn(NO, Reply("PASS"))
    # After the verifier's refusal it asks, and stays where it can be let through.
    ask = ("request_clarification", {"question": "What is wrong?", "default": "Nothing."})

    def work(view: RequestView) -> list[Call]:
        if "tests" in view.refusal and not view.calls:
            return [ask]
        return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]

    short, keys = Short({"Work": work}, judge=answers), ["bad"]

    def model(request: Request) -> Answer:
        is_judge = not request.get("tools") and is_judge_request(request)
        return Failure(401, "bad key") if is_judge and keys and keys.pop() else short(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**JUDGED, "verifiers": [verifier]}))
        status = await jobs.until(handle, waiting_for="clarification")
        assert status["guards"]["refused"] == {"tests": 1}
        await handle.signal("bypass", {"guard": "tests", "reason": "It is tea."})
        await handle.signal("answer", {"text": "Nothing."})
        await jobs.until(handle, waiting_for="credentials")
        await handle.signal("resume", {})
        status = await jobs.until(handle, guards=lambda told: "judge" in told["refused"])
        before = status["guards"]["refused"]["tests"]
        number = status["phase"]["number"]
        status = await jobs.until(handle, phase=lambda told: told["number"] > number)
        refused = [line for line in status["notices"] if "tests refused todo_complete" in line]
        assert (status["rewinds"], len(refused)) == (0, before)
        await handle.signal("cancel", {})


async def test_no_judge_is_asked_for_whom_there_is_no_room(temporal: Client, root: Root) -> None:
    requests: list[Request] = []

    def judge(request: Request) -> Reply:
        requests.append(request)
        return Reply("PASS")

    # The plan with the handover, and the work: 2 replies.
    limits = {**JUDGED, "limits.job.model_calls": 2}
    async with serving(temporal, root, Short(judge=judge)) as jobs:
        handle = await jobs.start(job(set=limits))
        status = await jobs.until(handle, waiting_for="budget")
        assert (status["usage"]["model_calls"], requests) == (2, [])
        await handle.signal("limit", {"model_calls": 100})
        result = await jobs.result(handle, 40)
    assert result["status"] == "completed"
    assert len(requests) == 1


def test_what_a_judge_may_use_is_reserved_before_it_is_asked() -> None:
    job = record(limits=JobLimits(job=Budget(tokens=20_000), context_tokens={"strategic": 90_000}))
    job.judgement = Judgement(commit="c0")
    assert reservations.next_call_reservation(job) == reservations.judge_call_reservation(job)
    exceeded = budget.exceeded_limit(job, reservations.judge_call_reservation(job))
    assert exceeded is not None
    assert exceeded.key == "tokens"
    job.judgement = Judgement(commit="c0", decided=True)
    assert reservations.next_call_reservation(job) != reservations.judge_call_reservation(job)
