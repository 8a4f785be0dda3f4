"""The project: several jobs on one piece of work, decided from its state without asking a person.

    prepare → { what the form says is next → child jobs → look into their work → merge } → result

It plans nothing and writes no product. Which job is begun next, and whether a job's work counts,
is said by the pure functions of its form (`workflows.forms`) from the record; the loop below
carries that out. What people send is attended to between moves, and reaches the children.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.payloads import InvalidPayload, read_input, read_object
from protocol.project import (
    BRIEF,
    MAX_JOB_SUMMARIES,
    MOST_WAITS,
    ChildReport,
    EndedJob,
    JobSummary,
    PersonWait,
    ProjectOutcome,
    ProjectRecord,
    RunningJob,
)
from protocol.project_requests import ChildWork, ProjectPrepareRequest
from protocol.project_start import ProjectStart
from protocol.record import WaitState
from protocol.text import one_line, start_of
from workflows import activity_failures, pipeline, project_status, shares, traces
from workflows.activity_failures import StepFailed
from workflows.forms import FORM_FIELDS, FORMS
from workflows.lifecycle import run_shielded
from workflows.moves import (
    AssignJob,
    EndProject,
    ParkProject,
    WaitForJobs,
    count_begun_job,
    keep_unresolved,
    merge_message,
    note_attempt,
    shorten_settled,
    work_problems,
)
from workflows.project_lifecycle import ProjectLifecycle
from workflows.project_steps import Child, child_outcome
from workflows.start import StartProcedure


@workflow.defn(name="Project")
class Project(ProjectLifecycle):
    """Runs several agents on one piece of work. Input: {"form": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._children: dict[str, Child] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._start = StartProcedure(self._steps, self._inbox)

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """From start to result; see the module."""
        self._project = await self._begin_project(start)
        self._form = FORMS[self._project.start.form]
        return await self._run_until_result(self._project)

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Where the project stands."""
        project: ProjectRecord | None = getattr(self, "_project", None)
        if project is None:
            return project_status.preparing_status(self._inbox, self._start.waiting)
        return project_status.status_answer(project, self._inbox)

    @workflow.signal(description="Sent by the jobs of the project.")
    def report(self, *payload: Any) -> None:
        """Take in how a child stands."""
        try:
            report = read_object(ChildReport, payload[0] if payload else None, "signal report")
        except InvalidPayload as refusal:
            self._inbox.refuse(str(refusal))
            return
        project: ProjectRecord | None = getattr(self, "_project", None)
        run = project.running.get(report.job) if project else None
        if run is None:
            self._inbox.refuse(f"signal report: {report.job[:100]} is no job at work here")
            return
        self._count_time()
        self._note_wait(run, report)
        run.last_report = report
        self._news = True

    def _note_wait(self, run: RunningJob, report: ChildReport | None) -> None:
        """Keep for what and how long a job has waited, once it goes on or is over."""
        reason = report.waiting if report else None
        if run.person_wait and run.person_wait.reason != reason:
            run.person_wait.seconds = round(workflow.time() - run.person_wait.since)
            self._project.waits = [*self._project.waits, run.person_wait][-MOST_WAITS:]
            run.person_wait = None
        if report and reason and not run.person_wait:
            message = one_line(report.message, 300)
            run.person_wait = PersonWait(
                job=run.job, reason=reason, message=message, since=round(workflow.time())
            )

    async def _begin_project(self, start: tuple[Any, ...]) -> ProjectRecord:
        if (record := self._restored_record(ProjectRecord, start)) is not None:
            return record
        try:
            start_input = read_input(
                ProjectStart, start, "project", '{"form": "…", "instructions": "…"}'
            )
            chain = workflow.info().first_execution_run_id
            prepared = await self._start.prepare_until_ready(
                lambda: self._steps.prepare_project(
                    ProjectPrepareRequest(start=start_input, chain=chain)
                ),
                title=start_input.title,
                agent=f"project ({start_input.form})",
            )
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except StepFailed as failed:
            raise ApplicationError(failed.message, type="BadStart", non_retryable=True) from None
        project = ProjectRecord(
            # From here on these are in the scope and in a file: all would not fit into one payload.
            start=start_input.model_copy(update={"items": [], "instructions": BRIEF}),
            id=workflow.info().workflow_id,
            title=prepared.title,
            root=prepared.root,
            repository=prepared.repository,
            head=prepared.commit,
            state=prepared.state,
            stages=pipeline.pipeline_stages(start_input),
            scope=prepared.scope,
            limits=start_input.limits,
            clock=workflow.now().timestamp(),
            search_attributes=prepared.search_attributes,
            notifying=prepared.notifying,
        )
        self._show_status(project)
        return project

    async def _advance(self) -> None:
        project = self._project
        await self._attend_signals()
        try:
            if project.ended_jobs:
                self._show_status(project)
                await self._settle_child(project.ended_jobs[0])
            elif not await self._carry_out_moves():
                await self._wait_for_news()
        except StepFailed as failed:
            self._park_project(activity_failures.wait_after_failure(failed))
        self._count_time()
        await self._publish_status()
        self._continue_as_new_if_due()

    # Moves

    async def _carry_out_moves(self) -> bool:
        """Carry out what the state asks for; whether there was anything."""
        project = self._project
        if self._history_is_long:
            return not project.running
        if traces.is_full(project):
            # The store is away. Nothing new is begun, and once no job is at work the project waits.
            if not project.running:
                await self._has_stored_traces()
            return not project.running
        moves = self._form.next_moves(project)
        if begins := [move for move in moves if isinstance(move, AssignJob)]:
            part = shares.divide_shares(project, len(begins))
            if isinstance(part, WaitState):
                if not project.running:
                    project.waiting = part
                return not project.running
            for move in begins:
                await self._begin_child(move, part)
            return True
        only = moves[0]
        if isinstance(only, ParkProject):
            project.waiting = WaitState(
                reason="review",
                message=only.message,
                remedy="Look at its jobs; resume lets it try again, or cancel the project.",
            )
        elif isinstance(only, EndProject) and await self._has_stored_traces():
            await self._close_project(only.status)
        return not isinstance(only, WaitForJobs)

    async def _begin_child(self, move: AssignJob, part: dict[str, float]) -> None:
        project = self._project
        count_begun_job(project, move)
        self._form.mark_begun(project, move)
        run = RunningJob(
            unit=move.unit,
            role=move.role,
            job=move.job,
            handoff=move.handoff,
            since=workflow.time(),
            project_seconds_before=project.seconds,
            share=part,
            last_report=ChildReport(job=move.job),
        )
        project.running[move.job] = run
        child = await self._steps.start_child(project, move, shares.share_settings(part))
        if isinstance(child, str):
            project.ended_jobs.append(EndedJob(job=move.job, status="failed", reason=child))
            return
        self._children[move.job] = child
        self._watchers[move.job] = asyncio.create_task(self._watch_child(run, child))
        self._show_status(project)

    async def _watch_child(self, run: RunningJob, child: Child) -> None:
        """Wait for a child, but not beyond its deadline."""
        if late := await self._is_late(run, child):
            await self._steps.cancel_child(run.job)
        ended = await child_outcome(run, child)
        if late and ended.status != "completed":
            ended.status, ended.reason = "late", "the deadline passed"
            # The item goes back to what it was before.
            ended.checkpoint, ended.phases = "", 0
        self._count_time()
        self._project.ended_jobs.append(ended)
        self._news = True

    async def _wait_for_news(self) -> None:
        """Wait until a child has something to say, or a person."""
        await workflow.wait_condition(
            lambda: (
                bool(self._inbox.signals or self._inbox.refused or self._project.ended_jobs)
                or self._news
            )
        )
        # Only now: what was told while something else was under way is news as well.
        self._news = False
        await self._distribute_shares()

    async def _settle_child(self, ended: EndedJob) -> None:
        """Look into a child's work, merge what is accepted, and go on from there."""
        project = self._project
        run = project.running[ended.job]
        work = await self._steps.take_work(project, run, ended) if ended.checkpoint else None
        if work:
            # Now: begun anew, it finds its summary kept, and takes it for one that was paid for.
            project.usage.add(work.usage)
        # On copies, since the steps below can fail and are then begun anew.
        after = project.model_copy(deep=True)
        before = {unit.id: unit.model_dump() for unit in project.units}
        why = work_problems(ended, work)
        if commit := self._form.settle_job(after, run, ended, work):
            assert work
            message = merge_message(after, run, work)
            merge = await self._steps.merge_work(after, run, commit, message)
            if merge.conflicts:
                why = [f"it collides with accepted work in {', '.join(merge.conflicts[:20])}"]
            else:
                after.head = merge.commit
            self._form.mark_merged(after, run, merge.conflicts, merge.commit)
        note_attempt(after, run, ended, work, why)
        shorten_settled(after.units)
        changed = [unit.id for unit in after.units if unit.model_dump() != before.get(unit.id)]
        if changed:
            story = project_status.outcome_line(after, run, ended)
            after.state = await self._steps.write_state(after, changed, story)
        for name in (*FORM_FIELDS, "head", "state"):
            setattr(project, name, getattr(after, name))
        self._close_account(run, ended, work, why)
        await self._store_pending_traces()

    def _close_account(
        self, run: RunningJob, ended: EndedJob, work: ChildWork | None, why: list[str]
    ) -> None:
        """Settle what a job used, and tell people what came of it."""
        project = self._project
        project.usage.add(ended.usage)
        self._note_wait(run, None)
        del project.running[run.job]
        project.ended_jobs = [other for other in project.ended_jobs if other.job != ended.job]
        self._children.pop(run.job, None)
        self._watchers.pop(run.job, None)
        status = "accepted"
        if why:
            status = "sent back" if ended.status == "completed" else ended.status
            self._inbox.notice(f"{run.job} {status}: {one_line('; '.join(why), 400)}")
        elif work:
            project.results = [*project.results, f"{run.handoff.id}: {work.summary}"][-3:]
            keep_unresolved(project, run, ended, work)
        self._add_summary(run, status, ended.reason or (work.summary if work else ""))
        traces.note_handoff(project, run, ended, why, workflow.info().run_id)

    def _add_summary(self, run: RunningJob, status: str, summary: str) -> None:
        """Tell people what became of a job that is over."""
        job_summary = JobSummary(
            job=run.job,
            agent=run.handoff.to_agent,
            unit=run.unit,
            status=status,
            summary=start_of(summary, 300),
        )
        self._project.job_summaries = [*self._project.job_summaries, job_summary][
            -MAX_JOB_SUMMARIES:
        ]

    # Ends

    async def _close_project(
        self, status: ProjectOutcome, reason: str = "", *, cancel: bool = False
    ) -> None:
        project = self._project
        result = project_status.project_result(project, status, reason)
        reply = await run_shielded(self._steps.close_project(project, result, cancel=cancel))
        result.commit, project.state = project.head, reply.commit
        project.result = result

    async def _end_children(self) -> None:
        """Cancel those at work, and see them end."""
        for job, child in self._children.items():
            if not child.done():
                await self._steps.cancel_child(job)
        if self._watchers:
            await workflow.wait(self._watchers.values())

    async def _close_cancelled(self, reason: str, *, by_signal: bool) -> None:
        """Cancel the children, write the result down; only the server can then close it so."""
        project = self._project
        await run_shielded(self._end_children())
        over = {ended.job: ended for ended in project.ended_jobs}
        for run in project.running.values():
            # One that is not among them was cancelled before it had begun.
            ended = over.get(run.job) or EndedJob(job=run.job, status="cancelled")
            project.usage.add(ended.usage)
            self._note_wait(run, None)
            self._add_summary(run, ended.status, ended.reason)
        project.running, project.ended_jobs, project.waiting = {}, [], None

        async def close() -> None:
            await self._close_project("cancelled", reason, cancel=by_signal)

        await self._finish_cancellation(project, close, by_signal=by_signal)
