"""A job's memo, which Temporal keeps and which needs no worker."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from temporalio.client import WorkflowExecution

from protocol.payload_reading import check_payload_is_decrypted
from protocol.status import AnyStatus, JobStatus, PhaseStatus, ProjectStatus, TrialStatus
from protocol.waiting import read_status_value

JOB = "Job"
PROJECT = "Project"
TRIAL = "Trial"
STATUSES: dict[str, type[JobStatus] | type[ProjectStatus] | type[TrialStatus]] = {
    JOB: JobStatus,
    PROJECT: ProjectStatus,
    TRIAL: TrialStatus,
}
"""What the query of each type of workflow returns."""


async def read_job_memo(execution: WorkflowExecution) -> dict[str, Any]:
    """Return a job's memo. Raises EncryptedPayloadError if it is encrypted without a key here."""
    memo = dict(await execution.memo())
    check_payload_is_decrypted(tuple(memo.values()))
    return memo


def status_from_memo(kind: str, memo: dict[str, Any]) -> AnyStatus:
    """Return a job's memo as its status, as far as possible."""
    word, reason = read_status_value(str(memo.get("status") or "running"))
    status = STATUSES[kind](
        title=str(memo.get("title") or ""),
        agent=str(memo["agent"]) if memo.get("agent") else None,
        details=str(memo.get("state") or ""),
        status=word,
        waiting_for=reason or None,
    )
    number, _, phase_kind = str(memo.get("phase") or "").partition(" ")
    if number.isdecimal() and isinstance(status, JobStatus):
        status.phase = PhaseStatus(number=int(number), kind=phase_kind)
    return status


def job_start_time(execution: WorkflowExecution, memo: dict[str, Any]) -> datetime:
    """Return when the job began; Temporal knows only when its latest run did."""
    # The memo may be invalid, since anyone who starts a job can set it.
    with suppress(ValueError):
        started = datetime.fromisoformat(str(memo.get("began")))
        return started if started.tzinfo else execution.start_time
    return execution.start_time
