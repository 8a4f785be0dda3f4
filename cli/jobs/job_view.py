"""The state of a job, as Temporal and the job itself report it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_failures import explain_job_failure, job_failure_message
from cli.jobs.job_memo import job_start_time, read_job_memo, status_from_memo
from cli.jobs.missing_jobs import expired_job_notice, forgotten_job_notice
from cli.output import UserError
from cli.schedules.schedule_lookup import find_schedule_notice
from engine.setup_errors import TOO_EARLY
from protocol.notices import Notice
from protocol.short_text import one_line

JOB = "Job"
PROJECT = "Project"
TRIAL = "Trial"
QUERY_SECONDS = 5.0
MOST_RUNS = 50
"""Most runs of a job among which its own latest one is looked for after a refused start."""
MOST_REASON = 600
"""Characters of why an activity is tried again."""

CLOSED = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "cancelled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.TIMED_OUT: "failed",
}


@dataclass
class JobView:
    """The state of a job at one moment."""

    id: str
    status: dict[str, Any]
    """Result of the job's `status` query, else what its memo has."""
    live: bool
    """Whether a worker answered."""
    closed: bool
    started: datetime
    run_id: str
    ended: datetime | None = None
    pending: list[str] = field(default_factory=list)
    """Running activities that had to be retried, with the reason."""
    job_retries: list[str] = field(default_factory=list)
    """For a project, the same of its running jobs, each with the job's id."""
    kind: str = JOB
    """Workflow type."""
    attempts: int = 0
    """Attempts of the pending workflow task."""

    @property
    def silence(self) -> str:
        """Why the job did not answer; empty if it did."""
        if self.live:
            return ""
        if self.attempts > 1:
            return (
                f"its workflow task fails (attempt {self.attempts}; `starter.py doctor` says why)"
            )
        return "no worker answers"

    @property
    def status_word(self) -> str:
        """Return running, waiting, completed, failed, cancelled or terminated."""
        return str(self.status.get("status", "running"))

    @property
    def waiting(self) -> dict[str, str] | None:
        """Return reason, message and remedy of a waiting job."""
        wait_state = self.status.get("waiting")
        if isinstance(wait_state, dict):
            return {key: str(value) for key, value in wait_state.items()}
        reason = self.status.get("waiting_for")
        return {"reason": str(reason)} if reason else None

    @property
    def notices(self) -> list[Notice]:
        return [Notice.model_validate(item) for item in self.status.get("notices") or []]

    @property
    def question_ids(self) -> dict[str, str]:
        """Return the ids of open questions by the signals that answer them."""
        question = (self.status.get("clarification") or {}).get("pending") or {}
        approval = self.status.get("approval") or {}
        ids = {}
        if question and question.get("answer") is None:
            ids["answer"] = str(question["id"])
        if approval and approval.get("approved") is None:
            ids |= dict.fromkeys(("approve", "deny"), str(approval["id"]))
        return ids

    def elapsed_text(self, now: datetime) -> str:
        """Format how long the job has run, or ran, as `1:02:03`."""
        seconds = ((self.ended or now) - self.started).total_seconds()
        return str(timedelta(seconds=max(0, int(seconds))))

    def refuse_trial(self, refusal: str) -> None:
        """Refuse a command that is for jobs.

        Args:
            refusal: What a trial lacks: `has no files`.

        Raises:
            UserError: It is a trial; with the job of a run that the command may be meant for.
        """
        if self.kind != TRIAL:
            return
        runs = self.status.get("runs") or []
        started = [str(run["job"]) for run in runs if run["status"] not in ("pending", "unstarted")]
        such = f", such as {started[0]}" if started else f"; `starter.py show {self.id}` names them"
        raise UserError(f"{self.id} is a trial, which {refusal}; name one of its runs{such}")


async def describe_job(client: Client, job_id: str) -> WorkflowExecutionDescription:
    """Return Temporal's description of the job's latest run.

    A later start under its id that was refused is no run of the job.

    Raises:
        UserError: There is no such job.
    """
    try:
        description = await client.get_workflow_handle(job_id).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND and "amespace" not in error.message:
            unknown = f"there is no job {job_id!r}; `starter.py list` shows them"
            notice = forgotten_job_notice(job_id) or expired_job_notice(job_id)
            notice = notice or await find_schedule_notice(client, job_id, (JOB, PROJECT))
            raise UserError(notice or unknown) from None
        if error.status == RPCStatusCode.INVALID_ARGUMENT:
            raise UserError(f"{job_id!r} cannot be the id of a job: {error.message}") from None
        raise
    if description.workflow_type not in (JOB, PROJECT, TRIAL):
        raise UserError(
            f"{job_id!r} is not a job but a workflow of type {description.workflow_type}"
        )
    if description.status != WorkflowExecutionStatus.FAILED or await _has_begun(description):
        return description
    return await _describe_earlier_run(client, description) or description


async def _has_begun(run: WorkflowExecution) -> bool:
    """Return whether a run got as far as its first phase, from which on the memo has a state."""
    return bool((await read_job_memo(run)).get("state"))


