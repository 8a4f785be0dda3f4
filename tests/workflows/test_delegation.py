"""Helpers that read for an agent, on a real server."""

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from activities.job.conversation import Conversation
from activities.steps.ask_helper import CUT_AT_LAST
from protocol.helpers import ANSWER_TOKENS
from rehearsal import Failure, Reply, Request
from rehearsal.request_view import RequestView
from tests.workflows.delegating import SET, Delegating, delegate, is_helper, read, results, task_of
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, hand_over, job


async def scheduled(handle: WorkflowHandle[Any, Any]) -> list[str]:
    history = await handle.fetch_history()
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]


async def test_helpers_read_side_by_side_and_answer_in_files(temporal: Client, root: Root) -> None:
    model = Delegating(*(delegate(f"What is in leaf {n}?", f"notes/leaf_{n}.md") for n in range(6)))
    model.leaves = 6
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=SET))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        pages = sorted((jobs.folder(handle) / "delegated").iterdir())
        snapshot = jobs.snapshot(handle, result["checkpoint"])
        status = await handle.query("status")
    assert len(model.answers) == len(pages) == 6
    for number, (answer, page) in enumerate(zip(model.answers, pages, strict=True)):
        assert answer.startswith(f"delegated/{number + 1:04d}.md has this answer.")
        assert answer.endswith(f"Read 1: 1\tLeaf notes/leaf_{number}.md")
        assert page.read_text().endswith(f"## Answer\n\nRead 1: 1\tLeaf notes/leaf_{number}.md\n")
        assert page.read_text().startswith(f"# What is in leaf {number}?\n\n## Task")
    # Two rounds of four, then two of two.
    names = await scheduled(handle)
    assert names.count("ask_helper") == 12
    assert len(model.requests) == status["usage"]["model_calls"]
    assert sum(map(is_helper, model.requests)) == 12
    conversations = [
        Conversation(snapshot.helpers.subfolder(entry.path))
        for entry in snapshot.helpers.children()
    ]
    assert [conversation.message(1)["content"][:18] for conversation in conversations] == [
        f"What is in leaf {n}?"[:18] for n in range(6)
    ]
    # Nothing that helpers read is in the agent's own requests.
    own = [request for request in model.requests if not is_helper(request)]
    assert not any("lines 1-1 of 1" in str(request["messages"]) for request in own)


async def test_a_helper_only_reads_and_has_no_helpers(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("Write.", "notes/leaf_0.md"))
    heard: list[str] = []

    def helping(request: Request) -> Reply:
        offered = {tool["function"]["name"] for tool in request["tools"]}
        assert offered == {"read_file", "list_files", "search_files", "web_search", "fetch_page"}
        if not (tool_results := results(request)):
            calls = [("write_file", {"path": "notes/x.md", "content": "x"}), delegate("More.")]
            searched = ("search_files", {"query": "leaf", "path": "notes"})
            return Reply(calls=[*calls, read("notes/none.md"), searched])
        heard.extend(tool_results)
        return Reply(content="Done.")

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**SET, "tools": [*SET["tools"], "web"]}))
        assert (await jobs.result(handle))["status"] == "completed"
        assert not (jobs.folder(handle) / "notes" / "x.md").exists()
    assert heard[0].startswith("Error: There is no tool 'write_file'. The tools are: read_file")
    assert "There is no tool 'delegate'" in heard[1]
    assert "There is no file 'notes/none.md'" in heard[2]
    assert heard[3].startswith("notes/leaf_0.md:1: ")


async def test_guards_hold_for_helpers(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("Read.", "notes/leaf_0.md"))
    settings = {**SET, "approve": ["list_files"], "hooks": {}}
    settings["hooks"] = {"PreToolUse": [{"matcher": "Read", "command": "echo secret >&2; exit 2"}]}
    heard: list[str] = []

    def helping(request: Request) -> Reply:
        if tool_results := results(request):
            heard.extend(tool_results)
            return Reply(content="Nothing.")
        return Reply(calls=[read("notes/leaf_0.md"), ("list_files", {})])

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        assert (await jobs.result(await jobs.start(job(set=settings))))["status"] == "completed"
    assert "secret" in heard[0]
    assert heard[0].startswith("Error: Refused by ")
    assert "needs a person's approval" in heard[1]


