"""Show a project: the `status` query, current details, memo, search attributes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from protocol import scope_ledger
from protocol.git_address import git_address_without_user
from protocol.job_record import MOST_BYTES
from protocol.project import (
    Attempt,
    EndedJob,
    Feature,
    Group,
    JobSummary,
    ProjectOutcome,
    ProjectResult,
    RunningJob,
    Unit,
)
from protocol.project_forms import FORM_SPECS
from protocol.project_record import ProjectRecord
from protocol.publishing import Publish
from protocol.search_attribute_names import AGENT, PHASE, STATUS
from protocol.short_text import shell_quoted, shorten_to_start
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows import markdown, project_budget_shares
from workflows.inbox import Inbox

MARKS = {"completed": "☑", "in_progress": "▶", "pending": "☐", "blocked": "☒"}
MOST_RESULT_BYTES = MOST_BYTES * 2 // 5
"""Longest result in bytes: the status holds it beside the units."""


def current_project_wait(project: ProjectRecord) -> WaitState | None:
    """Return why the project waits: itself, or because all its children do."""
    if project.waiting:
        return project.waiting
    runs = list(project.running.values())
    if not runs or project.ended_jobs or any(run.last_report.waiting is None for run in runs):
        return None
    return person_wait_status(project, runs[0])


def person_wait_status(project: ProjectRecord, run: RunningJob) -> WaitState:
    """Return why a job waits, and what a person can do about it in a project."""
    report = run.last_report
    # A job knows only its share; raising it there would take budget from the others.
    shared = next((key for key in run.share if f" {key}=" in report.remedy), None)
    return WaitState(
        reason=report.waiting or "tool",
        message=f"Job {report.job}: {report.message}",
        remedy=project_budget_shares.share_limit_remedy(project, shared, len(project.running))
        if shared
        else report.remedy,
    )


def is_project_paused(project: ProjectRecord) -> bool:
    """Whether a person has paused the project."""
    return project.waiting is not None and project.waiting.reason == "paused"


def count_project_time(project: ProjectRecord, now: float) -> None:
    """Count the time until now. Call it before the reason of waiting changes."""
    project.count_time(now, still=current_project_wait(project) is not None)


def project_status_answer(project: ProjectRecord, inbox: Inbox) -> dict[str, Any]:
    """Return the answer to the query, which `starter.py show --json` prints."""
    stands = current_project_wait(project)
    usage = total_project_usage(project)
    return {
        "project": True,
        "form": project.start.form,
        "agent": f"project ({project.start.form})",
        "title": project.title,
        "root": project.root,
        "repository": project.repository,
        "origin": project.origin.model_dump() if project.origin else None,
        "status": project_status_word(project),
        "waiting_for": stands.reason if stands else None,
        "waiting": stands.model_dump() if stands else None,
        "approval": _project_status_approval(project),
        "line": project_status_line(project),
        "wave": project.wave,
        "units": project.result.units
        if project.result
        else [project_unit_status(unit) for unit in project.units],
        "running": [_running_project_job_status(run) for run in unended_project_runs(project)],
        "jobs": [
            *(summary.model_dump() for summary in project.job_summaries),
            *map(_ended_project_job_status, ended_project_runs(project)),
        ],
        "usage": usage.model_dump(),
        "limits": {"project": project_budget_shares.project_limits_with_usage(project)},
        "scope": scope_ledger.scope_counts(project.scope),
        "items": [
            {"id": item.id, "text": item.text[:200], "status": item.status}
            for item in project.scope[:200]
        ],
        "refusals": project.refusals + inbox.refused,
        "notices": inbox.notices,
        "waits": [each.model_dump() for each in project.waits],
        "head": project.head,
        "state": project.state,
        "result": project.result.model_dump() if project.result else None,
    }


def _project_status_approval(project: ProjectRecord) -> dict[str, Any] | None:
    """Return the project's own request for approval: to push its branch."""
    waiting = project.waiting
    if waiting is None or waiting.reason != "approval":
        return None
    return {"id": waiting.about["id"], "approved": None}


def preparing_project_status(inbox: Inbox, stands: WaitState | None) -> dict[str, Any]:
    """Return the status of a project that has not begun: the keys that scripts rely on."""
    return {
        "project": True,
        "agent": None,
        "status": "waiting" if stands else "running",
        "waiting_for": stands.reason if stands else None,
        "waiting": stands.model_dump() if stands else None,
        "line": "",
        "wave": 0,
        "units": [],
        "running": [],
        "jobs": [],
        "usage": Usage().model_dump(),
        "scope": scope_ledger.scope_counts([]),
        "refusals": inbox.refused,
        "notices": inbox.notices,
        "result": None,
    }


