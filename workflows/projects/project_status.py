"""The status of a project: the answer to the query `status`, and what it says of units and jobs."""

from typing import Any

from protocol import scope_ledger, status
from protocol.project_record import ProjectRecord
from protocol.project_start import FORM_SPECS
from protocol.project_units import Attempt, EndedJob, Feature, Group, JobSummary, RunningJob, Unit
from protocol.short_text import shell_quoted, shorten_to_start
from protocol.waiting import WaitState
from workflows.jobs.job_status import utc_time_text
from workflows.projects.project_waits import current_project_wait
from workflows.rules import project_budget_shares
from workflows.rules.project_budget_shares import total_project_usage
from workflows.runtime.inbox import Inbox


def project_status_answer(project: ProjectRecord, inbox: Inbox) -> status.ProjectStatus:
    """Return the answer to the query, to which `starter.py show --json` adds some fields."""
    # An ended project shows its units as its result has them, whose size is bounded.
    units = (
        project.result.units
        if project.result
        else [project_unit_status(unit, project) for unit in project.units]
    )
    usage = total_project_usage(project)
    return status.ProjectStatus(
        job_id=project.id,
        form=project.start.form,
        agent=f"project ({project.start.form})",
        title=project.title,
        root=project.root,
        repository=project.repository,
        remote=status.RemoteStatus(url=project.remote) if project.remote else None,
        origin=project.origin,
        status=project_status_word(project),
        waiting=current_project_wait(project),
        approval=_project_status_approval(project),
        line=project_status_line(project),
        wave=project.wave,
        units=[status.ProjectUnit.model_validate(unit) for unit in units],
        running=[_running_project_job_status(run) for run in project.unended_runs],
        jobs=[
            *project.job_summaries,
            *(
                JobSummary(
                    job=run.job,
                    agent=run.handoff.to_agent,
                    unit=run.unit,
                    status="ended",
                    summary=_settling_text(run),
                )
                for run in project.ended_runs
            ),
        ],
        usage=usage,
        unproven=usage.spend - project.progress.spent,
        limits={"project": project_budget_shares.project_limits_with_usage(project)},
        scope=status.ScopeCounts(**scope_ledger.scope_counts(project.scope)),
        items=status.list_item_statuses(project.scope),
        refusals=project.refusals + inbox.refused,
        notices=inbox.notices,
        waits=project.waits,
        head=project.head,
        state=project.state,
        result=project.result and project.result.model_copy(update={"units": []}),
    )


def _project_status_approval(project: ProjectRecord) -> status.ProjectApproval | None:
    waiting = project.waiting
    if waiting is None or waiting.reason != "approval":
        return None
    return status.ProjectApproval(id=waiting.about["id"])


def preparing_project_status(inbox: Inbox, waiting: WaitState | None) -> status.ProjectStatus:
    """Return the status of a project that has not begun."""
    return status.ProjectStatus(
        status="waiting" if waiting else "running",
        waiting=waiting,
        refusals=inbox.refused,
        notices=inbox.notices,
    )


def project_unit_status(
    unit: Unit, project: ProjectRecord, most: int | None = None, *, ended: bool = False
) -> dict[str, Any]:
    """Return a feature, group or stage for people and programs.

    Args:
        unit: The feature, group or stage.
        project: Its project, which the advice names.
        most: Most characters of its title, and of its reasons together; None for all.
        ended: Whether the project has ended, so that nothing is tried any more.
    """
    reasons = unit.reasons
    if most is not None and reasons:
        reasons = [" ".join(reasons)[:most]]
    data: dict[str, Any] = {
        "id": unit.id,
        "title": unit.title[:most],
        "status": unit.status,
        "attempts": unit.attempts,
        "reasons": reasons,
        "history": [_unit_attempt_data(each, most) for each in unit.history],
        "commit": unit.merged,
    }
    if unit.status == "blocked":
        data["unblock"] = unblock_unit_advice(unit, project, ended=ended)
    if isinstance(unit, Feature):
        data |= {"checks": unit.checks, "tested": unit.tested, "turn": unit.turn}
        data["tests"] = {check: each.command for check, each in unit.tests.items()}
        data["evidence"] = [
            run.model_dump(exclude_defaults=True, exclude=None if most is None else {"end"})
            for run in unit.evidence
        ]
    if isinstance(unit, Group):
        data |= {"items": unit.items, "wave": unit.wave}
    return data


def _unit_attempt_data(attempt: Attempt, most: int | None) -> dict[str, Any]:
    data = attempt.model_dump(exclude_defaults=True)
    if most is not None and attempt.why:
        data["why"] = [shorten_to_start(" ".join(attempt.why), most)]
    return data


def unblock_unit_advice(unit: Unit, project: ProjectRecord, *, ended: bool) -> str:
    """Return what a person can do about a blocked unit."""
    name = shell_quoted(project.id)
    again = ""
    if isinstance(unit, Feature) and not ended:
        again = (
            f"While the project runs, `starter.py tell {name} --unit {unit.id} '…'` has it "
            "tried once more with what you say. "
        )
    if not unit.job:
        return f"{again}None of its jobs made anything: mend what its reasons name."
    branch = next((each.branch for each in unit.history[::-1] if each.branch), "")
    last = f"Its last work is on the branch {branch}. " if branch else ""
    phase = f" --phase {unit.phases}" if unit.phases else ""
    return (
        f"{again}{last}`starter.py fork {shell_quoted(unit.job)}{phase} --id NEW --instructions "
        f"'…'` goes on from it; once both are over, `starter.py adopt {name} NEW` merges that."
    )


def project_status_word(project: ProjectRecord) -> str:
    if project.result:
        return project.result.status
    return "waiting" if current_project_wait(project) else "running"


def project_status_line(project: ProjectRecord) -> str:
    """Return the project's progress: `3 of 12 features; coder on brew`."""
    units = project.units
    kind = f"{FORM_SPECS[project.start.form].unit}s"
    done = sum(unit.status == "completed" for unit in units)
    text = f"{done} of {len(units)} {kind}" if units else f"no {kind} yet"
    blocked = sum(unit.status == "blocked" for unit in units)
    text += f", {blocked} blocked" if blocked else ""
    runs = [f"{run.role} on {run.unit}" for run in project.unended_runs]
    runs += [f"{_settling_text(run)} for {run.unit}" for run in project.ended_runs]
    return text + (f"; {', '.join(runs)}" if runs else "")


def _settling_text(run: RunningJob) -> str:
    """Return what happens between the end of a job and the next move."""
    return "the system runs its tests" if run.handoff.tests else "the system examines its work"


def project_job_status_line(project: ProjectRecord, run: RunningJob, over: EndedJob) -> str:
    """Return a job's outcome for the log: `brew-tester-1: completed; brew is blocked`."""
    unit = project.find_unit(run.unit)
    return f"{run.handoff.id}: {over.status}" + (f"; {unit.id} is {unit.status}" if unit else "")


def _running_project_job_status(run: RunningJob) -> status.ProjectJob:
    deadline = run.since + run.handoff.deadline if run.handoff.deadline is not None else None
    return status.ProjectJob(
        job=run.job,
        agent=run.handoff.to_agent,
        unit=run.unit,
        role=run.role,
        status=run.last_report.status,
        waiting=run.last_report.waiting,
        phase=run.last_report.phase,
        disproved=run.last_report.disproved,
        waits_since=utc_time_text(run.person_wait.since) if run.person_wait else None,
        deadline=utc_time_text(deadline) if deadline is not None else None,
    )
