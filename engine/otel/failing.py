"""What went wrong, as a kind: messages may hold what nobody else is to read."""

from __future__ import annotations

from openai import APIStatusError
from opentelemetry.trace import Span, StatusCode
from temporalio.exceptions import ApplicationError


def kind_of(error: BaseException) -> str:
    """A word for the error: the status an endpoint answered, our type, or the class."""
    if isinstance(error, APIStatusError):
        return str(error.status_code)
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def mark(span: Span, kind: str) -> None:
    """Mark the span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
