"""The child jobs of a project: starting, watching until their deadline, cancelling."""

import asyncio
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ActivityError, CancelledError, ChildWorkflowError, FailureError
from temporalio.exceptions import TimeoutError as JobTimeoutError

from protocol.endings import COMPLETION_FILE, JobResult
from protocol.project_record import ProjectRecord
from protocol.project_units import MOST_UNRESOLVED, ChildReport, EndedJob, RunningJob
from protocol.short_text import one_line
from workflows.projects import project_waits
from workflows.projects.project_steps import ProjectSteps
from workflows.rules.project_moves import AssignJob
from workflows.runtime.child_jobs import Child, cancel_child_job


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
        share: dict[str, object] = {f"limits.job.{key}": value for key, value in part.items()}
        child = await self._steps.start_child(project, move, share)
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
                await cancel_child_job(job)
        if self._watchers:
            await workflow.wait(self._watchers.values())

    async def _watch(self, run: RunningJob, child: Child) -> None:
        """Wait for a child; cancel it at its deadline."""
        if late := await self._is_late(run, child):
            await cancel_child_job(run.job)
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


async def await_project_child(run: RunningJob, child: Child) -> EndedJob:
    """Wait for a child and return how it ended."""
    ended = EndedJob(job=run.job, status="failed")
    try:
        result = JobResult.model_validate(await child)
    except ChildWorkflowError as error:
        cause = error.cause or error
        if isinstance(cause, CancelledError):
            ended.status, ended.reason = "cancelled", "the job was cancelled"
        elif isinstance(cause, JobTimeoutError):
            ended.reason = "the job ran out of time"
        else:
            while isinstance(cause, (ChildWorkflowError, ActivityError)) and cause.cause:
                cause = cause.cause
            ended.reason = str(getattr(cause, "message", None) or cause)[:1000]
        return _child_outcome_from_report(ended, run)
    except (FailureError, ValueError) as error:
        ended.reason = str(error)[:1000]
        return _child_outcome_from_report(ended, run)
    ended.status = "completed" if result.status == "completed" else "failed"
    ended.reason = result.summary[:1000] if result.status != "completed" else ""
    ended.checkpoint, ended.phases, ended.usage = result.checkpoint, result.phases, result.usage
    ended.unresolved = [one_line(entry, 200) for entry in result.unresolved[:MOST_UNRESOLVED]]
    if (more := len(result.unresolved) - MOST_UNRESOLVED) > 0:
        ended.unresolved.append(f"and {more} more, in its {COMPLETION_FILE}")
    return ended


def _child_outcome_from_report(ended: EndedJob, run: RunningJob) -> EndedJob:
    """Fill in usage and checkpoint from the last report, the newest known."""
    ended.usage = run.last_report.usage
    ended.checkpoint, ended.phases = run.last_report.checkpoint, run.last_report.number
    return ended
