"""Show a job: in Temporal Web, to its project, and to people by notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from temporalio import workflow

from protocol import scope_ledger
from protocol.contract import contract_line, not_accepted_line
from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.project import ChildReport
from protocol.search_attribute_names import AGENT, MODEL, PHASE, STATUS
from protocol.waiting import WaitState, status_value
from workflows import details_markdown, due_notifications, job_status, reservations
from workflows.continuation import Continuation
from workflows.details_markdown import markdown_code_block
from workflows.inbox import Inbox
from workflows.job_status import todo_status_word, utc_time_text
from workflows.job_steps import JobSteps
from workflows.notification_delivery import begin_notifications
from workflows.web_display import WebDisplay

MOST_STATE = 460
MOST_KNOWN = 64
MARKS = {"completed": "☑", "current": "▶", "open": "☐", "not needed": "·"}


class JobDisplay:
    """Shows one job; each change once."""

    def __init__(
        self, job: JobRecord, steps: JobSteps, inbox: Inbox, continuation: Continuation
    ) -> None:
        self._job = job
        self._steps = steps
        self._inbox = inbox
        self._web = WebDisplay(continuation)
        self.last_report: ChildReport | None = None
        """The last report to the project."""

    def show_status(self) -> None:
        job = self._job
        job.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = job_details_markdown(job, self._inbox.notices)
        memo = job_memo(job)
        self._web.update(details, memo, job_search_attributes(job, memo))

    async def publish_status(self) -> None:
        """Show the job's status to everyone concerned."""
        self.show_status()
        await self.report_to_project()
        await self.call_people()

    @property
    def is_reported_waiting(self) -> bool:
        """Whether the last report to the project said that the job waits."""
        return self.last_report is not None and self.last_report.status == "waiting"

    async def report_to_project(self) -> None:
        """Report the status to the project if it has changed."""
        job = self._job
        report = job_status.job_status_report(job, workflow.info().workflow_id)
        if not job.project or (self.last_report and report.news == self.last_report.news):
            return
        self.last_report = report
        sending = self._steps.send_signal(job.project, "report", report.model_dump(mode="json"))
        if why := await asyncio.shield(sending):
            self._inbox.notice(f"the report did not reach project {job.project}: {why}", "report")

    async def call_people(self) -> None:
        """Send the notifications that are due."""
        info = workflow.info()
        due = due_notifications.due_job_notifications(
            self._job, info.workflow_id, info.first_execution_run_id
        )
        await begin_notifications(due, self._job.notifying, self._inbox.notice)

    def end_wait(self) -> None:
        """Count the next wait as a new one, even for the same reason."""
        if self._job.waiting is None and self._job.notifying:
            self._job.notifying.waits = {}


def preparing_job_memo(known: dict[str, str], word: str, state: str) -> dict[str, str]:
    """Return the memo of a start. Temporal accepts 2 KB, and a character may take four bytes."""
    fields = {key: value[:MOST_KNOWN] for key, value in known.items()}
    return {**fields, "status": word, "state": state[: MOST_STATE - MOST_KNOWN * len(fields)]}


def preparing_job_markdown(waiting: WaitState, notices: list[Notice]) -> str:
    """Return Temporal Web's current details of a start that waits."""
    return "\n".join(
        [
            *details_markdown.markdown_waiting_lines(waiting),
            *details_markdown.markdown_list_lines("Notices", notices),
        ]
    )


