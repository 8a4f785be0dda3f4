"""Errors of the model endpoint as failures of an activity: what helps, and whether to try again.

A cause is read from all that came together: status, codes, words and form. The words are those of
`endpoint_wordings`. What no rule knows is called unknown, with the endpoint's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import httpx2
import openai
from pydantic_core import from_json
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.model import endpoint_wordings as wordings
from activities.model.endpoint_waits import named_wait_seconds
from activities.model.reply_stream import ReplyCutShort, StreamStalled
from activities.redaction.credentials import without_credentials
from activities.runtime.failures import amended_failure, typed_failure
from config.schema.model_settings import ModelConfig
from protocol.failure_details import LARGE
from protocol.short_text import one_line

SET_KEY = "Set a valid key in the worker's environment and restart the worker"
MAX_EXAMINED = 2_000
"""Most characters of an error that are searched: some errors quote the request."""
MAX_CODES, MAX_DEPTH = 20, 6
LARGE_REQUEST = 60_000
"""Bytes from which a request that is refused for an unknown cause may be too long, about 15,000
tokens."""
CONTENT_TRIES = 2
"""How often a request is sent that is refused for its content: moderation is not always the same.
"""

CODE_KEYS = ("code", "type", "status", "reason")


@dataclass(frozen=True)
class _Refusal:
    status: int | None
    """Of the answer, or in the error of a stream; None if neither gives one."""
    codes: frozenset[str]
    """Codes and types, however deep in the body."""
    words: str
    """All words that are searched."""
    shown: str
    body: object
    headers: Mapping[str, str]
    url: str
    is_page: bool
    in_stream: bool

    @classmethod
    def of(cls, error: openai.APIError) -> _Refusal:
        status = error.status_code if isinstance(error, openai.APIStatusError) else None
        response = error.response if isinstance(error, openai.APIStatusError) else None
        codes = {str(code) for code in (error.code, error.type) if code}
        leaves = list(_leaves_in(error.body))
        codes |= set([str(leaf) for key, leaf in leaves if key in CODE_KEYS and leaf][:MAX_CODES])
        words = [leaf for _, leaf in leaves if isinstance(leaf, str)]
        named = (int(code) for code in sorted(codes) if code.isascii() and code.isdigit())
        page = wordings.PAGE.match(text := _response_text(response))
        title = wordings.TITLE.search(text) if page else None
        return cls(
            status or next((each for each in named if 400 <= each < 600), None),
            frozenset(codes),
            ("\n".join(words) or str(error))[:MAX_EXAMINED],
            one_line(title[1], 100) if title else _endpoint_error_text(error),
            error.body,
            response.headers if response is not None else {},
            without_credentials(str(error.request.url)),
            bool(page),
            status is None,
        )

    @property
    def place(self) -> object:
        return "in the stream" if self.in_stream else self.status

    @property
    def wait(self) -> float | None:
        return named_wait_seconds(self.headers, self.body, self.words)

    @property
    def lacks_credit(self) -> bool:
        if self.status == 402 or self.codes & wordings.CREDIT_CODES:
            return True
        if wordings.CREDIT.search(self.words):
            return self.status is None or 400 <= self.status < 500
        return bool(wordings.CREDIT_OR_RATE.search(self.words)) and self.wait is None

    @property
    def is_too_long(self) -> bool:
        # Routers put the error of the server behind them into the body alone.
        if self.status == 429:
            return bool(wordings.TOO_LARGE.search(self.words))
        if self.status not in (None, 400, 413, 422, 500):
            return False
        return (
            self.status == 413
            or bool(self.codes & wordings.TOO_LONG_CODES)
            or wordings.says_too_long(self.words)
        )

    @property
    def is_for_content(self) -> bool:
        if self.status not in (None, 400, 403, 422, 451):
            return False
        return any(map(wordings.CONTENT_CODES.fullmatch, self.codes)) or bool(
            wordings.CONTENT.search(self.words)
        )

    @property
    def is_for_key(self) -> bool:
        return self.status in (401, 403) or (
            self.status == 400 and bool(wordings.NO_KEY.search(self.words))
        )

    @property
    def lacks_model(self) -> bool:
        # One router answers this if none of its servers can be made to call a tool; OpenAI, if the
        # model is served by the other API.
        if self.status == 404:
            return not wordings.NOT_UNKNOWN.search(self.words)
        return self.status in (None, 400) and bool(wordings.NO_MODEL.search(self.words))

    @property
    def may_pass(self) -> bool:
        return self.in_stream or self.status in (408, 409, 425, 429) or (self.status or 0) >= 500


def endpoint_failure(error: Exception, model: ModelConfig, size: int = 0) -> ApplicationError:
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return _refusal_failure(_Refusal.of(error), model, size)
    if isinstance(error, (openai.APITimeoutError, TimeoutError)):
        return typed_failure(
            "Endpoint", "The model endpoint did not answer in time.", retry=True,
            helps=wordings.LONGER_REPLY,
        )  # fmt: skip
    if isinstance(error, openai.APIConnectionError):
        return _connection_failure(error)
    return typed_failure(
        "Endpoint",
        f"The model endpoint's answer is no reply: {_endpoint_error_text(error)}",
        retry=True,
        helps=wordings.OTHER_ADDRESS,
    )


def _connection_failure(error: openai.APIConnectionError) -> ApplicationError:
    # The client only reports an error; its cause says which.
    cause, where = error.__cause__, without_credentials(str(error.request.url))
    is_told = isinstance(cause, Exception) and str(cause)
    description = _endpoint_error_text(cause if is_told else error)  # type: ignore[arg-type]
    if isinstance(error, ReplyCutShort):
        is_silent = isinstance(error, StreamStalled)
        return typed_failure(
            "Endpoint", f"The model endpoint's reply from {where} broke off: {description}",
            retry=True, helps=wordings.LONGER_SILENCE if is_silent else wordings.UNSTREAMED,
        )  # fmt: skip
    return typed_failure(
        "Endpoint", f"The model endpoint cannot be reached at {where}: {description}",
        retry=True, helps=wordings.OTHER_ADDRESS,
    )  # fmt: skip


def _refusal_failure(refusal: _Refusal, model: ModelConfig, size: int) -> ApplicationError:
    """Return the failure for an answer: the first cause that fits all that came."""
    what = f"({refusal.place}: {refusal.shown})"
    if refusal.is_page and refusal.status not in (404, 405, 413):
        return _page_failure(refusal)
    if refusal.lacks_credit:
        return typed_failure(
            "Credentials",
            f"The account of the key in {model.api_key_variable} has nothing left to spend {what}.",
            mend=_credit_remedy(refusal),
        )
    if refusal.is_too_long:
        return typed_failure(
            "ContextTooLong", f"The request is too long for {model.name}: {refusal.shown}"
        )
    if refusal.is_for_content:
        return _content_failure(refusal)
    if refusal.is_for_key:
        return typed_failure(
            "Credentials",
            f"The model endpoint refused the key in {model.api_key_variable} {what}.",
            mend=SET_KEY,
        )
    if refusal.lacks_model:
        return typed_failure(
            "Credentials",
            f"The model endpoint does not offer {model.name} at {refusal.url} {what}.",
            mend="Check the model's name and the address",
        )
    helps = wordings.endpoint_remedy(refusal.words)
    if refusal.may_pass:
        said = "broke off" if refusal.in_stream else f"answered {refusal.status}"
        return typed_failure(
            "Endpoint", f"The model endpoint {said}: {refusal.shown}", retry=True,
            delay=refusal.wait, helps=helps,
        )  # fmt: skip
    failure = typed_failure(
        "ModelRefused",
        f"The model endpoint refused the request ({refusal.status}): {refusal.shown}",
        helps=helps,
    )
    if refusal.status in (400, 422) and size >= min(
        LARGE_REQUEST, 2 * (model.window or LARGE_REQUEST)
    ):
        return amended_failure(failure, LARGE)
    return failure


def _page_failure(refusal: _Refusal) -> ApplicationError:
    return typed_failure(
        "Endpoint",
        f"A web page came from {refusal.url} instead of an answer ({refusal.status}: "
        f"{refusal.shown}): something stands before the endpoint, such as a proxy.",
        retry=True,
        delay=refusal.wait,
        helps=f"let the worker through there; {wordings.OTHER_ADDRESS}",
    )


def _content_failure(refusal: _Refusal) -> ApplicationError:
    attempt = activity.info().attempt if activity.in_activity() else CONTENT_TRIES
    if refusal.in_stream:
        said = "took the reply back"
    else:
        said = f"refused the request for its content ({refusal.status})"
    return typed_failure(
        "ModelRefused",
        f"The model endpoint {said}: {refusal.shown}",
        retry=attempt < CONTENT_TRIES and not refusal.in_stream,
        helps=f"another wording, by `starter.py tell JOB TEXT`; {wordings.ANOTHER}",
    )


def _credit_remedy(refusal: _Refusal) -> str:
    if affords := wordings.AFFORDS.search(refusal.words):
        number = affords[1].replace(",", "")
        setting = f"--set model.max_output_tokens={number}"
        return f"Add credit, or ask for replies that it pays for, `{setting}`"
    return "Add credit"


def _leaves_in(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield the values of an error's body by their keys; routers quote an error within theirs."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and depth < MAX_DEPTH:
        with suppress(ValueError):
            yield from _leaves_in(from_json(value), key, depth + 1)
            return
    if not isinstance(value, (dict, list)):
        yield key, value
    elif depth < MAX_DEPTH:
        named = value.items() if isinstance(value, dict) else (("", each) for each in value[:20])
        for name, inner in named:
            yield from _leaves_in(inner, name, depth + 1)


def _response_text(response: httpx2.Response | None) -> str:
    try:
        return response.text[:MAX_EXAMINED] if response is not None else ""
    except httpx2.ResponseNotRead:
        return ""


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
    if not isinstance(cause, openai.APIStatusError):
        return ""
    # Routers put the error of the server behind them into the body alone.
    words = f"{cause} {cause.body}"[:MAX_EXAMINED]
    affords = error.type == "Credentials" and wordings.AFFORDS.search(words)
    return words if error.type == "ModelRefused" or affords else ""
