"""What went wrong, as a kind: messages may hold what nobody else is to read."""

from __future__ import annotations

from opentelemetry.trace import Span, StatusCode
from temporalio.exceptions import ApplicationError


def failure_kind(error: BaseException) -> str:
    """A word for the error: the status an endpoint answered, our type, or the class."""
    # The model client's errors; the client itself is much to load for whoever only starts a job.
    if isinstance(status := getattr(error, "status_code", None), int):
        return str(status)
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def mark_failed(span: Span, kind: str) -> None:
    """Mark the span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
