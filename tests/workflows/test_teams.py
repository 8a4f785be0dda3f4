"""Teams: quotas hold starts back before they cost anything, and spend is told by team."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from cli.commands.look_commands import list_jobs
from cli.report.team_spend import spend_by_team, spend_csv
from protocol.teams import noted_spend, spend_memo
from protocol.usage import Spend
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, TEA, Short, job
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


def test_spend_that_is_noted_is_read_again_and_only_of_its_day() -> None:
    memo = spend_memo(Spend(tokens=7, cost=1.5), "2026-03-01", Spend(tokens=2, cost=1e-07))
    assert noted_spend(memo) == Spend(tokens=7, cost=1.5)
    assert noted_spend(memo, "2026-03-01") == Spend(tokens=2, cost=1e-07)
    assert noted_spend(memo, "2026-03-02") == Spend()
    assert noted_spend({"spent": "a lot"}) == Spend()
    assert noted_spend({"spent": "nan 5"}) == Spend(tokens=5)
    assert noted_spend({"spent": "-100.0 -7"}) == Spend()
