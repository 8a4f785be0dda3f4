"""Show a project: in Temporal Web, and to people by notifications."""

from __future__ import annotations

from temporalio import workflow

from protocol import scope_ledger
from protocol.notices import Notice
from protocol.project import RunningJob
from protocol.project_forms import FORM_SPECS
from protocol.project_record import ProjectRecord
from protocol.search_attribute_names import AGENT, PHASE, STATUS
from protocol.waiting import status_value
from workflows import details_markdown, due_notifications
from workflows.continuation import Continuation
from workflows.inbox import Inbox
from workflows.job_status import utc_time_text
from workflows.notification_delivery import begin_notifications
from workflows.project_budget_shares import total_project_usage
from workflows.project_status import project_status_line, project_status_word
from workflows.project_waits import current_project_wait
from workflows.web_display import WebDisplay

MARKS = {"completed": "☑", "in_progress": "▶", "pending": "☐", "blocked": "☒"}


class ProjectDisplay:
    """Shows one project; each change once."""

    def __init__(self, project: ProjectRecord, inbox: Inbox, continuation: Continuation) -> None:
        self._project = project
        self._inbox = inbox
        self._web = WebDisplay(continuation)

    def show_status(self) -> None:
        project = self._project
        project.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = project_details_markdown(project, self._inbox.notices)
        memo = project_memo(project)
        self._web.update(details, memo, project_search_attributes(project, memo))

    async def publish_status(self) -> None:
        """Show the project's status to everyone concerned."""
        project = self._project
        self.show_status()
        due = due_notifications.due_project_notifications(
            project, workflow.info().first_execution_run_id
        )
        await begin_notifications(due, project.notifying, self._inbox.notice)

    def end_wait(self) -> None:
        """Count the next wait as a new one, even for the same reason."""
        if self._project.notifying:
            self._project.notifying.waits.pop(self._project.id, None)


def project_details_markdown(project: ProjectRecord, notices: list[Notice]) -> str:
    """Return Temporal Web's current details, in Markdown."""
    lines = [
        f"## {project.title}",
        "",
        f"**{project_status_word(project)}** · project of {FORM_SPECS[project.start.form].unit}s"
        + (f" · wave {project.wave}" if project.wave else ""),
        "",
    ]
    if stands := current_project_wait(project):
        lines += [*details_markdown.markdown_waiting_lines(stands), ""]
    lines += [f"### {project_status_line(project)}", ""]
    if project.units:
        heading = FORM_SPECS[project.start.form].unit
        lines += [f"| | {heading} | | attempts | |", "|---|---|---|---|---|"]
    for unit in project.units:
        why = details_markdown.markdown_table_cell(" ".join(unit.reasons))[:200]
        title = details_markdown.markdown_table_cell(unit.title)
        shown = f"**{title}**" if unit.status == "in_progress" else title
        lines.append(
            f"| {MARKS[unit.status]}\N{NO-BREAK SPACE} | {unit.id} | {shown} | {unit.attempts} "
            f"| {why} |"
        )
    lines += details_markdown.markdown_list_lines(
        "Jobs at work", [_details_line_of_job(run) for run in project.unended_runs]
    )
    over = [f"`{run.job}` ({run.handoff.to_agent})" for run in project.ended_runs]
    lines += details_markdown.markdown_list_lines("Jobs that have ended, to be looked into", over)
    usage = total_project_usage(project)
    calls = f"Jobs {project.jobs} · model calls {usage.model_calls}"
    usage_line = f"{calls} · {details_markdown.markdown_usage_line(usage)}"
    lines += ["", usage_line]
    if project.scope:
        lines += ["", f"Scope: {scope_ledger.scope_ledger_line(project.scope)}"]
    if project.result:
        lines += ["", "### Result", "", project.result.summary[:2000]]
        lines += ["", *(f"- unresolved: {text[:300]}" for text in project.result.unresolved[:50])]
    lines += details_markdown.markdown_list_lines("Notices", notices)
    return "\n".join(lines)


def project_memo(project: ProjectRecord) -> dict[str, str]:
    """Return the last state in short, for when no worker can be asked."""
    stands = current_project_wait(project)
    return {
        "title": project.title,
        "agent": f"project ({project.start.form})",
        "status": status_value(project_status_word(project), stands.reason if stands else None),
        "state": project_status_line(project),
    }


def project_search_attributes(project: ProjectRecord, memo: dict[str, str]) -> dict[str, str]:
    """Return the memo's values of the search attributes that the server has registered."""
    values = {AGENT: memo["agent"], STATUS: memo["status"], PHASE: memo["state"][:100]}
    return {name: value for name, value in values.items() if name in project.search_attributes}


def _details_line_of_job(run: RunningJob) -> str:
    state = (
        f"waiting: {run.last_report.waiting}" if run.last_report.waiting else run.last_report.phase
    )
    if run.last_report.waiting and run.handoff.deadline is not None:
        ends = utc_time_text(run.since + run.handoff.deadline)
        state += f", which counts against its deadline ({ends})"
    return f"`{run.job}` ({run.handoff.to_agent}) {details_markdown.markdown_table_cell(state)}"
