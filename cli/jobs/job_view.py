"""The state of a job, as Temporal and the job itself report it."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.api.enums.v1.workflow_pb2 import PENDING_ACTIVITY_STATE_STARTED as STARTED
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
)
from temporalio.exceptions import CancelledError, FailureError, ServerError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs import job_memo
from cli.jobs.missing_jobs import expired_job_notice, forgotten_job_notice
from cli.output import UserError
from cli.schedules.recurring_starts import find_schedule_notice
from engine.converter import encrypted_payload_reason
from engine.deployment import worker_build_id
from engine.setup_errors import TOO_EARLY
from protocol.endings import JobResult
from protocol.project_units import ProjectResult
from protocol.short_text import one_line
from protocol.status import AnyStatus, JobStatus, ProjectStatus, ProjectUnit, TrialStatus, UnderWay
from protocol.validation_errors import first_validation_errors

QUERY_SECONDS = 5.0
WATCHES = ("watch_retries", "watch_trial")
"""Activities that only look after others."""
MOST_RUNS = 50
"""Most runs of a job among which its own latest one is looked for after a refused start."""
MOST_REASON = 600
"""Characters of why an activity is tried again."""

NOT_BEGUN = "not begun"
"""Status of a job that no worker has taken."""

CLOSED = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "cancelled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.TIMED_OUT: "failed",
}
UNFINISHED = CLOSED.keys() - {WorkflowExecutionStatus.COMPLETED}
"""How a start ends that is refused, or given up before it begins."""


@dataclass
class JobView:
    """The state of a job, a project or a trial at one moment."""

    id: str
    status: AnyStatus
    """Result of the job's `status` query, else what its memo has."""
    closed: bool
    started: datetime
    run_id: str
    ended: datetime | None = None
    kind: str = job_memo.JOB
    """Workflow type."""
    attempts: int = 0
    """Attempts of the pending workflow task."""
    queue: str = ""
    version: str = ""
    """Version of the worker that took its last step; empty if the server does not say."""
    events: int = 0
    """Number of events in its history; the status changes with one, or with time alone."""

    @property
    def live(self) -> bool:
        return self.status.live

    @property
    def silence(self) -> str:
        """Why the job did not answer; empty if it did."""
        if self.live:
            return ""
        if self.status.status == NOT_BEGUN:
            return "it has not begun: no worker has taken it"
        if self.attempts > 1:
            other = self.version and self.version != worker_build_id()
            needs = f"; it was last served by version {self.version}" if other else ""
            return (
                f"its workflow task fails (attempt {self.attempts}{needs}; `starter.py doctor` "
                "says why)"
            )
        return "no worker answers"

    @property
    def question_ids(self) -> dict[str, str]:
        """Return the ids of open questions by the signals that answer them."""
        ids: dict[str, str] = {}
        if isinstance(self.status, TrialStatus):
            return ids
        if isinstance(self.status, JobStatus):
            question = self.status.clarification.pending
            if question and question.answer is None:
                ids["answer"] = question.id
        approval = self.status.approval
        if approval and approval.approved is None:
            ids |= dict.fromkeys(("approve", "deny"), approval.id)
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
        if not isinstance(self.status, TrialStatus):
            return
        started = [
            run.job for run in self.status.runs if run.status not in ("pending", "unstarted")
        ]
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
            notice = notice or await find_schedule_notice(
                client, job_id, (job_memo.JOB, job_memo.PROJECT)
            )
            raise UserError(notice or unknown) from None
        if error.status == RPCStatusCode.INVALID_ARGUMENT:
            raise UserError(f"{job_id!r} cannot be the id of a job: {error.message}") from None
        raise
    if description.workflow_type not in (job_memo.JOB, job_memo.PROJECT, job_memo.TRIAL):
        raise UserError(
            f"{job_id!r} is not a job but a workflow of type {description.workflow_type}"
        )
    newest = await find_own_run(client, description)
    if newest is description:
        return description
    return await client.get_workflow_handle(newest.id, run_id=newest.run_id).describe()