async def test_what_cannot_be_delegated_costs_nothing(temporal: Client, root: Root) -> None:
    leading_out = delegate("Read.", "../../etc/passwd")
    elsewhere = delegate("Read.", "leaf_0.md", "leaf_9.md")
    absent = delegate("Read.", "notes/none.md")
    model = Delegating(absent, ("delegate", {}), leading_out, elsewhere)
    async with serving(temporal, root, model) as jobs:
        assert (await jobs.result(await jobs.start(job(set=SET))))["status"] == "completed"
    assert (
        model.answers[0] == "Error: notes/none.md does not exist; list_files shows what is there."
    )
    assert "task: field required" in model.answers[1].lower()
    assert model.answers[2].startswith("Error: The path '../../etc/passwd' holds ..")
    assert model.answers[3] == (
        "Error: leaf_0.md, leaf_9.md do not exist; list_files shows what is there. Files of that "
        "name: 'notes/leaf_0.md'."
    )
    assert not any(map(is_helper, model.requests))


async def test_a_helper_whose_answer_is_cut_gives_it_anew(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("Read.", "notes/leaf_0.md"))
    heard: list[str] = []

    def helping(request: Request) -> Reply:
        heard.append(str(request["messages"][-1]["content"]))
        return Reply("A leaf.") if len(heard) > 1 else Reply("A le", finish="length")

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        assert (await jobs.result(await jobs.start(job(set=SET))))["status"] == "completed"
    assert heard[1].startswith("Your answer was cut at the output limit")
    assert model.answers[0].endswith("\n\nA leaf.")


async def test_an_answer_that_is_cut_to_the_last_says_so(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("Read.", "notes/leaf_0.md"))
    model.help = lambda request: Reply("A le", finish="length")  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        started = await jobs.start(job(set={**SET, "limits.helper_calls": 2}))
        assert (await jobs.result(started))["status"] == "completed"
    assert model.answers[0].endswith(f"\n\nA le\n\n{CUT_AT_LAST}")


async def test_a_helper_that_reads_on_for_ever_has_to_answer(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("Read.", "notes/leaf_0.md"), delegate("Answer late."))

    def helping(request: Request) -> Reply:
        if task_of(request).startswith("Answer late") and "last reply" in str(request["messages"]):
            return Reply(content="word " * (2 * ANSWER_TOKENS))
        return Reply(calls=[read(f"notes/leaf_{len(results(request)) % 4}.md")])

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**SET, "limits.helper_calls": 3}))
        assert (await jobs.result(handle))["status"] == "completed"
    assert model.answers[0].startswith("Error: The helper gave no answer.")
    assert "the answer was longer than it may be" in model.answers[1]
    assert len(model.answers[1].split("answer.")[1].split("word")) < ANSWER_TOKENS + 10
    assert sum(map(is_helper, model.requests)) == 6


async def test_a_helper_reads_no_more_than_there_is_room_for(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("Read.", *(f"notes/leaf_{n}.md" for n in range(8))))
    largest: list[int] = []

    def work(view: RequestView) -> list[Call]:
        if view.replies == 0:
            text = "tea and more tea " * 300
            return [
                ("write_file", {"path": f"notes/leaf_{n}.md", "content": f"{n} {text}"})
                for n in range(8)
            ]
        return model.work(view)

    def helping(request: Request) -> Reply:
        tool_results = results(request)
        largest.append(len(str(request["messages"])))
        if not tool_results:
            return Reply(calls=[read(f"notes/leaf_{n}.md") for n in range(8)])
        unread = sum("no room left" in text for text in tool_results)
        assert "last reply" in str(request["messages"][-1]["content"])
        return Reply(content=f"{unread} unread")

    model.agent.verbs["Work"] = work
    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**SET, "context.tokens": 8000}))
        assert (await jobs.result(handle))["status"] == "completed"
    unread = int(model.answers[0].rpartition("\n")[2].split()[0])
    assert 2 <= unread <= 6
    assert max(largest) < 8000 * 5


