"""A pipeline in every state, without any job; and the share of the limits its jobs get."""

import pytest
from pydantic import ValidationError

from protocol.limits import LEAST, Budget
from protocol.project_requests import ChildWork
from protocol.usage import Usage
from protocol.waiting import WaitState
from tests.workflows.project_records import Play, started
from workflows.projects import project_waits
from workflows.rules import project_budget_shares
from workflows.rules.project_moves import AssignJob, EndProject, WaitForJobs

STAGES = [{"agent": "creator", "task": "Find."}, {"agent": "validator", "task": "Check."}]


def test_each_stage_starts_when_the_one_before_is_accepted() -> None:
    long = {**STAGES[1], "task": "Check " * 40}
    play = Play(started("pipeline", stages=[STAGES[0], long]))
    assert [stage.title[-2:] for stage in play.project.stages] == ["d.", "k…"]
    [move] = play.start()
    assert (move.job, move.handoff.next_agent) == ("tea.stage-1-creator-1", "validator")
    assert play.moves == [WaitForJobs()]
    play.end(move.job, ChildWork(commit="c1"))
    [following] = play.start()
    assert following.job == "tea.stage-2-validator-1"
    assert following.handoff.from_agent == "creator"
    play.end(following.job, ChildWork(commit="c2"))
    assert play.merges == ["c1", "c2"]
    assert play.moves == [EndProject("completed")]


def test_a_stage_that_is_late_is_begun_once_more_and_then_blocks_the_pipeline() -> None:
    play = Play(started("pipeline", stages=STAGES))
    [move] = play.start()
    play.project.results = ["earlier: Read."]
    play.end(move.job, status="late", phases=0)
    # It is not a fork, and begins with all that the first began with.
    [again] = play.moves
    assert isinstance(again, AssignJob)
    assert again.handoff.inputs.results == ["earlier: Read."]
    assert [stage.status for stage in play.project.stages] == ["pending", "pending"]
    assert play.one(ChildWork(commit="c", problems=["No."])).job == "tea.stage-1-creator-2"
    assert [stage.status for stage in play.project.stages] == ["blocked", "pending"]
    assert play.moves == [EndProject("failed")]


def test_a_stage_may_ask_for_no_second_attempt() -> None:
    play = Play(started("pipeline", stages=[{**STAGES[0], "on_failure": "block"}]))
    play.one(status="failed")
    assert play.moves == [EndProject("failed")]


def test_a_start_that_no_project_could_be_made_of_is_refused() -> None:
    # Both would be called stage-1, so the second would never be seen as completed.
    with pytest.raises(ValidationError, match="two have the same id; one without an id"):
        started("pipeline", stages=[{"agent": "creator"}, {"agent": "creator", "id": "stage-1"}])
    # Longer than any timer allows.
    for start in (
        {"deadline": 10**30, "stages": STAGES},
        {"stages": [{**STAGES[0], "deadline": 10**30}]},
    ):
        with pytest.raises(ValidationError, match="deadline"):
            started("pipeline", **start)


def test_a_limit_is_shared_out_and_what_is_left_goes_to_who_waits() -> None:
    play = Play(started("groups", items=["a", "b"], limits={"cost": 10, "tokens": 90_000}))
    project = play.project
    project.usage = Usage(cost=2.0)
    assert project_budget_shares.divide_shares(project, 2) == {"tokens": 45_000, "cost": 4.0}
    [manager] = play.start()
    run = project.running[manager.job]
    run.share = {"tokens": 45_000, "cost": 4.0}
    assert project_budget_shares.divide_shares(project, 1) == {"tokens": 45_000, "cost": 4.0}
    assert project_budget_shares.additional_shares(project) == {}
    run.last_report.waiting = "budget"
    assert project_budget_shares.additional_shares(project) == {
        manager.job: {"tokens": 90_000, "cost": 8.0}
    }
    run.share = {"tokens": 90_000, "cost": 8.0}
    assert project_budget_shares.additional_shares(project) == {}
    stopped = project_budget_shares.divide_shares(project, 1)
    assert isinstance(stopped, WaitState)
    assert stopped.reason == "budget"
    # It gets the time that the project has left, in addition to what it used itself.
    run.share, run.last_report.seconds = {"seconds": 100}, 103.5
    project.limits, project.seconds = Budget(seconds=150), 120.0
    assert project_budget_shares.additional_shares(project) == {manager.job: {"seconds": 133}}
    assert "starter.py limit tea tokens=180000" in stopped.remedy


def test_the_limit_that_a_project_is_advised_leaves_room() -> None:
    project = started("groups", items=["a", "b"], limits={"tokens": 1000})
    project.id = "tea; ls"
    project.usage = Usage(prompt_tokens=5000)
    stopped = project_budget_shares.divide_shares(project, 2)
    assert isinstance(stopped, WaitState)
    assert "starter.py limit 'tea; ls' tokens=7000`" in stopped.remedy
    project.limits = project.limits.model_copy(update={"tokens": 7000})
    assert project_budget_shares.divide_shares(project, 2) == {"tokens": 1000}


def test_a_lowered_limit_takes_from_the_jobs_at_work_what_they_have_beyond_it() -> None:
    play = Play(started("groups", items=["a"], limits={"tokens": 10_000, "model_calls": 9}))
    project = play.project
    [manager] = play.start()
    run = project.running[manager.job]
    project.usage.prompt_tokens = 2000
    run.share, run.project_seconds_before, project.seconds = {"tokens": 8000}, 20.0, 30.0
    # Most of the time on the clock was spent waiting for people.
    run.since, project.clock = 50.0, 1060.0

    def lowered(**limits: float) -> dict[str, float]:
        project.limits = project.limits.model_copy(update=limits)
        return project_budget_shares.lowered_project_shares(project, limits).get(manager.job, {})

    assert lowered(tokens=20_000) == {}
    assert lowered(tokens=5000) == {"tokens": 3000}
    assert lowered(tokens=1000, cost=2.0) == {
        "tokens": LEAST["tokens"],
        "cost": 2.0,
    }
    # Of the seconds, the job itself has used 10.
    assert lowered(seconds=100) == {"seconds": 80}
    # Two jobs that used their shares unequally keep them if there is room for both.
    project.running["other"] = run.model_copy(update={"share": {"model_calls": 2}})
    run.share = {"model_calls": 6}
    assert lowered(model_calls=10) == {}
    assert lowered(model_calls=6) == {"model_calls": 3}


def test_where_a_job_has_used_up_its_share_the_projects_limit_is_to_be_raised() -> None:
    play = Play(started("groups", items=["a"], limits={"tokens": 1000}))
    [manager] = play.start()
    run = play.project.running[manager.job]
    run.share = {"tokens": 1000}
    run.last_report.waiting = "budget"
    # The job's own advice knows only its share.
    run.last_report.remedy = f"Raise it: `starter.py limit {manager.job} tokens=2000`."
    run.last_report.limit = "tokens"
    shown = project_waits.current_project_wait(play.project)
    assert shown is not None
    assert "`starter.py limit tea tokens=2000`" in shown.remedy
    # A limit of the job's own is shown as it is.
    run.last_report.remedy = f"Raise it: `starter.py limit {manager.job} phase.tokens=2000`."
    run.last_report.limit = "phase.tokens"
    shown = project_waits.current_project_wait(play.project)
    assert shown is not None
    assert shown.remedy == run.last_report.remedy
