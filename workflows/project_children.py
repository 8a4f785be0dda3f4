"""The child jobs of a project: starting, watching until their deadline, cancelling."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from temporalio import workflow

from protocol.project import ChildReport, EndedJob, RunningJob
from protocol.project_record import ProjectRecord
from workflows import project_budget_shares, project_waits
from workflows.project_moves import AssignJob
from workflows.project_steps import Child, ProjectSteps, await_project_child


class ProjectChildren:
    """The jobs that this run of a project has started."""

    def __init__(self, project: ProjectRecord, steps: ProjectSteps) -> None:
        self._project = project
        self._steps = steps
        self._children: dict[str, Child] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self.has_news = False
        """Whether a child has reported or ended since the project last looked."""

    async def begin(self, move: AssignJob, part: dict[str, float]) -> bool:
        """Start a job and watch it. Return whether it started; if not, it counts as failed.

        Args:
            move: The job to start.
            part: Its share of the project's limits, by key.
        """
        project = self._project
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
        child = await self._steps.start_child(
            project, move, project_budget_shares.project_share_settings(part)
        )
        if isinstance(child, str):
            project.ended_jobs.append(EndedJob(job=move.job, status="failed", reason=child))
            return False
        self._children[move.job] = child
        self._watchers[move.job] = asyncio.create_task(self._watch(run, child))
        return True

    def forget(self, job: str) -> None:
        """Drop a job whose work is settled."""
        self._children.pop(job, None)
        self._watchers.pop(job, None)

    async def end_all(self) -> None:
        """Cancel the running jobs and wait until they have ended."""
        for job, child in self._children.items():
            if not child.done():
                await self._steps.cancel_child(job)
        if self._watchers:
            await workflow.wait(self._watchers.values())

    async def _watch(self, run: RunningJob, child: Child) -> None:
        """Wait for a child; cancel it at its deadline."""
        if late := await self._is_late(run, child):
            await self._steps.cancel_child(run.job)
        ended = await await_project_child(run, child)
        if late and ended.status != "completed":
            ended.status, ended.reason = "late", "the deadline passed"
            # A retry must not fork from a late job.
            ended.checkpoint, ended.phases = "", 0
        project_waits.count_project_time(self._project)
        self._project.ended_jobs.append(ended)
        self.has_news = True

    async def _is_late(self, run: RunningJob, child: Child) -> bool:
        """Wait for a child until its deadline, if any; return whether the deadline passed.

        The clock stops while a person has paused the project.
        """
        if (seconds := run.handoff.deadline) is None:
            return False
        while not child.done():
            remaining = run.since + seconds - workflow.time()
            with suppress(TimeoutError):
                await workflow.wait_condition(child.done, timeout=max(0.001, remaining))
            if child.done():
                break
            await workflow.wait_condition(
                lambda: child.done() or not project_waits.is_project_paused(self._project)
            )
            if run.since + seconds <= workflow.time():
                break
        return not child.done()
