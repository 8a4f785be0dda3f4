"""Why a job or one of its activities failed, for people."""

from __future__ import annotations

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError, FailureError, ServerError, TerminatedError

from engine.converter import encrypted_payload_reason

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
