"""The `store_traces` activity: writes a job's traces to the store."""

from collections.abc import Sequence
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import check_activity_root
from activities.learning.guard_stages import demote_guards
from activities.runtime.activity_info import activity_job_id
from activities.runtime.failures import typed_failure
from activities.steps.root_activity import thread_activity
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreUnavailableError
from activities.traces.trace_text import redact_trace_text
from config.schema.agent import ConfigError
from protocol.trace_requests import StoreTracesReply, StoreTracesRequest, Trace


@thread_activity
def store_traces(root: Root, request: StoreTracesRequest) -> StoreTracesReply:
    check_activity_root(root, request.root, request.remote)
    trace_rows = [trace_row_to_store(activity_job_id(), request, trace) for trace in request.traces]
    try:
        count = RelationalStore(root).run(lambda c: rows.insert_traces(c, trace_rows))
    except StoreUnavailableError as error:
        # The store has tried twice; the job keeps the traces and calls again.
        raise typed_failure("Dependency", str(error)) from error
    _review_guards(root, request.traces)
    return StoreTracesReply(count=count)


def _review_guards(root: Root, traces: Sequence[Trace]) -> None:
    """After approvals by people, check whether the guards involved are still right often enough."""
    names = {trace.guard for trace in traces if trace.type == "approval" and trace.guard}
    if not names:
        return
    try:
        for line in demote_guards(root, names):
            activity.logger.warning("%s", line)
    except (StoreUnavailableError, ConfigError, OSError) as error:
        # The traces are stored, so the next learning pass checks again.
        activity.logger.warning("guards stay as they are: %s", error)


def trace_row_to_store(job: str, request: StoreTracesRequest, trace: Trace) -> dict[str, Any]:
    row = {
        **trace.model_dump(exclude={"commit"}),
        "checkpoint": trace.commit,
        "job": job,
        "agent": request.agent,
        "task": request.task,
        "project": request.project,
    }
    return redact_trace_text(row)
