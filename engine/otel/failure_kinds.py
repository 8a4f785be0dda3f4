"""Describes failures by kind only: messages may contain confidential text."""

from __future__ import annotations

from opentelemetry.trace import Span, StatusCode
from temporalio.exceptions import ApplicationError


def failure_kind(error: BaseException) -> str:
    """Return the endpoint's HTTP status, our failure type, or the exception's class."""
    # Read the attribute of the model client's errors: importing their classes would load the whole
    # client.
    if isinstance(status := getattr(error, "status_code", None), int):
        return str(status)
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def set_span_failure_kind(span: Span, kind: str) -> None:
    """Mark the span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
