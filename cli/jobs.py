"""Jobs as reported by Temporal and by themselves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

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

from cli.forgotten_jobs import expired_job_notice, forgotten_notice
from cli.output import UserError
from cli.schedule_lookup import find_schedule_notice
from engine.converter import encrypted_payload_reason
from engine.errors import TOO_EARLY
from protocol.payload_reading import EncryptedPayloadError, check_payload_is_decrypted
from protocol.prepare_requests import NEVER_BEGAN
from protocol.short_text import one_line

JOB = "Job"
PROJECT = "Project"
TRIAL = "Trial"
QUERY_SECONDS = 5.0
PAGE = 200
MOST_STATE = 60
TOO_LARGE = "Failure exceeds size limit."
"""What the server puts before a failure whose stack traces it cuts."""
MOST_REASON = 600
"""Characters of why an activity is tried again."""
"""Maximum length of a table cell: a waiting start lists everything it lacks."""

_CLOSED = {
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
    def notices(self) -> list[str]:
        return [str(item) for item in self.status.get("notices") or []]


async def describe_workflow(client: Client, job_id: str) -> WorkflowExecutionDescription:
    """Return Temporal's description of the job's latest run.

    Raises:
        UserError: There is no such job.
    """
    try:
        description = await client.get_workflow_handle(job_id).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND and "amespace" not in error.message:
            unknown = f"there is no job {job_id!r}; `starter.py list` shows them"
            notice = forgotten_notice(job_id) or expired_job_notice(job_id)
            notice = notice or await find_schedule_notice(client, job_id, (JOB, PROJECT))
            raise UserError(notice or unknown) from None
        if error.status == RPCStatusCode.INVALID_ARGUMENT:
            raise UserError(f"{job_id!r} cannot be the id of a job: {error.message}") from None
        raise
    if description.workflow_type not in (JOB, PROJECT, TRIAL):
        raise UserError(
            f"{job_id!r} is not a job but a workflow of type {description.workflow_type}"
        )
    return description


async def view_job(client: Client, job_id: str, *, seconds: float = QUERY_SECONDS) -> JobView:
    """Return the state of the job, from its memo if no worker answers.

    Args:
        seconds: How long to wait for a worker's answer.

    Raises:
        UserError: There is no such job.
    """
    description = await describe_workflow(client, job_id)
    memo, status = await read_job_memo(description), await query_status(client, job_id, seconds)
    live = status is not None
    if status is None:
        status = status_from_memo(memo)
    outcome = description.status or WorkflowExecutionStatus.RUNNING
    closed = outcome in _CLOSED
    status = {"job_id": job_id, **status}
    if closed:
        status = await _with_job_outcome(client, description, status)
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
        started=_job_start_time(description, memo),
        run_id=description.run_id,
        ended=description.close_time,
        pending=await _retrying_job_activities(client, description),
        kind=description.workflow_type,
        attempts=description.raw_description.pending_workflow_task.attempt,
    )


async def query_status(client: Client, job_id: str, seconds: float) -> dict[str, Any] | None:
    """Return the result of the job's `status` query; None if no worker answered."""
    handle = client.get_workflow_handle(job_id)
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


async def read_job_memo(execution: WorkflowExecution) -> dict[str, Any]:
    """Return a job's memo. Raises EncryptedPayloadError if it is encrypted without a key here."""
    memo = dict(await execution.memo())
    check_payload_is_decrypted(tuple(memo.values()))
    return memo


def status_from_memo(memo: dict[str, Any]) -> dict[str, Any]:
    """Return a job's memo in the form of its `status` result, as far as possible."""
    status = {key: memo[key] for key in ("title", "agent") if memo.get(key)}
    if memo.get("state"):
        status["details"] = str(memo["state"])
    word, _, reason = str(memo.get("status") or "running").partition(": ")
    status |= {"status": word, "waiting_for": reason or None}
    number, _, kind = str(memo.get("phase") or "").partition(" ")
    if number.isdecimal():
        status["phase"] = {"number": int(number), "kind": kind}
    return status