async def find_own_run(client: Client, newest: WorkflowExecution) -> WorkflowExecution:
    """Return the latest run of a job that is no refused start under its id; else the newest.

    A start that was refused, or ended before its first phase, has not begun.
    """
    if newest.status not in UNFINISHED or await _has_begun(newest):
        return newest
    runs = client.list_workflows(f'WorkflowId = "{newest.id}"', limit=MOST_RUNS)
    earlier = [run async for run in runs if run.run_id != newest.run_id]
    for run in sorted(earlier, key=lambda run: run.start_time, reverse=True):
        if run.start_time <= newest.start_time and await _has_begun(run):
            return run
    return newest


async def _has_begun(run: WorkflowExecution) -> bool:
    memo = await job_memo.read_job_memo(run)
    # A job that waits before its first phase has a state as well.
    return bool(memo.get("phase" if run.workflow_type == job_memo.JOB else "state"))


async def view_job(
    client: Client, job_id: str, *, seconds: float = QUERY_SECONDS, known: JobView | None = None
) -> JobView:
    """Return the state of the job, from its memo if no worker answers.

    Args:
        seconds: How long to wait for a worker's answer.
        known: A recent view. While no event is added to it, its status is taken, which spares a
            query.

    Raises:
        UserError: There is no such job.
    """
    description = await describe_job(client, job_id)
    memo = await job_memo.read_job_memo(description)
    kind = description.workflow_type
    closed = (description.status or WorkflowExecutionStatus.RUNNING) in CLOSED
    # A run that is open may go on in another before it is asked.
    run_id = description.run_id if closed else None
    place = (description.run_id, description.history_length)
    if known and known.live and not closed and (known.run_id, known.events) == place:
        status = known.status
    else:
        answer = await query_job_status(client, job_id, seconds, run_id)
        status = (
            job_memo.status_from_memo(kind, memo) if answer is None else _read_status(kind, answer)
        )
        status.live = answer is not None
    status.job_id = job_id
    raw = description.raw_description
    attempts = raw.pending_workflow_task.attempt
    version = raw.workflow_execution_info.most_recent_worker_version_stamp.build_id
    if not (closed or status.live or memo or version or attempts > 1):
        status.status = NOT_BEGUN
    if closed:
        status = await _add_closed_status(client, description, status)
    else:
        await _add_pending_activities(client, description, status)
    return JobView(
        id=job_id,
        status=status,
        closed=closed,
        started=job_memo.job_start_time(description, memo),
        run_id=description.run_id,
        ended=description.close_time,
        kind=kind,
        attempts=attempts,
        version=version,
        events=description.history_length,
        queue=description.task_queue,
    )


def _read_status(kind: str, answer: dict[str, Any]) -> AnyStatus:
    """Return the answer of a worker, which may be newer and say more.

    Raises UserError: it cannot be read.
    """
    form = ProjectStatus if answer.get("project") else job_memo.STATUSES[kind]
    try:
        return form.model_validate(answer, extra="ignore")
    except ValidationError as error:
        raise UserError(
            "the worker's answer cannot be read here; is it of another version? "
            f"{first_validation_errors(error)}"
        ) from None


async def query_job_status(
    client: Client, job_id: str, seconds: float, run_id: str | None = None
) -> dict[str, Any] | None:
    """Return the result of the job's `status` query; None if no worker answered."""
    handle = client.get_workflow_handle(job_id, run_id=run_id)
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
    client: Client, description: WorkflowExecutionDescription, status: AnyStatus
) -> AnyStatus:
    """Return `status` with how the job ended; Temporal's outcome takes precedence."""
    status.status = CLOSED[description.status or WorkflowExecutionStatus.COMPLETED]
    status.waiting = status.waiting_for = None
    handle = client.get_workflow_handle(description.id, run_id=description.run_id)
    try:
        result = await handle.result(follow_runs=False)
    except WorkflowFailureError as error:
        why = explain_job_failure(error)
        status.error = "" if why == status.status else why
        return status
    if isinstance(status, TrialStatus):
        ended = {"job_id": status.job_id, "live": status.live}
        return TrialStatus.model_validate({**result, **ended}, extra="ignore")
    if isinstance(status, ProjectStatus):
        status.result = ProjectResult.model_validate(result, extra="ignore")
        status.units = [
            ProjectUnit.model_validate(unit, extra="ignore") for unit in status.result.units
        ]
        status.result.units = []
    else:
        status.result = JobResult.model_validate(result, extra="ignore")
    status.status = status.result.status
    return status


