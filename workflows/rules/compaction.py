"""When the context of a phase is compacted, and when that no longer helps. Pure functions."""

from protocol.job_record import JobRecord
from workflows.runtime.activity_failures import StepFailed

MAX_COMPACTIONS = 4
"""Limit of consecutive compactions after the endpoint rejected a request as too long."""


def is_compaction_due(job: JobRecord) -> bool:
    """Whether the next request would be too large and compacting can make it smaller."""
    grown = job.context - job.compacted_context
    return job.context >= job.context_limit and grown > job.context_limit // 10


def count_compaction(job: JobRecord, *, shortened: bool) -> int:
    """Return the consecutive compactions after one more; all are used up by one in vain."""
    return job.hard_compactions + 1 if shortened else MAX_COMPACTIONS


def is_compaction_exhausted(job: JobRecord) -> bool:
    """Whether the job has used up its consecutive compactions for an over-long request."""
    return job.hard_compactions >= MAX_COMPACTIONS


def may_be_too_long(failed: StepFailed, job: JobRecord) -> bool:
    """Whether a request is tried again compacted: it is too long, or large and refused for a cause
    that is not known, which is tried once.
    """
    if failed.kind == "ContextTooLong":
        return not is_compaction_exhausted(job)
    return failed.is_large and not job.hard_compactions
