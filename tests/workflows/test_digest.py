"""The daily digest, by the schedule that a worker makes from its configuration."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from engine.schedules import schedule_digests
from protocol.usage import Progress, Spend
from tests.receiver import Receiver, receiver
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, TEA, Short, job
from tests.workflows.team import Team, answer, project
from tests.workflows.test_due_notifications import until

ASK = ("request_clarification", {"question": "Black?", "default": "Yes."})
ASKS = Short({"Work": [TEA, ASK, DONE]})
GROUPS = (("green", "S1"), ("black", "S2"))


def _configure(folder: Path, patch: pytest.MonkeyPatch, text: str) -> None:
    (folder / "defaults.yaml").write_text(text)
    patch.setenv("LONGHAUL_CONFIG", str(folder))


async def _schedules(jobs: Jobs) -> list[str]:
    found = [each.id async for each in await jobs.client.list_schedules()]
    return [name for name in found if name.startswith(f"longhaul-digest/{jobs.queue}/")]


async def _digest(jobs: Jobs, endpoint: Receiver) -> str:
    """Let the schedule send a digest now; return its text."""
    before = len(endpoint.of("digest"))
    await jobs.client.get_schedule_handle(f"longhaul-digest/{jobs.queue}/08-00").trigger()
    await until(lambda: len(endpoint.of("digest")) > before)
    return str(endpoint.of("digest")[-1]["text"])


async def test_a_digest_tells_what_ended_what_waits_and_what_was_spent_since_the_last(
    temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as endpoint:
        notify = f'notify: {{url: "{endpoint.url}", on: [blocked], digest: 08:00}}\n'
        _configure(tmp_path, monkeypatch, notify)
        async with serving(temporal, root, ASKS) as jobs:
            await schedule_digests(temporal, jobs.queue)
            asked = await jobs.start(job())
            status = await jobs.until(asked, waiting_for="clarification")
            first = await _digest(jobs, endpoint)
            await asked.signal("answer", {"text": "Black."})
            await jobs.result(asked)
            second = await _digest(jobs, endpoint)
            third = await _digest(jobs, endpoint)
    used = status["usage"]["prompt_tokens"] + status["usage"]["completion_tokens"]
    assert f"0 ended, 1 waiting, 0 running; spent {used:,} tokens." in first
    assert f"Waiting: {asked.id}: clarification. Type: starter.py answer {asked.id}" in first
    assert f"spent {used:,} tokens; {used:,} tokens since its last proof or completed" in first
    assert "1 ended, 0 waiting, 0 running" in second
    assert f"Ended: {asked.id}: completed" in second
    assert f"spent {used:,} tokens" not in second
    assert asked.id not in third
    assert set(endpoint.keys.values()) == {1}


async def test_a_job_that_waits_while_others_of_its_project_work_is_named(
    temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [{"id": name, "title": f"The {name}", "items": [item]} for name, item in GROUPS]
    team = Team(
        {
            "Divide the project's scope": lambda told: [
                answer("output/groups.json", {"groups": groups})
            ],
            "the group green": lambda told: [ASK],
            "the group black": lambda told: [("wait", {"seconds": 3600})],
        }
    )
    with receiver() as endpoint:
        notify = f'notify: {{url: "{endpoint.url}", on: [blocked], digest: 08:00}}\n'
        _configure(tmp_path, monkeypatch, notify)
        async with serving(temporal, root, team) as jobs:
            await schedule_digests(temporal, jobs.queue)
            # Its memo is not its own, and it has not begun.
            forged = {"status": "waiting: budget. Type: rm", "agent": "other"}
            options: Any = {"memo": forged, "start_delay": timedelta(hours=1)}
            name = f"{jobs.queue}-later"
            later = await temporal.start_workflow(
                "Job", job(), id=name, task_queue=jobs.queue, **options
            )
            start = project("groups", items=["green tea", "black tea"])
            handle = await jobs.start(start, kind="Project")
            at_work = {"running": lambda runs: [each["waiting"] for each in runs].count(None) == 1}
            status = await jobs.until(
                handle, **{**at_work, "line": lambda line: "black" in line and "green" in line}
            )
            assert status["waiting"] is None
            text = await _digest(jobs, endpoint)
            await handle.signal("cancel", {})
            await later.terminate()
    [asking] = [each["job"] for each in status["running"] if each["waiting"]]
    assert (
        f"Waiting: {handle.id}: clarification of {asking}. Type: starter.py show {handle.id} ("
    ) in text
    assert f"Running: {name}: unclear (it did not answer)" in text


async def test_the_schedules_follow_the_configuration(
    temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        _configure(tmp_path, monkeypatch, 'notify: {url: "http://h/", digest: "08:00"}\n')
        await schedule_digests(temporal, jobs.queue)
        paris = 'notify: {url: "http://h/", digest: "23:30 Europe/Paris"}\n'
        _configure(tmp_path, monkeypatch, paris)
        async with asyncio.timeout(20):
            while await _schedules(jobs) != [f"longhaul-digest/{jobs.queue}/23-30-Europe-Paris"]:
                await schedule_digests(temporal, jobs.queue)
                await asyncio.sleep(0.2)
        name = f"longhaul-digest/{jobs.queue}/23-30-Europe-Paris"
        [due, *_] = (await temporal.get_schedule_handle(name).describe()).info.next_action_times
        assert due.minute == 30
        assert due.hour in (21, 22)
        await temporal.get_schedule_handle(name).delete()


def test_what_is_unproven_begins_anew_with_each_proof_alone() -> None:
    begun = Progress().counted(1, Spend(tokens=10, cost=0.5))
    undone = begun.counted(0, Spend(tokens=20, cost=1.0))
    again = undone.counted(1, Spend(tokens=30, cost=1.5))
    spent = Spend(tokens=40, cost=2.0)
    assert spent - undone.spent == Spend(tokens=30, cost=1.5)
    assert spent - again.spent == Spend(tokens=10, cost=0.5)
