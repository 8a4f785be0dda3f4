"""How a job waits for its model endpoint, and what may help."""

from protocol.job_record import JobRecord
from protocol.waiting import WaitState
from workflows.runtime.activity_failures import StepFailed

PARSER = "Start the server with its tool-call parser: docs/model-endpoints.md, has the flags"
ANOTHER = "`--set model.name=…` takes another model"
NO_CALL = (
    "No reply since the start has called a tool: the server may not turn what the model writes "
    f"into calls. {PARSER}; {ANOTHER}; then resume the job."
)
LEAST_REPLIES = 3
"""Number of replies after which it is no coincidence that none called a tool."""


def model_refusal_wait(words: str, count: int) -> WaitState:
    """Return how a job waits whose model refuses again and again."""
    return WaitState(
        reason="endpoint",
        message=f"The model refused {count} times in a row: {words}",
        remedy="`starter.py tell JOB TEXT` says what is meant, then resume; rewind with an issue "
        "of your own; or give it another model, `starter.py resume JOB --set model.name=…`.",
    )


def is_endpoint_without_calls(job: JobRecord) -> bool:
    """Whether every reply since the start was text."""
    return not job.usage.tool_calls and not job.calls and job.usage.model_calls >= LEAST_REPLIES


def wait_with_remedy(waiting: WaitState, job: JobRecord, failed: StepFailed) -> WaitState:
    """Return how a job waits for its endpoint, with the remedy.

    Args:
        waiting: How it waits for what failed.
        job: The job.
        failed: The failure; the activity may say what helps.
    """
    if waiting.reason != "endpoint":
        return waiting
    remedy, helps = waiting.remedy, failed.helps
    if not (helps or failed.mend or failed.kind == "ContextTooLong"):
        helps = f"{ANOTHER}, model.base_url its address"
    if helps:
        remedy = f"{remedy} What may help: {helps}."
    if is_endpoint_without_calls(job):
        remedy = f"{remedy} {NO_CALL}"
    return waiting.model_copy(update={"remedy": remedy})


def endpoint_without_calls_wait(issue: str) -> WaitState:
    """Return how a job waits whose model never calls tools, which no rewind changes."""
    return WaitState(
        reason="endpoint", message=f"{issue} None has since the start.", remedy=NO_CALL
    )
