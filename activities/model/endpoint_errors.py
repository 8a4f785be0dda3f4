"""Errors of the model endpoint as failures of an activity: what helps, and whether to try again."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import openai
from temporalio.exceptions import ApplicationError

from activities.model.reply_stream import (
    ReplyCutShort,
)
from activities.redaction.credentials import without_credentials
from activities.runtime.failures import typed_failure
from config.schema.agent_sections import ModelConfig
from protocol.short_text import one_line

TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
TOO_LONG = re.compile(
    r"maximum (context|prompt) length|context (length|window|size|limit)|prompt is too long"
    r"|too many tokens|input is too long|request too large|token count[^.]{0,60} exceeds"
    r"|model token limit|max_new_tokens. must be",
    re.IGNORECASE,
)
"""Wording of servers that give no code for a request that is too long."""
TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
"""Wording for a single request above what is served per minute, which no waiting helps."""
NOT_UNKNOWN = re.compile(r"tool_choice|v1/responses|v1/chat/completions")
"""A 404 with this accepts the model, but not this request."""
NO_KEY = re.compile(r"\bapi[ _]key not valid|\binvalid[ _]api[ _]key", re.IGNORECASE)
NO_MODEL = re.compile(r"not a valid model id|\binvalid model\b|model_not_found", re.IGNORECASE)
"""Wordings of a status 400 for an unknown key or model."""
REFUSAL_CODES = re.compile(r"invalid_prompt|\w+_policy(_violation)?|data_residency_mismatch")
"""Codes of a reply that began and was then refused for its request."""
SET_KEY = "Set a valid key in the worker's environment and restart the worker"
MAX_EXAMINED = 2_000
"""Most characters of an error that are searched: some errors quote the request."""


def endpoint_failure(error: Exception, model: ModelConfig) -> ApplicationError:
    """Return the typed failure for a client error."""
    if isinstance(error, openai.APIStatusError):
        return _endpoint_status_failure(error, model)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return _endpoint_stream_failure(error, model)
    if isinstance(error, (openai.APITimeoutError, TimeoutError)):
        return typed_failure("Endpoint", "The model endpoint did not answer in time.", retry=True)
    if isinstance(error, openai.APIConnectionError):
        # The client only reports an error; its cause says which.
        cause = error.__cause__
        description = (
            _endpoint_error_text(cause)
            if isinstance(cause, Exception) and str(cause)
            else _endpoint_error_text(error)
        )
        if isinstance(error, ReplyCutShort):
            return typed_failure(
                "Endpoint", f"The model endpoint's reply from {_request_url(error)} broke "
                f"off: {description}",
                retry=True,
            )  # fmt: skip
        return typed_failure(
            "Endpoint", f"The model endpoint cannot be reached at {_request_url(error)}: "
            f"{description}",
            retry=True,
        )  # fmt: skip
    return typed_failure(
        "Endpoint",
        f"The model endpoint's answer is no reply: {_endpoint_error_text(error)}",
        retry=True,
    )


def _endpoint_stream_failure(error: openai.APIError, model: ModelConfig) -> ApplicationError:
    """Return the failure for an error event of a stream with status 200."""
    if _is_endpoint_length_error(error):
        return _endpoint_length_failure(error, model)
    if "insufficient_quota" in (error.code, error.type):
        return _endpoint_credit_failure(error, model, "in the stream")
    if REFUSAL_CODES.fullmatch(str(error.code)):
        return typed_failure(
            "ModelRefused", f"The model endpoint took the reply back: {_endpoint_error_text(error)}"
        )
    return typed_failure(
        "Endpoint", f"The model endpoint broke off: {_endpoint_error_text(error)}", retry=True
    )


def _is_endpoint_length_error(error: openai.APIError) -> bool:
    # Routers put the error of the server behind them into the body alone.
    text = f"{error} {error.body}"[:MAX_EXAMINED]
    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    if status == 429:
        return bool(TOO_LARGE.search(text))
    return status == 413 or error.code in TOO_LONG_CODES or bool(TOO_LONG.search(text))


def _endpoint_length_failure(error: openai.APIError, model: ModelConfig) -> ApplicationError:
    return typed_failure(
        "ContextTooLong",
        f"The request is too long for {model.name}: {_endpoint_error_text(error)}",
    )


def _endpoint_credit_failure(
    error: openai.APIError, model: ModelConfig, status: object
) -> ApplicationError:
    return typed_failure(
        "Credentials",
        f"The account of the key in {model.api_key_variable} has nothing left to spend "
        f"({status}: {_endpoint_error_text(error)}).",
        mend="Add credit",
    )


def _endpoint_status_failure(error: openai.APIStatusError, model: ModelConfig) -> ApplicationError:
    status, text = error.status_code, _endpoint_error_text(error)
    if status == 402 or "insufficient_quota" in (error.code, error.type):
        return _endpoint_credit_failure(error, model, status)
    if status in (400, 413, 422, 429) and _is_endpoint_length_error(error):
        return _endpoint_length_failure(error, model)
    if status in (401, 403) or (status == 400 and NO_KEY.search(text)):
        return typed_failure(
            "Credentials",
            f"The model endpoint refused the key in {model.api_key_variable} ({status}: {text}).",
            mend=SET_KEY,
        )
    # One router answers this if none of its servers can be made to call a tool; OpenAI, if the
    # model is served by the other API.
    is_unknown = status == 404 and not NOT_UNKNOWN.search(text)
    if is_unknown or (status == 400 and NO_MODEL.search(text)):
        return typed_failure(
            "Credentials",
            f"The model endpoint does not offer {model.name} at {_request_url(error)} "
            f"({status}: {text}).",
            mend="Check the model's name and the address",
        )
    if status in (408, 409, 429) or status >= 500:
        return typed_failure(
            "Endpoint", f"The model endpoint answered {status}: {text}", retry=True,
            delay=_endpoint_retry_seconds(error),
        )  # fmt: skip
    return typed_failure(
        "ModelRefused", f"The model endpoint refused the request ({status}): {text}"
    )


def _request_url(error: openai.APIError) -> str:
    return without_credentials(str(error.request.url))


def _endpoint_clock_time(error: openai.APIStatusError) -> float:
    """Return when the endpoint answered, by its own clock if it says: ours may be an hour off."""
    try:
        return _endpoint_epoch_seconds(
            parsedate_to_datetime(error.response.headers.get("date", ""))
        )
    except ValueError:
        return time.time()


def _endpoint_epoch_seconds(date: datetime) -> float:
    return date.replace(tzinfo=date.tzinfo or UTC).timestamp()


def _endpoint_retry_seconds(error: openai.APIStatusError) -> float | None:
    """Seconds until the endpoint wants to be asked again: it names them, or a date."""
    header = error.response.headers.get("retry-after", "")
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = _endpoint_epoch_seconds(date) - _endpoint_clock_time(error)
    # At least a second, whatever it says (0, -1, nan): no hot loop.
    return max(1.0, min(seconds, 3600.0))


def _endpoint_error_text(error: Exception) -> str:
    text = str(error)
    # The client quotes a message only from a body of the form that it knows.
    if isinstance(error, openai.APIStatusError) and error.body and " - " not in text:
        text = f"{text} - {error.body}"
    if isinstance(error, openai.APIStatusError):
        # The messages name the status themselves.
        text = text.removeprefix(f"Error code: {error.status_code} - ")
    return one_line(text, 300) or type(error).__name__


def endpoint_refusal_text(error: ApplicationError) -> str:
    """Return the endpoint's words if it refuses this form of the request; else empty."""
    cause = error.__cause__
    if error.type == "ModelRefused" and isinstance(cause, openai.APIStatusError):
        # Routers put the error of the server behind them into the body alone.
        return f"{cause} {cause.body}"[:MAX_EXAMINED]
    return ""