def project_unit_status(unit: Unit, most: int | None = None) -> dict[str, Any]:
    """Return a feature, group or stage for people and programs.

    Args:
        most: Most characters of its title, and of its reasons together; None for all.
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
        "history": [_attempt_data(each, most) for each in unit.history],
        "commit": unit.merged,
    }
    if unit.status == "blocked":
        data["unblock"] = unblock_unit_advice(unit)
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


def _attempt_data(attempt: Attempt, most: int | None) -> dict[str, Any]:
    data = attempt.model_dump(exclude_defaults=True)
    if most is not None and attempt.why:
        data["why"] = [shorten_to_start(" ".join(attempt.why), most)]
    return data


def unblock_unit_advice(unit: Unit) -> str:
    """Return what a person can do about a blocked unit."""
    if not unit.job:
        return "None of its jobs made anything: mend what its reasons name and start it anew."
    branch = f"jobs/{unit.job}"
    return (
        f"Its last work is on the branch {branch}. Mend it there, or go on from it with what the "
        f"reasons lack: starter.py fork {unit.job} --phase {unit.phases} --instructions '…'"
    )


def total_project_usage(project: ProjectRecord) -> Usage:
    """Return the usage of all children, by their last reports."""
    usage = project.usage.model_copy()
    for run in project.running.values():
        usage.add(run.last_report.usage)
    return usage


def project_status_word(project: ProjectRecord) -> str:
    if project.result:
        return project.result.status
    return "waiting" if current_project_wait(project) else "running"


def unended_project_runs(project: ProjectRecord) -> list[RunningJob]:
    """Return the jobs that have not ended."""
    over = [run.job for run in ended_project_runs(project)]
    return [run for run in project.running.values() if run.job not in over]


def ended_project_runs(project: ProjectRecord) -> list[RunningJob]:
    """Return the ended jobs whose work is being looked into, or will be."""
    return [project.running[each.job] for each in project.ended_jobs if each.job in project.running]


def project_status_line(project: ProjectRecord) -> str:
    """Return the project's progress: `3 of 12 features; coder on brew`."""
    units = project.units
    kind = f"{FORM_SPECS[project.start.form].unit}s"
    done = sum(unit.status == "completed" for unit in units)
    text = f"{done} of {len(units)} {kind}" if units else f"no {kind} yet"
    blocked = sum(unit.status == "blocked" for unit in units)
    text += f", {blocked} blocked" if blocked else ""
    over = [run.job for run in ended_project_runs(project)]
    if runs := [
        f"{run.role} on {run.unit}{' (ended)' if run.job in over else ''}"
        for run in project.running.values()
    ]:
        text += f"; {', '.join(runs)}"
    return text


def project_job_status_line(project: ProjectRecord, run: RunningJob, over: EndedJob) -> str:
    """Return a job's outcome for the log: `brew-tester-1: completed; brew is blocked`."""
    unit = project.find_unit(run.unit)
    return f"{run.handoff.id}: {over.status}" + (f"; {unit.id} is {unit.status}" if unit else "")


def project_result(project: ProjectRecord, status: ProjectOutcome, reason: str) -> ProjectResult:
    """Return the result of a project that ends now.

    Texts are cut to fit one payload, since the server ends a run with a larger result. The jobs'
    own results have them whole.
    """
    for most in (None, 300, 100):
        shortened = _cut_project_result(project, status, reason, most)
        if len(shortened.model_dump_json().encode()) <= MOST_RESULT_BYTES:
            return shortened
    return _cut_project_result(project, status, reason, 20)


def _cut_project_result(
    project: ProjectRecord, status: ProjectOutcome, reason: str, most: int | None
) -> ProjectResult:
    unresolved = [
        shorten_to_start(
            f"{unit.id} ({unit.status}): "
            f"{(' '.join(unit.reasons) or _unfinished_unit_status(unit))[:most]}",
            500,
        )
        for unit in project.units
        if unit.status != "completed"
    ]
    if status == "failed" and not project.units:
        unresolved += project.findings
    for entries in project.left_open.values():
        unresolved += entries
    by = "1 job" if project.jobs == 1 else f"{project.jobs} jobs"
    return ProjectResult(
        status=status,
        summary=f"{reason + ': ' if reason else ''}{project_status_line(project)}, by {by}.",
        units=[project_unit_status(unit, most) for unit in project.units],
        unresolved=unresolved,
        dropped=[f"{i.id}: {i.reason[:most]}" for i in project.scope if i.status == "dropped"],
        waits=project.waits,
        usage=total_project_usage(project),
        jobs=project.jobs,
    )