async def test_helpers_keep_to_the_limits_of_the_job(temporal: Client, root: Root) -> None:
    model = Delegating(*(delegate(f"Leaf {n}?", f"notes/leaf_{n}.md") for n in range(4)))
    async with serving(temporal, root, model) as jobs:
        # The calls for the plan, the leaves and the delegation, and three by helpers.
        handle = await jobs.start(job(set={**SET, "limits.job.model_calls": 7}))
        status = await jobs.until(handle, waiting_for="budget")
        assert status["usage"]["model_calls"] == 7
        helper_requests = sum(map(is_helper, model.requests))
        assert helper_requests == 7 - (len(model.requests) - helper_requests) > 0
        await handle.signal("limit", {"model_calls": 100})
        assert (await jobs.result(handle))["status"] == "completed"
    assert sum(map(is_helper, model.requests)) == 8
    assert len(model.answers) == 4


@pytest.mark.parametrize("status", [400, 401])
async def test_a_helper_that_fails_ends_alone_or_waits_with_the_job(
    temporal: Client, root: Root, status: int
) -> None:
    model = Delegating(delegate("One?", "notes/leaf_1.md"), delegate("Two?", "notes/leaf_2.md"))
    fails = [True]

    def helping(request: Request) -> Any:
        if fails[0] and task_of(request).startswith("Two"):
            return Failure(status, "no such thing", code="invalid_prompt")
        return Delegating.help(model, request)

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=SET))
        if status == 401:
            await jobs.until(handle, waiting_for="credentials")
            fails[0] = False
            await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert "Read 1" in model.answers[0]
    # The first helper's reply of that round was not paid for again.
    assert sum(is_helper(each) and task_of(each)[:3] == "One" for each in model.requests) == 2
    if status == 401:
        assert "Read 1" in model.answers[1]
    else:
        assert "The helper cannot do this: The model endpoint refused" in model.answers[1]


async def test_a_helpers_reply_that_was_taken_back_counts(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("One?", "notes/leaf_1.md"), delegate("Two?", "notes/leaf_2.md"))

    def helping(request: Request) -> Reply:
        assert is_helper(request)
        return Reply("tea " * 40_000, finish="content_filter")

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(job(set=SET)))
    assert all("The helper cannot do this" in answer for answer in model.answers)
    assert result["usage"]["completion_tokens"] > 80_000


async def test_an_approved_call_is_asked_about_once(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("One?", "notes/leaf_1.md"), delegate("Two?", "notes/leaf_2.md"))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={**SET, "approve": ["delegate"]}))
        status = await jobs.until(handle, waiting_for="approval")
        assert not any(map(is_helper, model.requests))
        await handle.signal("approve", {})
        status = await jobs.until(
            handle, approvals=lambda all_: len(all_) == 1, waiting_for="approval"
        )
        assert status["waiting_for"] == "approval"
        await handle.signal("deny", {"reason": "no more"})
        assert (await jobs.result(handle))["status"] == "completed"
    assert "Read 1" in model.answers[0]
    assert "no more" in model.answers[1]


async def test_a_rewind_gives_helpers_up(temporal: Client, root: Root) -> None:
    model = Delegating(delegate("One?", "notes/leaf_1.md"))
    model.agent.verbs["Rethink"] = [DONE]
    model.agent.verbs["Hand"] = lambda view: (
        [DONE] if "todo_write" in [made.tool for made in view.calls] else [hand_over({})]
    )
    blocked, requested = [True], asyncio.Event()

    def helping(request: Request) -> Any:
        requested.set()
        if blocked[0]:
            return Failure(503, "busy", headers={"retry-after": "1"})
        return Delegating.help(model, request)

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=SET))
        await asyncio.wait_for(requested.wait(), 60)
        blocked[0] = False
        await handle.signal("rewind", {"issue": "Too slow."})
        assert (await jobs.result(handle))["status"] == "completed"
