"""Ask a job's model, with fallbacks, and never pay twice for a reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import openai
from pydantic import TypeAdapter, ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.model.dialect import Dialect, dialect_of, remember_dialect
from activities.model.endpoint import Connect
from activities.model.endpoint_errors import endpoint_failure, endpoint_refusal_text
from activities.model.endpoint_quota import EndpointQuota
from activities.model.endpoint_wordings import REFUSED_FINISHES
from activities.model.prompt import simple_prompt_body
from activities.model.providers import provider_name
from activities.model.reply_stream import (
    CONNECTION_ERRORS,
    ReplyProgress,
    StreamedReply,
    stream_reply,
)
from activities.redaction.credentials import hide_in_json
from activities.runtime import tracing
from activities.runtime.activity_info import activity_effect_key, activity_job_id
from activities.runtime.failures import (
    amended_failure,
    is_failure_retried,
    note_paid_reply,
    typed_failure,
)
from activities.runtime.heartbeats import check_attempt_by_heartbeat
from config.schema.model_settings import ModelConfig
from protocol.failure_details import BY_FALLBACK
from protocol.short_text import one_line
from protocol.usage import Usage

ATTEMPTS_PER_MODEL = 3
"""Failed attempts on the way to a model before the next fallback is asked."""
FALLBACK_ERRORS = frozenset({"ModelRefused", "Credentials"})
QUOTED_CHARACTERS = 200
SUMMARY_SECONDS = 60
MAX_REMEMBERED_JOBS = 10_000
MALFORMED_REPLY_ERRORS = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    *CONNECTION_ERRORS,
)
"""Errors of an answer that violates the protocol. The client does not check an answer's form, and
passes on errors of a truncated error body.
"""

R = TypeVar("R")


@dataclass(frozen=True)
class ModelQuery:
    models: list[ModelConfig]
    """The model, then its fallbacks."""
    body: Callable[[ModelConfig], bytes]
    """Builds the request for one of them, whose settings are what it accepts."""

    @classmethod
    def with_own_prompt(cls, snapshot: Snapshot, template: str, user_text: str) -> ModelQuery:
        system = snapshot.config.templates[template]
        models = snapshot.config.model_chain(snapshot.state.phase.kind)
        return cls(models, lambda model: simple_prompt_body(model, system, user_text))


@dataclass(frozen=True)
class _Request:
    model: ModelConfig
    dialect: Dialect
    body: bytes
    is_fallback: bool
    is_last: bool


class _ModelExchange:
    """One attempt to get a reply: decides which model is asked next, and in which dialect."""

    def __init__(
        self,
        question: Callable[[], ModelQuery],
        repository: Path,
        key: str,
        activity_key: str,
        *,
        squeezed: bool,
    ) -> None:
        self._question = question
        self.repository = repository
        self.key = key
        self.replies = ResultCache(repository)
        self.unfinished = UnfinishedReplies(self.replies, activity_key)
        self._squeezed = squeezed
        self._began = time.monotonic()
        self._waits = f"{activity_key}.waits"
        self._number = 0
        self._dialect: Dialect | None = None
        """The dialect that the model's last refusal suggests."""
        self._first: ApplicationError | None = None

    def prepare(self) -> StreamedReply | _Request:
        reply = _find_stored_reply(self.replies, self.key)
        if reply is not None:
            return reply
        question = self._question()
        if activity.info().attempt > 1:
            # The attempt before may have failed on using its reply, after it was paid for.
            self.replies.check_room()
        count = len(question.models)
        place = (self._failed_attempts() // ATTEMPTS_PER_MODEL + self._number) % count
        model = question.models[place]
        dialect = self._dialect or dialect_of(model, self.repository)
        body = dialect.adapt_body(question.body(dialect.adapt_settings(model)))
        return _Request(model, dialect, body, place > 0, self._number + 1 == count)

    def _failed_attempts(self) -> int:
        """Return how many attempts failed; one that waited for its turn says nothing of a model."""
        before = activity.info().attempt - 1
        waited = self.replies.find(self._waits) if before else None
        return max(0, before - len(waited or b""))

    def note_wait(self) -> None:
        """Count this attempt among those that only waited. Another host does not know of it."""
        # A full disk is reported where the reply itself is to be kept.
        with suppress(OSError):
            self.replies.put(self._waits, (self.replies.find(self._waits) or b"") + b"1")

    def go_on_after(self, request: _Request, error: ApplicationError) -> None:
        """Choose another dialect or model; raises the first model's error if there is none."""
        self._dialect = request.dialect.adjust_to_refusal(
            endpoint_refusal_text(error), request.model
        )
        if self._dialect:
            return
        error = _with_tried_forms(error, request, dialect_of(request.model, self.repository))
        if request.is_fallback and error.type == "ContextTooLong":
            error = amended_failure(error, BY_FALLBACK)
        too_little = self._squeezed and request.is_fallback and error.type == "ContextTooLong"
        if not too_little:
            self._first = self._first or apply_endpoint_patience(error, request.model, self._began)
        if request.is_last or not (too_little or error.type in FALLBACK_ERRORS):
            raise (self._first or error) from None
        self._number += 1

    def remember_dialect(self, model: ModelConfig) -> None:
        if self._dialect:
            remember_dialect(model, self.repository, self._dialect)


def _with_tried_forms(
    error: ApplicationError, request: _Request, known: Dialect
) -> ApplicationError:
    tried = request.dialect.describe_changes(known)
    if error.type != "ModelRefused" or not tried:
        return error
    return amended_failure(error, message=f"{error.message} Tried as well: {', '.join(tried)}.")


class ModelClient:
    def __init__(self, root: Root, connect: Connect, *, in_turn: bool = False) -> None:
        """Create a client; `in_turn`: a job asks again only once its reply is in its history."""
        self._root = root
        self._connect = connect
        self._quota = EndpointQuota.of_worker(root)
        self._in_turn = in_turn
        self._newest_keys: dict[Path, tuple[datetime, str]] = {}
        """Key of the newest kept reply and the time of its request, by repository."""

    async def request_reply(
        self,
        build_query: Callable[[], ModelQuery],
        use_reply: Callable[[StreamedReply], R],
        part: str = "",
        *,
        reply_key: tuple[Path, str] | None = None,
        compaction_exhausted: bool = False,
    ) -> R:
        """Return the result of `use_reply` on the first reply that a model gives.

        The reply is kept before it is used. Both functions run in one thread, since a store handle
        must stay in its thread.

        Args:
            build_query: Called again for each model that is asked.
            use_reply: Called once with the reply.
            part: Distinguishes several questions of one activity.
            reply_key: Repository and key of the kept reply, if other than the attempt's. A request
                repeated under that key gets the kept reply.
            compaction_exhausted: Whether the request cannot get smaller. A fallback with too small
                a window is skipped then, since the model itself may accept the request later.

        Raises ApplicationError, OSError.
        """
        repository, key = reply_key or (
            self._root.repository(activity_job_id()),
            f"{activity_effect_key()}{part}",
        )
        exchange = _ModelExchange(
            build_query,
            repository,
            key,
            f"{activity_effect_key()}{part}",
            squeezed=compaction_exhausted,
        )
        while True:
            request = await asyncio.to_thread(exchange.prepare)
            if isinstance(request, StreamedReply):
                if not reply_key:  # Otherwise another activity may have paid for it.
                    note_paid_reply(key, request.dropped_usage)
                return await asyncio.to_thread(use_reply, request)
            turn = self._quota.turn(request.model, request.body)
            try:
                async with turn:
                    await check_attempt_by_heartbeat()
                    reply = await self._ask_model(exchange, request)
                    turn.usage = reply.usage
            except ApplicationError as error:
                if not turn.has_begun:
                    await asyncio.to_thread(exchange.note_wait)
                exchange.go_on_after(request, error)
                continue
            model = request.model
            exchange.remember_dialect(model)
            reply.model, reply.is_fallback = model.name, request.is_fallback
            reply.maker, reply.received = provider_name(model), int(time.time())
            return await asyncio.to_thread(self._keep, exchange, reply, use_reply)

    async def _ask_model(self, exchange: _ModelExchange, request: _Request) -> StreamedReply:
        """Send one request. What a reply without an end has used is kept for who counts it."""
        model, used = request.model, Usage()
        try:
            settings = request.dialect.adapt_settings(model)
            note = partial(self._quota.note_headers, model)
            reply = await call_endpoint(self._connect, settings, request.body, used, note)
        except (ApplicationError, asyncio.CancelledError):
            await asyncio.to_thread(exchange.unfinished.add, model.name, used)
            note_paid_reply(exchange.key, exchange.unfinished.total)
            raise
        note_paid_reply(exchange.key, reply.dropped_usage)
        return reply

    def _keep(
        self, exchange: _ModelExchange, reply: StreamedReply, use: Callable[[StreamedReply], R]
    ) -> R:
        """Keep the reply before anything else can fail, since it is paid for; then use it."""
        reply.unfinished = exchange.unfinished.by_model
        note_paid_reply(exchange.key, reply.dropped_usage)
        data = hide_in_json(reply.model_dump_json().encode())
        now = activity.info().scheduled_time
        then, before = self._newest_keys.get(exchange.repository, (now, ""))
        # A late attempt must not do this: the reply after its own may still be needed.
        exchange.replies.put(exchange.key, data, before if then < now else "")
        if self._in_turn and then <= now:
            if len(self._newest_keys) > MAX_REMEMBERED_JOBS:
                self._newest_keys.clear()
            self._newest_keys[exchange.repository] = now, exchange.key
        return use(StreamedReply.model_validate_json(data))

    async def request_summary(
        self,
        build_query: Callable[[], ModelQuery],
        use_reply: Callable[[StreamedReply], R],
        part: str = "",
        *,
        reply_key: tuple[Path, str] | None = None,
    ) -> R:
        """Like `request_reply`, but use an empty reply if no other can be had.

        It waits longer than other optional calls: without an endpoint the job cannot continue
        anyway. Raises ApplicationError: the endpoint failed temporarily; retry.
        """
        try:
            async with asyncio.timeout(SUMMARY_SECONDS):
                return await self.request_reply(build_query, use_reply, part, reply_key=reply_key)
        except (ApplicationError, TimeoutError) as error:
            if isinstance(error, ApplicationError) and is_failure_retried(error):
                raise
            activity.logger.warning("it goes on without a summary: %s", error)
            repository = reply_key[0] if reply_key else self._root.repository(activity_job_id())
            return await asyncio.to_thread(
                lambda: use_reply(_empty_reply(_unfinished_replies(repository, part)))
            )

    async def empty_reply(self, part: str = "") -> StreamedReply:
        """Return a reply that says nothing, with the usage of those that broke off."""
        repository = self._root.repository(activity_job_id())
        return await asyncio.to_thread(lambda: _empty_reply(_unfinished_replies(repository, part)))


def _unfinished_replies(repository: Path, part: str) -> UnfinishedReplies:
    """Return the count of one question of the running activity, whatever its reply's key is."""
    return UnfinishedReplies(ResultCache(repository), f"{activity_effect_key()}{part}")


def _empty_reply(unfinished: UnfinishedReplies) -> StreamedReply:
    usage = Usage()
    return StreamedReply(text="", calls=[], finish="", usage=usage, unfinished=unfinished.by_model)


async def call_endpoint(
    connect: Connect,
    model: ModelConfig,
    body: bytes,
    unfinished: Usage | None = None,
    note_headers: Callable[[Mapping[str, str]], None] = lambda headers: None,
) -> StreamedReply:
    progress = ReplyProgress(note_headers=note_headers)
    try:
        client = connect(model)
        with tracing.trace_activity_model_call(model, client) as heard:
            # The client's own limit applies to each wait, and a trickling reply could go on for
            # ever.
            async with asyncio.timeout(model.timeout_seconds):
                streamed = await stream_reply(client, body, model, progress)
            heard(streamed)
    except (asyncio.CancelledError, openai.OpenAIError, *MALFORMED_REPLY_ERRORS) as error:
        if unfinished is not None and (used := progress.unfinished_usage(error, body)):
            unfinished.add(used)
        if isinstance(error, asyncio.CancelledError):
            raise
        raise endpoint_failure(error, model, len(body)) from error
    if streamed.finish.lower() in REFUSED_FINISHES and not streamed.calls:
        if unfinished is not None:
            unfinished.add(streamed.usage.model_copy(update={"model_calls": 0}))
        received = one_line(streamed.text, QUOTED_CHARACTERS)
        raise typed_failure(
            "ModelRefused",
            f"The model endpoint took the reply back for its content ({streamed.finish})"
            + (f", of which had come: {received}" if received else "."),
        )
    return streamed


def _find_stored_reply(replies: ResultCache, key: str) -> StreamedReply | None:
    data = replies.find(key)
    if data is not None:
        # A kept reply that a power cut damaged counts as missing.
        with suppress(ValidationError):
            return StreamedReply.model_validate_json(data)
    return None


def apply_endpoint_patience(
    error: ApplicationError, model: ModelConfig, began: float
) -> ApplicationError:
    """Return the failure; after too long, one that ends the activity.

    The workflow then shows the job as waiting, and asks again after the delay in the failure.
    """
    delay = error.next_retry_delay
    if error.non_retryable or delay is None:
        return error
    info = activity.info()
    # Both times are the server's, since this host's clock may be wrong.
    before = info.current_attempt_scheduled_time - info.scheduled_time
    waited = before.total_seconds() + time.monotonic() - began
    if waited + delay.total_seconds() < model.patience_seconds:
        return error
    return ApplicationError(
        error.message,
        delay.total_seconds(),
        *error.details,
        type=error.type,
        non_retryable=True,
    )


_BY_MODEL = TypeAdapter(dict[str, Usage])


class UnfinishedReplies:
    """What replies that broke off have used so far. An attempt on another host begins at nothing.

    The endpoint charges for them, and reports nothing. The next reply carries the count into the
    job's usage, or the failure after which the activity ends.
    """

    def __init__(self, cache: ResultCache, key: str) -> None:
        self._cache = cache
        self._key = f"{key}.unfinished"

    @property
    def by_model(self) -> dict[str, Usage]:
        if (data := self._cache.find(self._key)) is not None:
            # A power cut may have damaged the file.
            with suppress(ValidationError):
                return _BY_MODEL.validate_json(data)
        return {}

    def add(self, model: str, usage: Usage) -> None:
        if usage == Usage():
            return
        by_model = self.by_model
        by_model.setdefault(model, Usage()).add(usage)
        # A full disk is reported where the reply itself is to be kept.
        with suppress(OSError):
            self._cache.put(self._key, _BY_MODEL.dump_json(by_model, exclude_defaults=True))

    @property
    def total(self) -> Usage:
        total = Usage()
        for usage in self.by_model.values():
            total.add(usage)
        return total
