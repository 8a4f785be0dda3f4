"""A job's memo, which Temporal keeps and which needs no worker."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from temporalio.client import WorkflowExecution

from protocol.payload_reading import check_payload_is_decrypted
from protocol.waiting import read_status_value


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
    word, reason = read_status_value(str(memo.get("status") or "running"))
    status |= {"status": word, "waiting_for": reason or None}
    number, _, kind = str(memo.get("phase") or "").partition(" ")
    if number.isdecimal():
        status["phase"] = {"number": int(number), "kind": kind}
    return status


def job_start_time(execution: WorkflowExecution, memo: dict[str, Any]) -> datetime:
    """Return when the job began; Temporal knows only when its latest run did."""
    # The memo may be invalid, since anyone who starts a job can set it.
    with suppress(ValueError):
        started = datetime.fromisoformat(str(memo.get("began")))
        return started if started.tzinfo else execution.start_time
    return execution.start_time
