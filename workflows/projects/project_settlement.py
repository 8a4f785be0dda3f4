"""What follows the end of a project's job: its work is inspected, merged, and accounted for."""

from temporalio import workflow

from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_units import MAX_JOB_SUMMARIES, EndedJob, JobSummary, RunningJob
from protocol.short_text import one_line, shorten_to_start
from protocol.trace_requests import MOST_AT_A_TIME
from workflows.jobs.learning_notes import KEPT
from workflows.projects import project_status
from workflows.projects.project_children import ProjectChildren
from workflows.projects.project_steps import ProjectSteps
from workflows.projects.project_waits import note_project_job_wait
from workflows.rules import project_units
from workflows.rules.forms import FORM_FIELDS, FORMS
from workflows.runtime import trace_notes
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.inbox import Inbox


class ProjectSettlement:
    """Settles the jobs of one project."""

    def __init__(
        self, project: ProjectRecord, steps: ProjectSteps, inbox: Inbox, children: ProjectChildren
    ) -> None:
        self._project = project
        self._form = FORMS[project.start.form]
        self._steps = steps
        self._inbox = inbox
        self._children = children

    async def settle_job(self, ended: EndedJob) -> None:
        """Inspect a child's work, merge it if it is accepted, and continue from there."""
        project = self._project
        run = project.running[ended.job]
        work = await self._steps.take_work(project, run, ended) if ended.checkpoint else None
        if work:
            # Now, because a repeated step would find its summary kept, and take it for one already
            # paid for.
            project.usage.add(work.usage)
        # On copies, since the steps below can fail and are then repeated.
        after = project.model_copy(deep=True)
        before = {unit.id: unit.model_dump() for unit in project.units}
        why = project_units.unit_work_problems(ended, work)
        if commit := self._form.settle_job(after, run, ended, work):
            assert work
            message = project_units.unit_merge_message(after, run, work)
            merge = await self._steps.merge_work(after, run, commit, message)
            if merge.conflicts:
                why = [f"it collides with accepted work in {', '.join(merge.conflicts[:20])}"]
            else:
                after.head = merge.commit
            self._form.mark_merged(after, run, merge.conflicts, merge.commit)
        project_units.note_unit_attempt(after, run, ended, work, why)
        project_units.shorten_settled_units(after.units)
        changed = [unit.id for unit in after.units if unit.model_dump() != before.get(unit.id)]
        if changed:
            story = project_status.project_job_status_line(after, run, ended)
            after.state = await self._steps.write_state(after, changed, story)
        for name in (*FORM_FIELDS, "head", "state"):
            setattr(project, name, getattr(after, name))
        self._close_account(run, ended, work, why)
        await store_learning_handoffs(project, self._steps, self._inbox)

    def _close_account(
        self, run: RunningJob, ended: EndedJob, work: ChildWork | None, why: list[str]
    ) -> None:
        """Settle a job's use of limits, and record its outcome for people."""
        project = self._project
        project.usage.add(ended.usage)
        note_project_job_wait(project, run, None)
        del project.running[run.job]
        project.ended_jobs = [other for other in project.ended_jobs if other.job != ended.job]
        self._children.forget(run.job)
        status = project_units.project_job_outcome(ended, work, why)
        if why:
            self._inbox.notice(f"{run.job} {status}: {one_line('; '.join(why), 400)}")
        elif work:
            project.results = [*project.results, f"{run.handoff.id}: {work.summary}"][-3:]
            project_units.keep_unresolved_unit_work(project, run, ended, work)
        add_project_job_summary(
            project, run, status, ended.reason or (work.summary if work else "")
        )
        trace_notes.note_handoff_trace(project, run, ended, why, workflow.info().run_id)


def add_project_job_summary(
    project: ProjectRecord, run: RunningJob, status: str, summary: str
) -> None:
    """Record for people how a job ended."""
    job_summary = JobSummary(
        job=run.job,
        agent=run.handoff.to_agent,
        unit=run.unit,
        status=status,
        summary=shorten_to_start(summary, 300),
    )
    project.job_summaries = [*project.job_summaries, job_summary][-MAX_JOB_SUMMARIES:]


async def store_learning_handoffs(
    project: ProjectRecord, steps: ProjectSteps, inbox: Inbox
) -> bool:
    """Store a project's pending handoffs; return whether the store took them."""
    while handed := project.traces[:MOST_AT_A_TIME]:
        try:
            await steps.store_handoffs(project, handed)
        except StepFailed as failed:
            inbox.notice(KEPT.format(why=failed.message), "traces")
            return False
        project.traces = project.traces[len(handed) :]
    return True