def project_status_markdown(project: ProjectRecord, notices: list[str]) -> str:
    """Return Temporal Web's current details, in Markdown."""
    lines = [
        f"## {project.title}",
        "",
        f"**{project_status_word(project)}** · project of {FORM_SPECS[project.start.form].unit}s"
        + (f" · wave {project.wave}" if project.wave else ""),
        "",
    ]
    if stands := current_project_wait(project):
        lines += [*markdown.markdown_waiting_lines(stands), ""]
    lines += [f"### {project_status_line(project)}", ""]
    if project.units:
        heading = FORM_SPECS[project.start.form].unit
        lines += [f"| | {heading} | | attempts | |", "|---|---|---|---|---|"]
    for unit in project.units:
        why = markdown.markdown_table_cell(" ".join(unit.reasons))[:200]
        title = markdown.markdown_table_cell(unit.title)
        shown = f"**{title}**" if unit.status == "in_progress" else title
        lines.append(
            f"| {MARKS[unit.status]}\N{NO-BREAK SPACE} | {unit.id} | {shown} | {unit.attempts} "
            f"| {why} |"
        )
    lines += markdown.markdown_list_lines(
        "Jobs at work", [_project_status_job_line(run) for run in unended_project_runs(project)]
    )
    over = [f"`{run.job}` ({run.handoff.to_agent})" for run in ended_project_runs(project)]
    lines += markdown.markdown_list_lines("Jobs that have ended, to be looked into", over)
    usage = total_project_usage(project)
    calls = f"Jobs {project.jobs} · model calls {usage.model_calls}"
    usage_line = f"{calls} · {markdown.markdown_usage_line(usage)}"
    lines += ["", usage_line]
    if project.scope:
        lines += ["", f"Scope: {scope_ledger.scope_ledger_line(project.scope)}"]
    if project.result:
        lines += ["", "### Result", "", project.result.summary[:2000]]
        lines += ["", *(f"- unresolved: {text[:300]}" for text in project.result.unresolved[:50])]
    lines += markdown.markdown_list_lines("Notices", notices)
    return "\n".join(lines)


def project_status_memo(project: ProjectRecord) -> dict[str, str]:
    """Return the last state in short, for when no worker can be asked."""
    stands = current_project_wait(project)
    return {
        "title": project.title,
        "agent": f"project ({project.start.form})",
        "status": f"waiting: {stands.reason}" if stands else project_status_word(project),
        "state": project_status_line(project),
    }


def project_status_attributes(project: ProjectRecord, memo: dict[str, str]) -> dict[str, str]:
    """Return the memo's values of the search attributes that the server has registered."""
    values = {AGENT: memo["agent"], STATUS: memo["status"], PHASE: memo["state"][:100]}
    return {name: value for name, value in values.items() if name in project.search_attributes}


def _unfinished_unit_status(unit: Unit) -> str:
    return "not finished" if unit.status == "in_progress" else "not begun"


def _project_status_job_line(run: RunningJob) -> str:
    state = (
        f"waiting: {run.last_report.waiting}" if run.last_report.waiting else run.last_report.phase
    )
    if run.last_report.waiting and run.handoff.deadline is not None:
        ends = _project_status_time(run.since + run.handoff.deadline)
        state += f", which counts against its deadline ({ends})"
    return f"`{run.job}` ({run.handoff.to_agent}) {markdown.markdown_table_cell(state)}"


def _ended_project_job_status(run: RunningJob) -> dict[str, Any]:
    summary = JobSummary(job=run.job, agent=run.handoff.to_agent, unit=run.unit, status="ended")
    return summary.model_dump()


def _running_project_job_status(run: RunningJob) -> dict[str, Any]:
    deadline = run.since + run.handoff.deadline if run.handoff.deadline is not None else None
    return {
        "job": run.job,
        "agent": run.handoff.to_agent,
        "unit": run.unit,
        "role": run.role,
        "status": run.last_report.status,
        "waiting": run.last_report.waiting,
        "phase": run.last_report.phase,
        "disproved": run.last_report.disproved,
        "waits_since": _project_status_time(run.person_wait.since) if run.person_wait else None,
        "deadline": _project_status_time(deadline) if deadline is not None else None,
    }


def _project_status_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting_for_publish(project: ProjectRecord, publish: Publish) -> WaitState:
    """Return how a project waits for a person to approve its branch."""
    name, request = shell_quoted(project.id), project.head[:8]
    return WaitState(
        reason="approval",
        message=f"The project is done, and its work would be pushed as branch {publish.branch} to "
        f"{git_address_without_user(publish.remote)}.",
        remedy=f"`starter.py diff {name}` shows it. `starter.py approve {name} --id {request}` or "
        f'`starter.py deny {name} --id {request} --reason "why"`, which ends it without pushing.',
        about={"id": request},
    )