async def _with_job_outcome(
    client: Client, description: WorkflowExecutionDescription, status: dict[str, Any]
) -> dict[str, Any]:
    """Add how the job ended to `status`; Temporal's outcome takes precedence over the job's."""
    closed_status = {
        **status,
        "status": _CLOSED[description.status or WorkflowExecutionStatus.COMPLETED],
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


def check_job_is_no_trial(job_view: JobView, refusal: str) -> None:
    """Refuse a command that is for jobs.

    Args:
        refusal: What a trial lacks: `has no files`.

    Raises:
        UserError: it is a trial; with the job of a run that the command may be meant for.
    """
    if job_view.kind != TRIAL:
        return
    runs = job_view.status.get("runs") or []
    begun = [str(run["job"]) for run in runs if run["status"] not in ("pending", "unstarted")]
    such = f", such as {begun[0]}" if begun else f"; `starter.py show {job_view.id}` names them"
    raise UserError(f"{job_view.id} is a trial, which {refusal}; name one of its runs{such}")


async def job_never_began(client: Client, job_id: str) -> bool:
    """Return whether it was cancelled while its start waited, so that it has no data besides
    Temporal's.
    """
    description = await describe_workflow(client, job_id)
    if description.status != WorkflowExecutionStatus.CANCELED:
        return False
    memo = await read_job_memo(description)
    return str(memo.get("state") or "").startswith(NEVER_BEGAN)


def _job_start_time(execution: WorkflowExecution, memo: dict[str, Any]) -> datetime:
    """Return when the job began; Temporal knows only when its latest run did."""
    # The memo may be invalid, since anyone who starts a job can set it.
    with suppress(ValueError):
        started = datetime.fromisoformat(str(memo.get("began")))
        return started if started.tzinfo else execution.start_time
    return execution.start_time


async def _retrying_job_activities(
    client: Client, description: WorkflowExecutionDescription
) -> list[str]:
    retried = []
    for activity in description.raw_description.pending_activities:
        if activity.attempt > 1:
            failure = await client.data_converter.decode_failure(activity.last_failure)
            # Messages for people have what is wrong and what to do in their first line.
            first = job_failure_message(failure).strip().partition("\n")[0]
            why = one_line(first, MOST_REASON) or "no reason given"
            retried.append(f"{activity.activity_type.name}: attempt {activity.attempt}, {why}")
    return retried


async def list_jobs(client: Client, limit: int) -> list[dict[str, Any]]:
    """Return the newest jobs in Temporal's visibility store; needs no worker."""
    jobs: list[tuple[datetime, dict[str, Any]]] = []
    # Earlier runs of a job that continued as new are not jobs of their own.
    query = (
        f"WorkflowType IN ('{JOB}', '{PROJECT}', '{TRIAL}') AND ExecutionStatus != 'ContinuedAsNew'"
    )
    # Bounded, since a page is one message and memos may be large.
    known: set[str] = set()
    async for execution in client.list_workflows(query, page_size=PAGE):
        if execution.id in known:
            continue  # a run before a reset; newest runs come first
        if len(known) == limit:
            break
        known.add(execution.id)
        try:
            memo = await read_job_memo(execution)
        except EncryptedPayloadError as error:
            memo = {"title": f"cannot be read: {error}"}
        outcome = _CLOSED.get(execution.status or WorkflowExecutionStatus.RUNNING)
        if outcome == "completed" and memo.get("status") in ("failed", "cancelled"):
            # For Temporal, a failed project or a cancelled trial completes with a result.
            outcome = str(memo["status"])
        started = _job_start_time(execution, memo)
        state = str(memo.get("phase") or memo.get("state") or "")
        row = {
            "job_id": execution.id,
            "agent": one_line(str(memo.get("agent") or ""), MOST_STATE) or None,
            "status": outcome or memo.get("status") or "running",
            "phase": one_line(state, MOST_STATE) or None,
            "title": memo.get("title"),
            "started": f"{started.astimezone():%Y-%m-%d %H:%M:%S}",
        }
        jobs.append((started, row))
    # The server orders jobs by their newest runs.
    jobs.sort(key=lambda job: job[0], reverse=True)
    return [row for _, row in jobs]
