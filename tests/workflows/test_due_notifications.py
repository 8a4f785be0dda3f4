"""Notifications to people: why, from whom, with what content, and each sent once."""

import asyncio
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from tests.receiver import Receiver, receiver
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, TEA, Call, Short, hand_over, job
from tests.workflows.team import Team, project, write

SECRET = "the recipe of my grandmother"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - another process tells
            await asyncio.sleep(0.02)


def calling(endpoint: Receiver, **more: Any) -> dict[str, Any]:
    return job(instructions=f"Make tea by {SECRET}.", set={"notify": {"url": endpoint.url}, **more})


async def test_an_address_and_a_hook_are_told_of_the_end_with_names_and_no_content(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    script, out = tmp_path / "mail", tmp_path / "out"
    script.write_text(f'#!/bin/sh\nread -r line; echo "$line" >> {out}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    hooks = [{"command": str(script), "matcher": "end|waiting"}]
    with receiver() as endpoint:
        async with serving(temporal, root, Short()) as jobs:
            handle = await jobs.start(calling(endpoint, **{"hooks.Notification": hooks}))
            assert (await jobs.result(handle))["status"] == "completed"
            await until(lambda: len(endpoint.bodies) == 1 and out.exists())
    body, header = endpoint.bodies[0], endpoint.headers[0]
    assert body["event"] == "end"
    assert body["status"] == "completed"
    assert body["job"] == handle.id
    assert body["agent"] == "generalist"
    assert body["command"] == f"starter.py show {handle.id}"
    assert body["text"] == f"{handle.id} has ended: completed, 1 statement, not reviewed."
    assert header["idempotency-key"] == body["key"]
    assert "content" not in body
    assert SECRET not in json.dumps(body)
    assert "Tea was made" not in json.dumps(body)
    # The hook is told on its standard input.
    event = json.loads(out.read_text())
    assert event["hook_event_name"] == "Notification"
    assert event["notification_type"] == "end"
    assert event["session_id"] == handle.id
    assert event["message"] == body["text"]


async def test_content_is_sent_where_the_configuration_says_so(
    temporal: Client, root: Root
) -> None:
    with receiver() as endpoint:
        async with serving(temporal, root, Short()) as jobs:
            settings = {"notify.content": True, "notify.url": endpoint.url}
            handle = await jobs.start(job(set=settings))
            await jobs.result(handle)
            await until(lambda: len(endpoint.bodies) == 1)
    assert "Tea was made." in endpoint.bodies[0]["content"]
    assert "Tea was made." in endpoint.bodies[0]["text"]


async def test_each_wait_is_told_once_with_the_command_that_ends_it(
    temporal: Client, root: Root
) -> None:
    model = Short({"Work": [("move_file", {"old": "plan.md", "new": "notes/p.md"}), TEA, DONE]})
    settings = {"approve": ["move_file"], "limits.phase.model_calls": None}
    with receiver() as endpoint:
        async with serving(temporal, root, model) as jobs:
            handle = await jobs.start(calling(endpoint, **settings))
            status = await jobs.until(handle, waiting_for="approval")
            await until(lambda: len(endpoint.of("waiting")) == 1)
            # Neither a pause nor a refused signal is another wait.
            await handle.signal("resume", {})
            await handle.signal("pause", {})
            await jobs.until(handle, waiting_for="paused")
            await handle.signal("resume", {})
            await jobs.until(handle, waiting_for="approval")
            await handle.signal("deny", {"reason": "Leave it."})
            await jobs.result(handle)
            await until(lambda: len(endpoint.of("end")) == 1)
    first = endpoint.of("waiting")[0]
    assert first["reason"] == "approval"
    assert first["command"] == f"starter.py approve {handle.id} --id {status['approval']['id']}"
    assert first["command"] in first["text"]
    assert "plan.md" not in json.dumps(first)
    assert len(endpoint.bodies) == 2
    assert set(endpoint.keys.values()) == {1}


async def test_a_second_wait_for_the_same_reason_and_a_cancelled_end_are_told(
    temporal: Client, root: Root
) -> None:
    move = ("move_file", {"old": "plan.md", "new": "notes/p.md"})
    with receiver() as endpoint:
        async with serving(temporal, root, Short({"Work": [move, move]})) as jobs:
            handle = await jobs.start(calling(endpoint, approve=["move_file"]))
            for number in (1, 2):
                await jobs.until(handle, waiting_for="approval")
                await until(lambda: len(endpoint.of("waiting")) == number)  # noqa: B023
                await handle.signal("deny", {"reason": "Leave it."})
                await jobs.until(handle, step=lambda step: step > number + 1)  # noqa: B023
            await handle.signal("cancel", {})
            with pytest.raises(WorkflowFailureError):
                await jobs.result(handle)
            await until(lambda: len(endpoint.of("end")) == 1)
    first, second = endpoint.of("waiting")[:2]
    assert first["command"] != second["command"]
    assert endpoint.of("end")[0]["status"] == "cancelled"
    assert set(endpoint.keys.values()) == {1}


async def test_a_limit_is_told_at_four_fifths_and_again_once_it_is_raised(
    temporal: Client, root: Root
) -> None:
    todos = [{"content": f"Work {number}"} for number in range(8)]
    model = Short({"Hand": lambda view: [hand_over(*todos)], "Work": [TEA, DONE]})
    with receiver() as endpoint:
        async with serving(temporal, root, model) as jobs:
            limits = {"limits.job.model_calls": 5, "limits.phase.model_calls": None}
            handle = await jobs.start(calling(endpoint, **limits))
            status = await jobs.until(handle, waiting_for="budget")
            await until(lambda: len(endpoint.bodies) == 2)
            await handle.signal("limit", {"model_calls": 500})
            await jobs.result(handle)
            await until(lambda: len(endpoint.bodies) == 3)
    limit, waits, end = endpoint.bodies
    assert (limit["event"], limit["reason"]) == ("limit", "model_calls")
    assert "80 % of a limit: model_calls, 4 of 5" in limit["text"]
    assert limit["command"] == f"starter.py limit {handle.id} model_calls=10"
    assert waits["reason"] == "budget"
    assert waits["command"] in status["waiting"]["remedy"]
    assert "limit is 5 model calls" in waits["text"]
    assert end["event"] == "end"


async def test_an_address_that_fails_is_tried_again_and_keeps_no_job_waiting(
    temporal: Client, root: Root
) -> None:
    with receiver(500, 302, 429) as endpoint:
        async with serving(temporal, root, Short()) as jobs:
            handle = await jobs.start(calling(endpoint))
            await jobs.result(handle)
            assert len(endpoint.bodies) < 4
            await until(lambda: len(endpoint.bodies) == 4)
    assert len(endpoint.keys) == 1


async def test_only_what_is_wanted_is_sent(temporal: Client, root: Root) -> None:
    with receiver() as endpoint:
        async with serving(temporal, root, Short()) as jobs:
            settings = {"notify": {"url": endpoint.url, "on": ["waiting"]}}
            handle = await jobs.start(job(set=settings))
            await jobs.result(handle)
            named = [each async for each in temporal.list_workflows("WorkflowType = 'Notify'")]
    assert endpoint.bodies == []
    assert not [each for each in named if each.id.startswith(handle.id)]


@pytest.mark.parametrize(
    ("notify", "why"),
    [
        ({"url": "ftp://example.com/x"}, "notify.url: expected http:// or https:// and a host"),
        ({"url": "https://me:hush@example.com/"}, "the address holds a user name or password"),
        ({"url": "https://example.com/#x"}, "a fragment (#…) is never sent"),
        ({"url": "https://example.com/a b"}, "white space"),
        ({"url": "https://example.com/", "url_variable": "X"}, "either url or url_variable"),
        ({"url_variable": "NO_SUCH_ADDRESS"}, "this worker has no variable NO_SUCH_ADDRESS"),
        (
            {"url": "https://example.com/", "headers": {"Authorization": "NO_SUCH_KEY"}},
            "headers.Authorization: this worker has no variable NO_SUCH_KEY",
        ),
        ({"url": "https://example.com/", "headers": {"Host": "X"}}, "Host is set by the system"),
        ({"url": "https://example.com/", "on": ["always"]}, "notify.on.0"),
    ],
)
async def test_a_bad_address_fails_the_start_with_what_is_wrong(
    jobs: Jobs, notify: dict[str, Any], why: str
) -> None:
    handle = await jobs.start(job(set={"notify": notify}))
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(handle)
    message = str(failed.value.cause)
    assert why in message
    assert "hush" not in message


async def test_an_address_from_a_variable_is_in_no_history(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as endpoint:
        monkeypatch.setenv("CHAT_WEBHOOK", endpoint.url)
        monkeypatch.setenv("CHAT_AUTHORIZATION", "Bearer 1a2b3c4d5e6f")
        notify = {
            "url_variable": "CHAT_WEBHOOK",
            "headers": {"Authorization": "CHAT_AUTHORIZATION"},
        }
        endpoint.statuses = [500]
        async with serving(temporal, root, Short()) as jobs:
            handle = await jobs.start(job(set={"notify": notify}))
            await jobs.result(handle)
            await until(lambda: len(endpoint.bodies) == 2)
            key = endpoint.bodies[0]["key"]
            child = temporal.get_workflow_handle(f"{handle.id}/notify/{key}")
            await child.result()
            histories = [await handle.fetch_history(), await child.fetch_history()]
    assert endpoint.headers[1]["authorization"] == "Bearer 1a2b3c4d5e6f"
    for history in histories:
        assert "token=abc" not in history.to_json()
        assert "1a2b3c4d5e6f" not in history.to_json()


ASK: Call = ("request_clarification", {"question": "Green or black?", "default": "green"})


async def test_a_project_calls_for_its_jobs_which_call_nobody_themselves(
    temporal: Client, root: Root
) -> None:
    team = Team({"Draft it": lambda told: [ASK, write("repo/menu.md", "tea\n")]})
    with receiver() as endpoint:
        async with serving(temporal, root, team) as jobs:
            notify = {"url": endpoint.url}
            stages = [{"agent": "generalist", "task": "Draft it.", "deadline": 3600}]
            menu = project("pipeline", stages=stages, notify=notify, set={"notify": notify})
            handle = await jobs.start(menu, kind="Project")
            status = await jobs.until(handle, waiting_for="clarification")
            await until(lambda: len(endpoint.bodies) == 1)
            [run] = status["running"]
            assert run["waits_since"] < run["deadline"]
            await handle.signal("answer", {"text": "black"})
            await jobs.result(handle)
            await until(lambda: len(endpoint.bodies) == 2)
    waits, end = endpoint.bodies
    child = f"{handle.id}.stage-1-generalist-1"
    assert (waits["job"], waits["project"], waits["reason"]) == (child, handle.id, "clarification")
    assert waits["command"] == f'starter.py answer {child} "your answer"'
    assert "Green" not in json.dumps(waits)
    assert (end["event"], end["job"], end["status"]) == ("end", handle.id, "completed")
    assert set(endpoint.keys.values()) == {1}


async def test_what_is_blocked_is_told_once_by_its_name(temporal: Client, root: Root) -> None:
    team = Team({"Draft it": lambda told: [("wait", {"seconds": 3600})]})
    stages = [{"agent": "generalist", "id": "menu", "task": "Draft it.", "deadline": 3}]
    with receiver() as endpoint:
        async with serving(temporal, root, team) as jobs:
            settings = {"notify": {"url": endpoint.url}}
            menu = project("pipeline", stages=stages, set=settings, attempts=1)
            handle = await jobs.start(menu, kind="Project")
            await jobs.result(handle)
            await until(lambda: len(endpoint.bodies) == 2)
    [blocked], [end] = endpoint.of("blocked"), endpoint.of("end")
    assert blocked["reason"] == "menu"
    assert f"{handle.id}: the stage menu is blocked" in blocked["text"]
    assert blocked["command"] == f"starter.py show {handle.id}"
    assert end["status"] == "failed"
    assert set(endpoint.keys.values()) == {1}