def job_details_markdown(job: JobRecord, notices: list[Notice]) -> str:
    """Return Temporal Web's current details in Markdown. Boxes are characters: `- [x]` would stay
    literal.
    """
    result = job.result
    stands = contract_line(result.statements, result.met, result.contract) if result else ""
    status = f"{job.status}: {stands}" if stands else job.status
    lines = [f"## {job.title}", "", f"**{status}** · agent {job.agent} · model {job.model}", ""]
    if waiting := job.wait:
        lines += [*details_markdown.markdown_waiting_lines(waiting), ""]
        lines += [*markdown_code_block(waiting.about), ""] if waiting.about else []
    if job.timer:
        lines += [f"The agent waits until {utc_time_text(job.timer.ends)}.", ""]
    lines += _phase_details_lines(job)
    lines += [
        "",
        f"Steps {job.step} · {details_markdown.markdown_usage_line(job.usage)} · "
        f"rewinds {job.rewinds} · refusals {job.refusals} · nudges {job.nudges}",
    ]
    for remark in _remark_details_lines(job):
        lines += ["", remark]
    if result:
        lines += ["", "### Result", "", f"**{result.ending_line}**", ""]
        if named := not_accepted_line(result.contract):
            lines += [named, ""]
        lines += [result.summary[:2000], ""]
        lines += [f"- `{path}`" for path in result.deliverables[:50]]
        lines += details_markdown.markdown_list_lines(
            "Unresolved", [text[:300] for text in result.unresolved[:50]]
        )
        lines += details_markdown.markdown_list_lines(
            "Dropped", [text[:300] for text in result.dropped[:50]]
        )
        lines += details_markdown.markdown_contract_lines(result.contract)
    lines += details_markdown.markdown_list_lines("Notices", notices)
    return "\n".join(lines)


def _phase_details_lines(job: JobRecord) -> list[str]:
    """Return the running phase with its list."""
    phase = job.state.phase
    place = f" · plan {phase.plan_position} of {phase.plan_total}" if phase.plan_total else ""
    done, total = phase.progress
    lines = [f"### Phase {phase.number} ({phase.kind}): {phase.name}", ""]
    lines += [f"Progress {done} of {total}{place}", ""]
    # A table, since the UI gives list items bullets of its own and no hanging indent. Its cells
    # have no padding, hence the non-breaking spaces.
    lines += ["| | | |", "|---|---|---|"]
    for todo in phase.todos:
        word, text = todo_status_word(job, todo), details_markdown.markdown_table_cell(todo.content)
        shown = f"**{text}**" if word == "current" else text
        shown += " (not needed)" if word == "not needed" else ""
        lines.append(
            f"| {MARKS[word]}\N{NO-BREAK SPACE} | {todo.id}.\N{NO-BREAK SPACE} | {shown} |"
        )
    return lines


def _remark_details_lines(job: JobRecord) -> Iterator[str]:
    """Return further lines about the status."""
    if items := job.state.scope:
        yield f"Scope: {scope_ledger.scope_ledger_line(items)}"
    if job.push_failure:
        yield f"The remote {job.remote} lacks checkpoints: {job.push_failure}"
    if job.review:
        yield f"The completion is under review, call {job.review.calls + 1}."
    if helpers := reservations.helpers_needing_budget(job):
        yield f"Helpers at work: {len(helpers)}."
    if job.guard_refusals:
        counts = ", ".join(f"{guard} {count}" for guard, count in job.guard_refusals.items())
        yield f"Refused by guards: {counts}"
    if job.bypasses:
        yield f"Bypassed once: {', '.join(job.bypasses)}"


def job_memo(job: JobRecord) -> dict[str, str]:
    """Return the last state in short, for when no worker can be asked."""
    phase = job.state.phase
    done, total = phase.progress
    state = f"phase {phase.number} ({phase.kind}) {phase.name}, {done}/{total} todos"
    memo = {
        "title": job.title,
        "agent": job.agent,
        "status": status_value(job.status, job.waiting.reason if job.waiting else None),
        "phase": f"{phase.number} {phase.kind}",
        "state": state,
    }
    if (result := job.result) and result.statements:
        met = contract_line(result.statements, result.met, result.contract)
        memo |= {"met": met, "state": f"{result.ending_line}; {state}"}
    return memo


def job_search_attributes(job: JobRecord, memo: dict[str, str]) -> dict[str, str]:
    """Return the values of the search attributes that the server has registered."""
    values = {
        AGENT: memo["agent"],
        STATUS: memo["status"],
        PHASE: memo["phase"],
        MODEL: job.model[:100],
    }
    return {name: value for name, value in values.items() if name in job.search_attributes}
