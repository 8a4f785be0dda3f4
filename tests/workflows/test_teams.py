"""Teams: quotas hold starts back before they cost anything, and spend is told by team."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from activities.checkpoints import Root
from cli.commands.look_commands import list_jobs
from cli.report.team_spend import spend_by_team, spend_csv
from protocol.teams import noted_spend, spend_memo
from protocol.usage import Spend
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, TEA, Call, Short, job
from tests.workflows.team import Team, project

ASK = ("request_clarification", {"question": "Black?", "default": "Yes."})


@pytest.fixture
def teams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "configuration"
    folder.mkdir()
    monkeypatch.setenv("LONGHAUL_CONFIG", str(folder))
    return folder / "teams.yaml"


def _list_teams(file: Path, text: str) -> None:
    file.write_text(text)


async def _refusal(jobs: Jobs, **details: str) -> str:
    with pytest.raises(WorkflowFailureError) as failed:
        await jobs.result(await jobs.start(job(**details)))
    return str(failed.value.cause)


async def test_a_start_over_the_quota_waits_and_begins_once_an_older_job_ends(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "tea: {jobs: 1}\nmilk: {}\n")
    model = Short({"Work": [TEA, ASK, DONE]})
    async with serving(temporal, root, model) as jobs:
        first = await jobs.start(job(team="tea"))
        await jobs.until(first, waiting_for="clarification")
        second = await jobs.start(job(team="tea"))
        third = await jobs.start(job(team="tea"))
        waiting = (await jobs.until(second, waiting_for="quota"))["waiting"]
        await jobs.until(third, waiting_for="quota")
        assert waiting["message"] == (
            "prepare: Team tea may have 1 job at once, and started before this one are "
            f"{first.id}. It begins once one of them has ended."
        )
        # Nothing was made for it.
        assert not root.repository(second.id).exists()
        assert not jobs.folder(second).exists()
        # Another team is not held back.
        other = await jobs.start(job(team="milk"))
        await jobs.until(other, waiting_for="clarification")
        [row] = (await list_jobs(temporal, 50, team="milk"))[0]
        assert (row["job_id"], row["team"]) == (other.id, "milk")
        await first.signal("answer", {"text": "Black."})
        await jobs.result(first)
        # The younger one does not overtake the older one.
        await third.signal("resume", {})
        await second.signal("resume", {})
        await jobs.until(second, waiting_for="clarification")
        message = (await jobs.until(third, waiting_for="quota"))["waiting"]["message"]
        assert second.id in message
        for handle in (second, third, other):
            await handle.signal("cancel", {})
        why = await _refusal(jobs, team="beer")
        assert "there is no team 'beer'; this configuration has milk, tea" in why
        assert "a start names its team" in await _refusal(jobs)
        bad = await jobs.start(job(team="milk"), job_id=f"{jobs.queue}\nWaiting: all")
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(bad)
        assert "characters that are not printed" in str(failed.value.cause)


async def test_starts_at_the_same_moment_do_not_pass_the_quota_together(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "mate: {jobs: 2}\n")
    async with serving(temporal, root, Short({"Work": [TEA, ASK, DONE]})) as jobs:
        handles = await asyncio.gather(*(jobs.start(job(team="mate")) for _ in range(6)))
        wanted = {"waiting_for": lambda reason: reason in ("quota", "clarification")}
        statuses = await asyncio.gather(*(jobs.until(each, **wanted) for each in handles))
        reasons = [status["waiting_for"] for status in statuses]
        assert sorted(reasons) == ["clarification"] * 2 + ["quota"] * 4
        for handle in handles:
            await handle.signal("cancel", {})


async def test_a_team_that_has_spent_its_day_waits_until_midnight_and_spend_is_told_by_team(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "juice: {tokens: 100}\n")
    async with serving(temporal, root, Short()) as jobs:
        done = await jobs.start(job(team="juice"))
        usage = (await jobs.result(done))["usage"]
        second = await jobs.start(job(team="juice"))
        message = (await jobs.until(second, waiting_for="quota"))["waiting"]["message"]
        await second.signal("cancel", {})
    spent = usage["prompt_tokens"] + usage["completion_tokens"]
    assert f"Team juice has spent {spent:,} tokens of 100 tokens a day; it begins at" in message
    assert "00:00 UTC" in message
    rows = [row for row in await spend_by_team(temporal) if row["team"] == "juice"]
    assert sum(row["tokens"] for row in rows) == spent
    assert sum(row["jobs"] for row in rows) == 2
    assert f"juice,generalist,2,1,0.0,{spent}\n" in f"{spend_csv(rows)}\n" or len(rows) == 2


async def test_jobs_of_a_project_count_as_its_team(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "cocoa: {jobs: 1}\n")
    start = project("pipeline", stages=[{"agent": "generalist", "task": "Draft it."}])
    model = Team({"Draft it": lambda told: [ASK]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start({**start, "team": "cocoa"}, kind="Project")
        await jobs.until(handle, waiting_for="clarification")
        other = await jobs.start(job(team="cocoa"))
        message = (await jobs.until(other, waiting_for="quota"))["waiting"]["message"]
        assert f"are {handle.id}." in message
        await other.signal("cancel", {})
        await handle.signal("cancel", {})


async def test_the_memo_of_a_start_names_no_team_no_spend_and_no_earlier_beginning(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "rum: {jobs: 1, tokens: 1000000}\ngin: {}\n")
    forged = {"team": "rum", "spent": "9 9000000", "began": "2000", "run": "x"}
    forged["today"] = f"{datetime.now(UTC):%Y-%m-%d} 9 9000000"

    async with serving(temporal, root, Short({"Work": [TEA, ASK, DONE]})) as jobs:

        async def begin(number: int, **more: Any) -> WorkflowHandle[Any, Any]:
            more = {"memo": forged, **more}
            name = f"{jobs.queue}-forged-{number}"
            return await temporal.start_workflow("Job", id=name, task_queue=jobs.queue, **more)

        # One that is refused, one that the server delays, and one of another team.
        refused = await begin(1, arg=job())
        with pytest.raises(WorkflowFailureError):
            await refused.result()
        await begin(2, arg=job(team="rum"), start_delay=timedelta(hours=1))
        await begin(3, arg=job(team="gin"))
        honest = await jobs.start(job(team="rum"))
        await jobs.until(honest, waiting_for="clarification")
        overtaking = await begin(4, arg=job(team="rum"))
        await jobs.until(overtaking, waiting_for="quota")
        rows = [row for row in await spend_by_team(temporal) if row["team"] in ("rum", "gin")]
        assert sum(row["tokens"] for row in rows) < 9_000_000
        listed = [row["job_id"] for row in (await list_jobs(temporal, 50, team="rum"))[0]]
        assert sorted(listed) == sorted([honest.id, overtaking.id])
        for number in (2, 3, 4):
            handle = temporal.get_workflow_handle(f"{jobs.queue}-forged-{number}")
            await handle.terminate()
        await honest.signal("cancel", {})


async def test_a_project_whose_team_is_no_longer_listed_waits_with_its_next_job(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "mocha: {}\n")
    stages = [{"agent": "generalist", "task": f"{what} it."} for what in ("Draft", "Edit")]

    def edit_teams(told: str) -> list[Call]:
        _list_teams(teams, "latte: {}\n")
        return [TEA]

    model = Team({"Draft it": edit_teams, "Edit it": lambda told: [TEA]})
    async with serving(temporal, root, model) as jobs:
        start = {**project("pipeline", stages=stages), "team": "mocha"}
        handle = await jobs.start(start, kind="Project")
        message = (await jobs.until(handle, waiting_for="dependency"))["waiting"]["message"]
        assert "there is no team 'mocha'; this configuration has latte" in message
        assert "there is no team 'mocha'" in await _refusal(jobs, team="mocha")
        _list_teams(teams, "mocha: {}\n")
        [waiting] = (await query_status(handle))["running"]
        await temporal.get_workflow_handle(waiting["job"]).signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_a_job_that_continues_as_new_goes_on_counting_and_counts_once(
    temporal: Client, root: Root, teams: Path
) -> None:
    _list_teams(teams, "port: {jobs: 1, tokens: 100}\n")
    often = {"limits.history_events": 100}
    cups = [("write_file", {"path": f"notes/{n}.md", "content": f"{n}"}) for n in range(12)]
    model = Short({"Work": [*cups, TEA, ASK, DONE]})
    async with serving(temporal, root, model) as jobs:
        first = await jobs.start(job(team="port", set=often))
        status = await jobs.until(first, waiting_for="clarification")
        description = await first.describe()
        assert description.run_id != first.first_execution_run_id
        second = await jobs.start(job(team="port"))
        message = (await jobs.until(second, waiting_for="quota"))["waiting"]["message"]
        used = status["usage"]["prompt_tokens"] + status["usage"]["completion_tokens"]
        assert f"Team port has spent {used:,} tokens of 100 tokens a day" in message
        _list_teams(teams, "port: {jobs: 1}\n")
        await second.signal("resume", {})
        about = {"waiting": lambda waiting: f"are {first.id}." in waiting["message"]}
        await jobs.until(second, **about)
        for handle in (first, second):
            await handle.signal("cancel", {})


def test_spend_that_is_noted_is_read_again_and_only_of_its_day() -> None:
    memo = spend_memo(Spend(tokens=7, cost=1.5), "2026-03-01", Spend(tokens=2, cost=1e-07))
    assert noted_spend(memo) == Spend(tokens=7, cost=1.5)
    assert noted_spend(memo, "2026-03-01") == Spend(tokens=2, cost=1e-07)
    assert noted_spend(memo, "2026-03-02") == Spend()
    assert noted_spend({"spent": "a lot"}) == Spend()
    assert noted_spend({"spent": "nan 5"}) == Spend(tokens=5)
    assert noted_spend({"spent": "-100.0 -7"}) == Spend()