async def _describe_earlier_run(
    client: Client, refused: WorkflowExecutionDescription
) -> WorkflowExecutionDescription | None:
    """Return the job's own latest run; None if there is none but the refused start."""
    runs = client.list_workflows(f'WorkflowId = "{refused.id}"', limit=MOST_RUNS)
    earlier = [run async for run in runs if run.run_id != refused.run_id]
    for run in sorted(earlier, key=lambda run: run.start_time, reverse=True):
        if run.start_time <= refused.start_time and await _has_begun(run):
            return await client.get_workflow_handle(run.id, run_id=run.run_id).describe()
    return None


async def view_job(client: Client, job_id: str, *, seconds: float = QUERY_SECONDS) -> JobView:
    """Return the state of the job, from its memo if no worker answers.

    Args:
        seconds: How long to wait for a worker's answer.

    Raises:
        UserError: There is no such job.
    """
    description = await describe_job(client, job_id)
    memo = await read_job_memo(description)
    outcome = description.status or WorkflowExecutionStatus.RUNNING
    closed = outcome in CLOSED
    # A run that is open may go on in another before it is asked.
    run_id = description.run_id if closed else None
    status = await query_job_status(client, job_id, seconds, run_id)
    live = status is not None
    if status is None:
        status = status_from_memo(memo)
    status = {"job_id": job_id, **status}
    if closed:
        status = await _add_closed_status(client, description, status)
    status.setdefault("status", "running")
    if description.workflow_type == PROJECT:
        # A memo does not contain this.
        status["project"] = True
    if description.workflow_type == TRIAL:
        status["trial"] = True
    return JobView(
        id=job_id,
        status=status,
        live=live,
        closed=closed,
        started=job_start_time(description, memo),
        run_id=description.run_id,
        ended=description.close_time,
        pending=await _view_job_retries(client, description),
        job_retries=[] if closed else await view_running_job_retries(client, status),
        kind=description.workflow_type,
        attempts=description.raw_description.pending_workflow_task.attempt,
    )


async def query_job_status(
    client: Client, job_id: str, seconds: float, run_id: str | None = None
) -> dict[str, Any] | None:
    """Return the result of the job's `status` query; None if no worker answered."""
    handle = (
        client.get_workflow_handle(job_id, run_id=run_id)
        if run_id
        else client.get_workflow_handle(job_id)
    )
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while (remaining := end - loop.time()) > 0:
        try:
            answer = await handle.query(
                "status", result_type=dict[str, Any], rpc_timeout=timedelta(seconds=remaining)
            )
        except RPCError:
            return None
        except WorkflowQueryFailedError as error:
            if TOO_EARLY not in str(error):
                return None
            await asyncio.sleep(0.2)
        else:
            return answer if isinstance(answer, dict) else None
    return None


async def _add_closed_status(
    client: Client, description: WorkflowExecutionDescription, status: dict[str, Any]
) -> dict[str, Any]:
    """Add how the job ended to `status`; Temporal's outcome takes precedence over the job's."""
    closed_status = {
        **status,
        "status": CLOSED[description.status or WorkflowExecutionStatus.COMPLETED],
    }
    closed_status["waiting"] = closed_status["waiting_for"] = None
    handle = client.get_workflow_handle(description.id, run_id=description.run_id)
    try:
        result = await handle.result(follow_runs=False)
    except WorkflowFailureError as error:
        closed_status.setdefault("error", explain_job_failure(error))
        return closed_status
    if isinstance(result, dict):
        closed_status["result"] = result
        closed_status["status"] = result.get("status", closed_status["status"])
    return closed_status


async def _view_job_retries(client: Client, description: WorkflowExecutionDescription) -> list[str]:
    retried = []
    for activity in description.raw_description.pending_activities:
        if activity.attempt > 1:
            failure = await client.data_converter.decode_failure(activity.last_failure)
            # Messages for people have what is wrong and what to do in their first line.
            first = job_failure_message(failure).strip().partition("\n")[0]
            why = one_line(first, MOST_REASON) or "no reason given"
            due = retry_delay_text(activity, datetime.now(UTC))
            retried.append(f"{activity.activity_type.name}: attempt {activity.attempt}{due}, {why}")
    return retried


async def view_running_job_retries(client: Client, status: dict[str, Any]) -> list[str]:
    """Return what a project's running jobs retry; without it they would seem to be at work."""

    async def view_retries(job_id: str) -> list[str]:
        try:
            description = await client.get_workflow_handle(job_id).describe()
        except RPCError:
            return []  # It ended meanwhile, or has not begun.
        return [f"{job_id}: {text}" for text in await _view_job_retries(client, description)]

    jobs = [str(run["job"]) for run in status.get("running") or []]
    return [text for texts in await asyncio.gather(*map(view_retries, jobs)) for text in texts]


def retry_delay_text(activity: PendingActivityInfo, now: datetime) -> str:
    """Return in how many seconds the next attempt begins; empty if it is at work or due.

    An endpoint may ask for minutes, in which a job without this figure seems to hang.
    """
    if not activity.HasField("next_attempt_schedule_time"):
        return ""
    delay = activity.next_attempt_schedule_time.ToDatetime(tzinfo=UTC) - now
    seconds = round(delay.total_seconds())
    return f" in {seconds} s" if seconds > 0 else ""
