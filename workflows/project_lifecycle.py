"""How a project stands: what people send to it, what it shows, when it goes on as new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol.payloads import read_project_signal
from protocol.project import ProjectRecord, RunningJob
from protocol.record import ReceivedSignal, WaitState
from protocol.state import Remark
from protocol.traces import MOST_AT_A_TIME
from workflows import activity_failures, notifications, project_status, shares
from workflows.activity_calls import GONE
from workflows.activity_failures import StepFailed
from workflows.lifecycle import CancelRequested, Lifecycle, is_cancelled
from workflows.project_status import runs_at_work
from workflows.project_steps import Child, ProjectSteps

BY_REASON = {"answer": "clarification", "approve": "approval", "deny": "approval"}
"""Signals that find the child they are for by what it asks."""

MOST_REMARKS = 20
"""Of people to a project, the newest: each job that begins is told them."""


class ProjectLifecycle(Lifecycle):
    """A project between its moves."""

    _project: ProjectRecord

    def __init__(self) -> None:
        super().__init__(read_project_signal)
        self._steps = ProjectSteps()
        self._news = False

    async def _attend_signals(self) -> None:
        """Open the letters; stand still while the project waits for a person."""
        project = self._project
        while True:
            while self._inbox.signals:
                received = self._inbox.signals[0]
                await self._apply_signal(received)
                self._inbox.signals.remove(received)
            if is_cancelled():
                raise asyncio.CancelledError
            if project.waiting is None:
                if project.notifying:
                    # The same reason from here on is another wait.
                    project.notifying.waits.pop(project.id, None)
                return
            self._count_time()
            await self._publish_status()
            self._continue_as_new_if_due()
            started = workflow.time()
            await workflow.wait_condition(
                lambda: bool(self._inbox.signals or self._inbox.refused) or self._news
            )
            self._news = False
            project.clock = workflow.now().timestamp()
            if self._is_paused:
                for run in project.running.values():
                    run.since += workflow.time() - started

    def _count_time(self) -> None:
        """Count the time until now; before what the project waits for is another thing."""
        still = project_status.current_wait(self._project) is not None
        self._project.count_time(workflow.now().timestamp(), still=still)

    def _park_project(self, waiting: WaitState) -> None:
        """Have the project wait; what it did until now took of its time."""
        self._count_time()
        self._project.waiting = waiting

    @property
    def _is_paused(self) -> bool:
        waiting = self._project.waiting
        return waiting is not None and waiting.reason == "paused"

    async def _is_late(self, run: RunningJob, child: Child) -> bool:
        """Wait for a child until its deadline, if it has one; whether that passed.

        Its time stands still while a person has paused the project.
        """
        if (seconds := run.handoff.deadline) is None:
            return False
        while not child.done():
            remaining = run.since + seconds - workflow.time()
            with suppress(TimeoutError):
                await workflow.wait_condition(child.done, timeout=max(0.001, remaining))
            if child.done():
                break
            await workflow.wait_condition(lambda: child.done() or not self._is_paused)
            if run.since + seconds <= workflow.time():
                break
        return not child.done()

    async def _apply_signal(self, received: ReceivedSignal) -> None:
        project, signal = self._project, received.signal
        payload = {key: value for key, value in received.payload.items() if key != "job"}
        job = received.payload.get("job")
        if job is not None:
            if job in project.running:
                await self._forward_signal([job], signal, payload, named=True)
            else:
                self._inbox.refuse(f"signal {signal}: {job!r} is no job at work in this project")
        elif signal == "cancel":
            raise CancelRequested(payload.get("reason") or "cancelled by a person")
        elif signal == "limit":
            payload.pop("by", None)
            project.limits = project.limits.model_copy(update=payload)
            if project.waiting and project.waiting.reason == "budget":
                project.waiting = None
            if fewer := shares.lowered_shares(project, payload):
                await self._lower_shares(fewer)
            await self._distribute_shares()
        elif signal == "pause":
            project.waiting = activity_failures.PAUSED
            await self._forward_signal([run.job for run in runs_at_work(project)], signal, payload)
        elif signal == "tell":
            # Who is at work hears it, and whoever begins after them.
            remark = Remark(text=payload["text"], by=payload.get("by", ""))
            project.remarks = [*project.remarks, remark][-MOST_REMARKS:]
            at_once = [run.job for run in runs_at_work(project)]
            await self._forward_signal(at_once, signal, payload)
            self._inbox.notice(f"told {len(at_once)} jobs at work, and those to come")
        elif signal == "resume":
            await self._resume_project(payload)
        else:
            await self._forward_to_waiting_job(signal, payload)

    async def _resume_project(self, payload: dict[str, Any]) -> None:
        project = self._project
        paused = project.waiting is not None and project.waiting.reason == "paused"
        stuck = [
            run.job
            for run in runs_at_work(project)
            if paused or run.last_report.waiting not in (None, "clarification", "approval")
        ]
        if payload.get("set") and not stuck:
            self._inbox.refuse("signal resume: set is for a job, and none of the project's waits")
            return
        if project.waiting is None and not stuck:
            self._inbox.refuse("signal resume: neither the project nor a job of it is waiting")
            return
        if project.waiting and project.waiting.reason == "review":
            project.planning_attempts = 0
        project.waiting = None
        await self._forward_signal(stuck, "resume", payload)

    async def _forward_to_waiting_job(self, signal: str, payload: dict[str, Any]) -> None:
        """To the one child that it can be meant for; else a person has to name it."""
        running = self._project.running.values()
        reason = BY_REASON.get(signal)
        meant = [run.job for run in running if reason is None or run.last_report.asks == reason]
        if len(meant) == 1:
            if await self._forward_signal(meant, signal, payload, named=True):
                self._inbox.notice(f"signal {signal}: handed on to job {meant[0]}")
            return
        named = ", ".join(meant) or "none"
        self._inbox.refuse(
            f"signal {signal}: it could be meant for these jobs: {named}. Name one under `job`."
        )

    async def _forward_signal(
        self, jobs: Sequence[str], signal: str, payload: dict[str, Any], *, named: bool = False
    ) -> bool:
        """Whether it reached them all."""
        reached = True
        for job in jobs:
            if why := await self._steps.send_signal(job, signal, payload):
                reached = False
                # What is for whoever is at work is not for one that has just ended.
                if named or why != GONE:
                    self._inbox.refuse(f"signal {signal}: it did not reach job {job}: {why}")
        return reached

    async def _lower_shares(self, parts: dict[str, dict[str, float]]) -> None:
        """Take from children at work what a person's limit leaves no longer."""
        for run in runs_at_work(self._project):
            if (part := parts.get(run.job)) and await self._forward_signal(
                [run.job], "limit", part
            ):
                run.share = {**run.share, **part}

    async def _distribute_shares(self) -> None:
        """Give children that wait for money what has become free."""
        project = self._project
        for job, part in shares.additional_shares(project).items():
            run = project.running[job]
            last_report = run.last_report
            if await self._steps.send_signal(job, "limit", part) is None:
                run.share = {**run.share, **part}
                if run.last_report is last_report:
                    # Else the job has told meanwhile how it stands, which is newer.
                    run.last_report = last_report.model_copy(
                        update={"waiting": None, "status": "running"}
                    )

    async def _store_pending_traces(self) -> bool:
        """Hand over what was noted; whether the store took it. If not it goes with the next."""
        project = self._project
        while handed := project.traces[:MOST_AT_A_TIME]:
            try:
                await self._steps.store_handoffs(project, handed)
            except StepFailed as failed:
                self._inbox.notice(f"traces are kept for later: {failed.message}")
                return False
            project.traces = project.traces[len(handed) :]
        return True

    async def _has_stored_traces(self) -> bool:
        """Whether the store has all that was noted; if not, the project waits for it."""
        stored = await self._store_pending_traces()
        if not stored:
            self._park_project(activity_failures.STORE)
        return stored

    @property
    def _history_is_long(self) -> bool:
        return self._is_long(self._project, self._project.start.history_events)

    def _continue_as_new_if_due(self) -> None:
        """Begin a new run once the history is long and no child is at work.

        A child reports its end to the run that began it. So nothing new is begun from then on,
        and the project goes on as new when those at work are through.
        """
        project = self._project
        if self._history_is_long and not project.running and project.result is None:
            self._continue_as_new(project)

    async def _publish_status(self) -> None:
        project = self._project
        self._show_status(project)
        due = notifications.due_of_project(project, workflow.info().first_execution_run_id)
        await self._call_people(due, project.notifying)

    def _show_status(self, project: ProjectRecord) -> None:
        project.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = project_status.web_details(project, self._inbox.notices)
        memo = project_status.memo_fields(project)
        self._update_display(details, memo, project_status.attribute_values(project, memo))
