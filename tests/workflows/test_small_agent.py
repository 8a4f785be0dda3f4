"""The agent for small models, and requests that an endpoint refuses without saying why."""

import json
from pathlib import Path

from temporalio.client import Client

from activities.checkpoints import Root
from rehearsal import Failure, Reply
from rehearsal.wire import Answer, Model, Request
from tests.workflows.serving import serving

NAMED = {"model.name": "first", "model.base_url": "http://model/v1"}


def bare(name: str, **arguments: object) -> Reply:
    """Return a call as a small model writes it."""
    return Reply(f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```")


WRITES = bare("write_file", path="output/answer.md", content="Paris")
START = {"agent": "small", "instructions": "Name the capital of France.", "set": NAMED}


def scripted(seen: list[Request], *replies: Reply) -> Model:
    """Return a model that says these in turn, the last again and again."""

    def model(request: Request) -> Answer:
        seen.append(request)
        return replies[min(len(seen), len(replies)) - 1]

    return model


async def test_a_plain_agent_completes_a_task_in_two_calls(temporal: Client, root: Root) -> None:
    seen: list[Request] = []
    async with serving(temporal, root, scripted(seen, WRITES, Reply("Done."))) as jobs:
        handle = await jobs.start(START)
        result = await jobs.result(handle)
        answer = jobs.snapshot(handle, result["checkpoint"]).read_text("output/answer.md")
    assert (result["status"], answer) == ("completed", "Paris")
    assert result["deliverables"] == ["output/answer.md"]
    assert [[message["role"] for message in request["messages"]] for request in seen] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
    ]
    assert seen[0]["messages"][1]["content"] == "Name the capital of France."
    assert all(request["parallel_tool_calls"] is False for request in seen)
    offered = [tool["function"]["name"] for tool in seen[0]["tools"]]
    assert offered == ["read_file", "write_file", "list_files"]


async def test_what_ends_no_plain_job(temporal: Client, root: Root) -> None:
    """A claim before any work, a question, and a refused end; then the task is told again."""
    task = "Write the capital of France into output/answer.md."
    replies = [
        Reply("Done."),
        bare("write_file", path="output/wrong.md", content="Paris"),
        Reply("Would you like me to continue?"),
        Reply("Done."),
        WRITES,
        Reply("Done."),
    ]
    seen: list[Request] = []
    async with serving(temporal, root, scripted(seen, *replies)) as jobs:
        handle = await jobs.start({**START, "instructions": task})
        result = await jobs.result(handle)
    assert (result["status"], len(seen)) == ("completed", 6)
    told = [request["messages"][-1] for request in seen]
    assert [message["role"] for message in told] == ["user", "user", "tool", "user", "user", "tool"]
    assert all(told[n]["content"] == f"This is not done yet. {task}" for n in (1, 3, 4))
    assert "output/answer.md does not exist" in seen[4]["messages"][-2]["content"]


async def test_a_plain_agent_is_shown_its_short_documents(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    (tmp_path / "place.md").write_text("The city is Paris.\n")
    (tmp_path / "long.md").write_text("word " * 1000)
    for names, shown in (["place.md"], True), (["place.md", "long.md"], False):
        seen: list[Request] = []
        async with serving(temporal, root, scripted(seen, WRITES, Reply("Done."))) as jobs:
            documents = [str(tmp_path / name) for name in names]
            await jobs.result(await jobs.start({**START, "documents": documents}))
        assert ("The city is Paris." in seen[0]["messages"][1]["content"]) is shown
        assert "documents/place.md" in seen[0]["messages"][1]["content"]


async def test_a_plain_agent_that_only_repeats_itself_ends(temporal: Client, root: Root) -> None:
    """It looks in vain or twice, for which it has no tool in the next turn, and writes again."""
    seen: list[Request] = []
    looks = bare("read_file", path="output/answer.md")
    replies = looks, WRITES, bare("list_files"), bare("list_files"), WRITES
    async with serving(temporal, root, scripted(seen, *replies)) as jobs:
        result = await jobs.result(await jobs.start(START))
    assert (result["status"], len(seen)) == ("completed", 5)
    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in seen]
    assert offered[1] == ["write_file", "list_files"]
    assert offered[4] == ["read_file", "write_file"]
    assert offered[0] == offered[2] == offered[3] == ["read_file", "write_file", "list_files"]


async def test_a_large_request_that_is_refused_is_tried_once_compacted(
    temporal: Client, root: Root
) -> None:
    sizes: list[int] = []

    def model(request: Request) -> Answer:
        if not request.get("tools"):
            return Reply("The log was kept.")
        sizes.append(len(json.dumps(request)))
        if sizes[-1] > 70_000:
            return Failure(400, "Bad request")
        text = f"{len(sizes)} " * 4_000
        return Reply(calls=[("write_file", {"path": f"notes/{len(sizes)}.md", "content": text})])

    async with serving(temporal, root, model) as jobs:
        start = {"agent": "generalist", "instructions": "Keep a log.", "set": NAMED}
        handle = await jobs.start(start)
        status = await jobs.until(handle, step=lambda step: step > 9)
        await handle.terminate()
    assert status["waiting"] is None
    assert max(sizes) > 70_000


async def test_what_is_refused_compacted_too_says_so(temporal: Client, root: Root) -> None:
    requests: list[Request] = []

    def model(request: Request) -> Answer:
        if not request.get("tools"):
            return Reply("The log was kept.")
        requests.append(request)
        if len(requests) > 4:
            return Failure(400, "Bad request")
        text = f"{len(requests)} " * 8_000
        return Reply(calls=[("write_file", {"path": f"notes/{len(requests)}.md", "content": text})])

    async with serving(temporal, root, model) as jobs:
        start = {"agent": "generalist", "instructions": "Keep a log.", "set": NAMED}
        handle = await jobs.start(start)
        status = await jobs.until(handle, waiting_for="endpoint")
        await handle.terminate()
    assert len(requests) == 6
    assert "refused the request (400): Bad request" in status["waiting"]["message"]
    assert "So did it after the context was compacted." in status["waiting"]["message"]
