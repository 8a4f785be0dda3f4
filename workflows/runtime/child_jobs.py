"""Jobs as child workflows of a project or a trial: starting and cancelling them."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError
from temporalio.workflow import (
    ChildWorkflowCancellationType,
    ChildWorkflowHandle,
    ParentClosePolicy,
)

from workflows.runtime.activity_failures import is_called_workflow_gone

Child = ChildWorkflowHandle[Any, dict[str, Any]]


async def start_child_job(job: str, start: dict[str, Any], title: str | None = None) -> Child:
    """Start a job with this id.

    A parent that is ended from outside cancels its jobs in order.

    Raises:
        WorkflowAlreadyStartedError: there is a job of this id.
    """
    return await workflow.start_child_workflow(
        "Job",
        start,
        id=job,
        result_type=dict,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        static_summary=title,
    )


async def cancel_child_job(job: str, reason: str = "") -> None:
    """Cancel a job so that it closes properly; nothing happens if it has ended.

    The child's handle would address the run that its parent started. The server accepts a request
    for a run that has continued as new, and ignores it
    (https://github.com/temporalio/features/issues/503).
    """
    try:
        await workflow.get_external_workflow_handle(job).cancel(reason=reason)
    except FailureError as error:
        if not is_called_workflow_gone(error):
            raise