async def _add_pending_activities(
    client: Client, description: WorkflowExecutionDescription, status: AnyStatus
) -> None:
    """Add what runs now and what is tried again; without it a job would seem to do nothing."""
    status.under_way, status.retrying = await _view_pending_activities(client, description)
    jobs = status.running if isinstance(status, ProjectStatus) else []
    for under_way, retrying in await asyncio.gather(
        *(view_activities_of_job(client, run.job) for run in jobs)
    ):
        status.under_way += under_way
        status.retrying += retrying


async def _view_pending_activities(
    client: Client, description: WorkflowExecutionDescription
) -> tuple[list[UnderWay], list[str]]:
    now = datetime.now(UTC)
    under_way, retried = [], []
    for activity in description.raw_description.pending_activities:
        name = activity.activity_type.name
        if activity.state == STARTED and name not in WATCHES:
            since = activity.last_started_time.ToDatetime(tzinfo=UTC)
            seconds = max(0, int((now - since).total_seconds()))
            under_way.append(
                UnderWay(activity=name, since=f"{since:%Y-%m-%dT%H:%M:%SZ}", seconds=seconds)
            )
        if activity.attempt > 1:
            failure = await client.data_converter.decode_failure(activity.last_failure)
            # Messages for people have what is wrong and what to do in their first line.
            first = job_failure_message(failure).strip().partition("\n")[0]
            why = one_line(first, MOST_REASON) or "no reason given"
            due = retry_delay_text(activity, now)
            retried.append(f"{name}: attempt {activity.attempt}{due}, {why}")
    return under_way, retried


async def view_activities_of_job(client: Client, job_id: str) -> tuple[list[UnderWay], list[str]]:
    """Return what a project's running job does and tries again, with its id."""
    try:
        description = await client.get_workflow_handle(job_id).describe()
    except RPCError:
        return [], []  # It ended meanwhile, or has not begun.
    under_way, retrying = await _view_pending_activities(client, description)
    named = [each.model_copy(update={"job": job_id}) for each in under_way]
    return named, [f"{job_id}: {text}" for text in retrying]


def retry_delay_text(activity: PendingActivityInfo, now: datetime) -> str:
    """Return in how many seconds the next attempt begins; empty if it is at work or due.

    An endpoint may ask for minutes, in which a job without this figure seems to hang.
    """
    if not activity.HasField("next_attempt_schedule_time"):
        return ""
    delay = activity.next_attempt_schedule_time.ToDatetime(tzinfo=UTC) - now
    seconds = round(delay.total_seconds())
    return f" in {seconds} s" if seconds > 0 else ""


TOO_LARGE = "Failure exceeds size limit."
"""What the server puts before a failure whose stack traces it cuts."""


def explain_job_failure(error: BaseException) -> str:
    """Return why a job ended, from the innermost cause."""
    if isinstance(error, WorkflowFailureError):
        error = error.cause
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(job_failure_message(error).split())
    if isinstance(error, CancelledError):
        return text if text and text != "Workflow cancelled" else "cancelled"
    if isinstance(error, TerminatedError):
        return f"terminated: {text}"
    return text or type(error).__name__


def job_failure_message(error: BaseException) -> str:
    """Return a failure's message, or why it cannot be read. For a FailureError `str` would put the
    type in front."""
    if not isinstance(error, FailureError):
        return str(error)
    if isinstance(error, ServerError) and error.message == TOO_LARGE and error.cause:
        return job_failure_message(error.cause)
    why = error.failure and encrypted_payload_reason(error.failure.encoded_attributes)
    return f"what it says cannot be read here: {why}" if why else error.message
