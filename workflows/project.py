"""The project: several jobs on one piece of work; its state decides the moves.

    prepare → { moves that the form wants → child jobs → inspect their work → merge } → result

It plans nothing and writes no product. The functions of its form (`workflows.rules.forms`), which
reach nothing but the record, decide which job begins next and whether a job's work counts; the loop
below carries that out. Between two moves it handles signals and passes some of them to its jobs.
What follows a job's end is in `project_settlement`, what follows the last one in `project_end`.
"""

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.payload_reading import (
    InvalidPayload,
    read_payload_object,
    read_project_signal_payload,
    read_start_payload,
)
from protocol.project_record import ProjectRecord
from protocol.project_requests import ProjectPrepareRequest
from protocol.project_start import ProjectStart
from protocol.project_units import BRIEF, ChildReport
from protocol.short_text import text_title_line
from protocol.waiting import WaitState
from workflows.jobs.start_procedure import StartProcedure
from workflows.projects import project_status, project_waits
from workflows.projects.project_children import ProjectChildren
from workflows.projects.project_display import ProjectDisplay
from workflows.projects.project_end import ProjectEnd
from workflows.projects.project_settlement import ProjectSettlement
from workflows.projects.project_signals import ProjectSignals
from workflows.projects.project_steps import ProjectSteps
from workflows.projects.project_waits import ProjectRetries
from workflows.rules import pipeline, project_budget_shares, project_moves
from workflows.rules.forms import FORMS
from workflows.runtime import trace_notes
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.cancellation import is_cancelled, read_cancellation
from workflows.runtime.continuation import Continuation
from workflows.runtime.signal_receiver import SignalReceiver


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
        self._retries = ProjectRetries(project)
        self._children = ProjectChildren(project, self._steps)
        self._settlement = ProjectSettlement(project, self._steps, self.inbox, self._children)
        self._end = ProjectEnd(
            project, self._steps, self.inbox, children=self._children, display=self._display
        )
        if project.start.team or not workflow.info().continued_run_id:
            self._display.show_status()
        try:
            while project.result is None:
                await self._advance(project)
        except BaseException as error:
            await self._end.end_cancelled(read_cancellation(error))
            raise asyncio.CancelledError from None
        if self.inbox.refuse_late_signals():
            await self._display.publish_status()
        await self.inbox.close()
        return project.result.model_dump()

    @workflow.query(description="The project's state; `starter.py show --json` adds to it.")
    def status(self) -> dict[str, Any]:
        """Return the project's status."""
        if self._project is None:
            answer = project_status.preparing_project_status(self.inbox, self._start.waiting)
        else:
            answer = project_status.project_status_answer(self._project, self.inbox)
        return answer.model_dump(mode="json")

    @workflow.signal(description="Sent by the jobs of the project.")
    def report(self, *payload: Any) -> None:
        """Receive a child's report."""
        try:
            report = read_payload_object(ChildReport, payload[0] if payload else None)
        except InvalidPayload as refusal:
            self.inbox.refuse("report", str(refusal))
            return
        project = self._project
        run = project.running.get(report.job) if project else None
        if project is None or run is None:
            self.inbox.refuse("report", f"{report.job[:100]} is no job at work here")
            return
        project_waits.count_project_time(project)
        project_waits.note_project_job_wait(project, run, report)
        run.last_report = report
        self._children.has_news = True

    async def _begin_project(self, start: tuple[Any, ...]) -> ProjectRecord:
        """Restore the record of the previous run, or prepare a new project."""
        try:
            if (record := self._continuation.restore_record(ProjectRecord, start)) is not None:
                return record
            start_input = read_start_payload(
                ProjectStart, start, "project", '{"form": "…", "instructions": "…"}'
            )
            chain = workflow.info().first_execution_run_id
            prepared = await self._start.prepare_until_ready(
                lambda: self._steps.prepare_project(
                    ProjectPrepareRequest(start=start_input, chain=chain)
                ),
                title=start_input.title or text_title_line(start_input.instructions),
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
        moved = True
        try:
            if project.ended_jobs:
                self._display.show_status()
                await self._settlement.settle_job(project.ended_jobs[0])
            else:
                moved = await self._carry_out_moves(project)
        except StepFailed as failed:
            self._retries.park(failed)
        else:
            self._retries.note_success()
            if not moved:
                await self._wait_for_news(project)
        project_waits.count_project_time(project)
        await self._display.publish_status()
        await self._continue_as_new_if_due(project)

    async def _attend_signals(self, project: ProjectRecord) -> None:
        """Handle all signals; wait while the project needs a person, or until its next try."""
        while True:
            while self.inbox.signals:
                received = await self.next_signal()
                await self._signals.handle(received)
                self.inbox.signals.remove(received)
            if is_cancelled():
                raise asyncio.CancelledError
            if self._retries.is_due:
                # With the wait, which is not over: otherwise it would seem to be another one.
                await self._continue_as_new_if_due(project)
                return
            if project.waiting is None:
                self._display.end_wait()
                return
            project_waits.count_project_time(project)
            await self._display.publish_status()
            await self._continue_as_new_if_due(project)
            started = workflow.time()
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: (
                        bool(self.inbox.signals or self.inbox.refused) or self._children.has_news
                    ),
                    timeout=self._retries.time_left,
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

    async def _continue_as_new_if_due(self, project: ProjectRecord) -> None:
        """Continue as new once the history is long and no child is running.

        A child reports its end to the run that started it. So no job begins from then on, and the
        project continues as new when the running ones have ended.
        """
        if self._history_is_long(project) and not project.running and project.result is None:
            await self._continuation.begin_run(project)

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
                await self._end.has_stored_traces()
            return not project.running
        moves = self._form.next_moves(project)
        if begins := [move for move in moves if isinstance(move, project_moves.AssignJob)]:
            part = project_budget_shares.divide_shares(project, len(begins))
            if isinstance(part, WaitState):
                if not project.running:
                    project.waiting = part
                return not project.running
            for move in begins:
                await self._begin_child(project, move, part)
            return True
        only = moves[0]
        if isinstance(only, project_moves.ParkProject):
            project.waiting = WaitState(
                reason="review",
                message=only.message,
                remedy="Look at its jobs; resume lets it try again, or cancel the project.",
            )
        elif isinstance(only, project_moves.EndProject):
            await self._end.end_project(only.status)
        return not isinstance(only, project_moves.WaitForJobs)

    async def _begin_child(
        self, project: ProjectRecord, move: project_moves.AssignJob, part: dict[str, float]
    ) -> None:
        project_moves.count_project_job(project, move)
        self._form.mark_begun(project, move)
        if await self._children.begin(move, part):
            self._display.show_status()
