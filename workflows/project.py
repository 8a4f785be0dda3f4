"""The project: several jobs on one piece of work; its state decides the moves.

    prepare → { moves that the form wants → child jobs → inspect their work → merge } → result

It plans nothing and writes no product. The functions of its form (`workflows.forms`), which reach
nothing but the record, decide which job begins next and whether a job's work counts; the loop below
carries that out. Between two moves it handles signals and passes some of them to its jobs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.payload_reading import (
    InvalidPayload,
    read_payload_object,
    read_project_signal_payload,
    read_start_payload,
)
from protocol.project import (
    BRIEF,
    MAX_JOB_SUMMARIES,
    ChildReport,
    EndedJob,
    JobSummary,
    ProjectOutcome,
    RunningJob,
)
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork, ProjectPrepareRequest
from protocol.project_start import ProjectStart
from protocol.publishing import BranchResult
from protocol.short_text import one_line, shorten_to_start
from protocol.waiting import WaitState
from workflows import (
    activity_failures,
    pipeline,
    project_budget_shares,
    project_result,
    project_status,
    project_waits,
    trace_notes,
)
from workflows.activity_failures import StepFailed
from workflows.cancellation import (
    Cancellation,
    finish_cancellation,
    is_cancelled,
    read_cancellation,
    run_despite_cancellation,
)
from workflows.continuation import Continuation
from workflows.forms import FORM_FIELDS, FORMS
from workflows.learning_notes import store_learning_handoffs
from workflows.project_children import ProjectChildren
from workflows.project_display import ProjectDisplay
from workflows.project_moves import (
    AssignJob,
    EndProject,
    ParkProject,
    WaitForJobs,
    count_project_job,
)
from workflows.project_signals import ProjectSignals
from workflows.project_steps import ProjectSteps
from workflows.project_units import (
    keep_unresolved_unit_work,
    note_unit_attempt,
    project_job_outcome,
    shorten_settled_units,
    unit_merge_message,
    unit_work_problems,
)
from workflows.project_waits import note_project_job_wait
from workflows.signal_receiver import SignalReceiver
from workflows.start_procedure import StartProcedure


@workflow.defn(name="Project")
class Project(SignalReceiver):
    """Runs several agents on one piece of work. Input: {"form": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__(read_project_signal_payload)
        self._project: ProjectRecord | None = None
        self._steps = ProjectSteps()
        self._start = StartProcedure(self._steps, self.inbox)
        self._continuation = Continuation(self.inbox)

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """Run from start to result; see the module."""
        project = self._project = await self._begin_project(start)
        self._form = FORMS[project.start.form]
        self._display = ProjectDisplay(project, self.inbox, self._continuation)
        self._signals = ProjectSignals(project, self._steps, self.inbox)
        self._children = ProjectChildren(project, self._steps)
        if not workflow.info().continued_run_id:
            self._display.show_status()
        try:
            while project.result is None:
                await self._advance(project)
        except BaseException as error:
            await self._close_cancelled(project, read_cancellation(error))
            raise asyncio.CancelledError from None
        if self.inbox.refuse_late_signals():
            await self._display.publish_status()
        return project.result.model_dump()

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Return the project's status."""
        if self._project is None:
            return project_status.preparing_project_status(self.inbox, self._start.waiting)
        return project_status.project_status_answer(self._project, self.inbox)

    @workflow.signal(description="Sent by the jobs of the project.")
    def report(self, *payload: Any) -> None:
        """Receive a child's report."""
        try:
            report = read_payload_object(
                ChildReport, payload[0] if payload else None, "signal report"
            )
        except InvalidPayload as refusal:
            self.inbox.refuse(str(refusal))
            return
        project = self._project
        run = project.running.get(report.job) if project else None
        if project is None or run is None:
            self.inbox.refuse(f"signal report: {report.job[:100]} is no job at work here")
            return
        self._count_time(project)
        note_project_job_wait(project, run, report)
        run.last_report = report
        self._children.has_news = True

    async def _begin_project(self, start: tuple[Any, ...]) -> ProjectRecord:
        """Restore the record of the previous run, or prepare a new project."""
        if (record := self._continuation.restore_record(ProjectRecord, start)) is not None:
            return record
        try:
            start_input = read_start_payload(
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
        for line in prepared.notices:
            self.inbox.notice(line)
        return ProjectRecord(
            # These are now in the scope and in a file; a payload could not hold all of it.
            start=start_input.model_copy(update={"items": [], "instructions": BRIEF}),
            id=workflow.info().workflow_id,
            title=prepared.title,
            root=prepared.root,
            remote=prepared.remote,
            repository=prepared.repository,
            origin=prepared.origin,
            head=prepared.commit,
            state=prepared.state,
            stages=pipeline.pipeline_stages(start_input),
            scope=prepared.scope,
            limits=start_input.limits,
            clock=workflow.now().timestamp(),
            search_attributes=prepared.search_attributes,
            notifying=prepared.notifying,
        )

    async def _advance(self, project: ProjectRecord) -> None:
        """Handle signals, make one move, publish the status."""
        await self._attend_signals(project)
        try:
            if project.ended_jobs:
                self._display.show_status()
                await self._settle_child(project, project.ended_jobs[0])
            elif not await self._carry_out_moves(project):
                await self._wait_for_news(project)
        except StepFailed as failed:
            self._park_project(project, activity_failures.wait_after_failure(failed))
        self._count_time(project)
        await self._display.publish_status()
        self._continue_as_new_if_due(project)

    async def _attend_signals(self, project: ProjectRecord) -> None:
        """Handle all signals; wait while the project needs a person."""
        while True:
            while self.inbox.signals:
                received = self.inbox.signals[0]
                await self._signals.handle(received)
                self.inbox.signals.remove(received)
            if is_cancelled():
                raise asyncio.CancelledError
            if project.waiting is None:
                self._display.end_wait()
                return
            self._count_time(project)
            await self._display.publish_status()
            self._continue_as_new_if_due(project)
            started = workflow.time()
            await workflow.wait_condition(
                lambda: bool(self.inbox.signals or self.inbox.refused) or self._children.has_news
            )
            self._children.has_news = False
            project.clock = workflow.now().timestamp()
            if project_waits.is_project_paused(project):
                for run in project.running.values():
                    run.since += workflow.time() - started

    async def _wait_for_news(self, project: ProjectRecord) -> None:
        """Wait for a child's report or a signal."""
        await workflow.wait_condition(
            lambda: (
                bool(self.inbox.signals or self.inbox.refused or project.ended_jobs)
                or self._children.has_news
            )
        )
        # Only now, since a report during another step is news as well.
        self._children.has_news = False
        await self._signals.distribute_shares()

    def _count_time(self, project: ProjectRecord) -> None:
        project_waits.count_project_time(project, workflow.now().timestamp())

    def _park_project(self, project: ProjectRecord, waiting: WaitState) -> None:
        """Make the project wait; count the time until now."""
        self._count_time(project)
        project.waiting = waiting

    def _continue_as_new_if_due(self, project: ProjectRecord) -> None:
        """Continue as new once the history is long and no child is running.

        A child reports its end to the run that started it. So no job begins from then on, and the
        project continues as new when the running ones have ended.
        """
        if self._history_is_long(project) and not project.running and project.result is None:
            self._continuation.begin_run(project)

    def _history_is_long(self, project: ProjectRecord) -> bool:
        return self._continuation.is_due(project, project.start.history_events)

    # Moves

    async def _carry_out_moves(self, project: ProjectRecord) -> bool:
        """Make the moves that the state calls for; return False if only news can lead to others."""
        if self._history_is_long(project):
            return not project.running
        if trace_notes.is_trace_record_full(project):
            # The store is unavailable. Nothing new begins, and once no job is running the project
            # waits.
            if not project.running:
                await self._has_stored_traces(project)
            return not project.running
        moves = self._form.next_moves(project)
        if begins := [move for move in moves if isinstance(move, AssignJob)]:
            part = project_budget_shares.divide_shares(project, len(begins))
            if isinstance(part, WaitState):
                if not project.running:
                    project.waiting = part
                return not project.running
            for move in begins:
                await self._begin_child(project, move, part)
            return True
        only = moves[0]
        if isinstance(only, ParkProject):
            project.waiting = WaitState(
                reason="review",
                message=only.message,
                remedy="Look at its jobs; resume lets it try again, or cancel the project.",
            )
        elif (
            isinstance(only, EndProject)
            and self._may_close(project, only.status)
            and await self._has_stored_traces(project)
        ):
            await self._close_project(project, only.status)
        return not isinstance(only, WaitForJobs)

    async def _begin_child(
        self, project: ProjectRecord, move: AssignJob, part: dict[str, float]
    ) -> None:
        count_project_job(project, move)
        self._form.mark_begun(project, move)
        if await self._children.begin(move, part):
            self._display.show_status()

    async def _settle_child(self, project: ProjectRecord, ended: EndedJob) -> None:
        """Inspect a child's work, merge it if it is accepted, and continue from there."""
        run = project.running[ended.job]
        work = await self._steps.take_work(project, run, ended) if ended.checkpoint else None
        if work:
            # Now, because a repeated step would find its summary kept, and take it for one already
            # paid for.
            project.usage.add(work.usage)
        # On copies, since the steps below can fail and are then repeated.
        after = project.model_copy(deep=True)
        before = {unit.id: unit.model_dump() for unit in project.units}
        why = unit_work_problems(ended, work)
        if commit := self._form.settle_job(after, run, ended, work):
            assert work
            message = unit_merge_message(after, run, work)
            merge = await self._steps.merge_work(after, run, commit, message)
            if merge.conflicts:
                why = [f"it collides with accepted work in {', '.join(merge.conflicts[:20])}"]
            else:
                after.head = merge.commit
            self._form.mark_merged(after, run, merge.conflicts, merge.commit)
        note_unit_attempt(after, run, ended, work, why)
        shorten_settled_units(after.units)
        changed = [unit.id for unit in after.units if unit.model_dump() != before.get(unit.id)]
        if changed:
            story = project_status.project_job_status_line(after, run, ended)
            after.state = await self._steps.write_state(after, changed, story)
        for name in (*FORM_FIELDS, "head", "state"):
            setattr(project, name, getattr(after, name))
        self._close_account(project, run, ended, work, why)
        await store_learning_handoffs(project, self._steps, self.inbox.notice)

    def _close_account(
        self,
        project: ProjectRecord,
        run: RunningJob,
        ended: EndedJob,
        work: ChildWork | None,
        why: list[str],
    ) -> None:
        """Settle a job's use of limits, and record its outcome for people."""
        project.usage.add(ended.usage)
        note_project_job_wait(project, run, None)
        del project.running[run.job]
        project.ended_jobs = [other for other in project.ended_jobs if other.job != ended.job]
        self._children.forget(run.job)
        status = project_job_outcome(ended, work, why)
        if why:
            self.inbox.notice(f"{run.job} {status}: {one_line('; '.join(why), 400)}")
        elif work:
            project.results = [*project.results, f"{run.handoff.id}: {work.summary}"][-3:]
            keep_unresolved_unit_work(project, run, ended, work)
        add_project_job_summary(
            project, run, status, ended.reason or (work.summary if work else "")
        )
        trace_notes.note_handoff_trace(project, run, ended, why, workflow.info().run_id)

    # Ends

    def _may_close(self, project: ProjectRecord, status: ProjectOutcome) -> bool:
        """Whether the project may end; asks for the approval of its branch if necessary."""
        publish = project.start.publish
        if status != "completed" or publish is None or not publish.approve:
            return True
        if project.origin and project.head == project.origin.commit:
            return True  # there is nothing to push
        if not project.publish_decision:
            waiting = project_waits.waiting_for_publish(project, publish)
            self._park_project(project, waiting)
        return bool(project.publish_decision)

    async def _publish_branch(self, project: ProjectRecord) -> BranchResult | None:
        """Push the branch of a completed project, unless a person refused."""
        if project.start.publish is None or project.publish_decision == "denied":
            return None
        return await self._steps.publish_project(project, project.start.publish)

    async def _close_project(
        self,
        project: ProjectRecord,
        status: ProjectOutcome,
        reason: str = "",
        *,
        cancel: bool = False,
    ) -> None:
        branch = await self._publish_branch(project) if status == "completed" else None
        result = project_result.project_result(project, status, reason)
        result.branch = branch
        reply = await run_despite_cancellation(
            self._steps.close_project(project, result, cancel=cancel)
        )
        result.commit, project.state = project.head, reply.commit
        project.result = result

    async def _close_cancelled(self, project: ProjectRecord, cancellation: Cancellation) -> None:
        """Cancel the children and write the result; only the server can close it as cancelled."""
        await run_despite_cancellation(self._children.end_all())
        over = {ended.job: ended for ended in project.ended_jobs}
        for run in project.running.values():
            # A child that is missing here was cancelled before it had begun.
            ended = over.get(run.job) or EndedJob(job=run.job, status="cancelled")
            project.usage.add(ended.usage)
            note_project_job_wait(project, run, None)
            add_project_job_summary(project, run, ended.status, ended.reason)
        project.running, project.ended_jobs, project.waiting = {}, [], None

        async def close() -> None:
            await self._close_project(
                project, "cancelled", cancellation.reason, cancel=cancellation.by_signal
            )

        await finish_cancellation(
            project, self.inbox, cancellation, close=close, publish=self._display.publish_status
        )

    async def _has_stored_traces(self, project: ProjectRecord) -> bool:
        """Whether the store has all traces; if not, the project waits for it."""
        stored = await store_learning_handoffs(project, self._steps, self.inbox.notice)
        if not stored:
            self._park_project(project, activity_failures.STORE)
        return stored


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
