"""One quota of an endpoint for all jobs, set or learned: when a request may be sent."""

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import openai
from sqlalchemy import Connection
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.job.activity_context import activity_job_id
from activities.model.endpoint_waits import named_wait_seconds
from activities.model.providers import provider_name
from activities.model.rate_headers import read_rate_headers
from activities.runtime.failures import typed_failure
from activities.stores.endpoint_turns import EndpointTurns, TurnKey, TurnWait, endpoint_has_quota
from activities.stores.learned_quota import NamedLimits, Quota, decayed_count
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRejectedError, StoreUnavailableError
from config.schema.model_settings import ModelConfig
from protocol.usage import Usage

STORE_SECONDS = 10.0
LOOK_SECONDS = 2.0
"""How long the first call to an endpoint may look for what other workers have learned of it."""
NO_LIMITS = NamedLimits()
NO_QUOTA = Quota(None, None)
T = TypeVar("T")


@dataclass
class _SeenEndpoint:
    """What this worker has seen of an endpoint."""

    limits: NamedLimits = NO_LIMITS
    """The newest that are not in the store yet."""
    has_learned: bool | None = None
    """Whether a quota was learned; None before the first look."""
    sent: float = 0.0
    """Requests of the last minute that were not refused; older ones count less."""
    sent_at: float = 0.0

    def count_sent(self, number: int) -> None:
        now = time.monotonic()
        self.sent = max(0.0, decayed_count(self.sent, now - self.sent_at) + number)
        self.sent_at = now


class EndpointQuota:
    """The quotas of endpoints, in the store that all workers share.

    An endpoint that names no limits and refuses nothing costs no access to the store but one look.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._seen: dict[str, _SeenEndpoint] = defaultdict(_SeenEndpoint)

    async def wait_for_turn(self, model: ModelConfig, body: bytes) -> None:
        key = _turn_key(model, body)
        seen = self._seen[key.endpoint]
        if not _set_quota(model) and seen.has_learned is None:
            seen.has_learned = await self._look(key.endpoint)
        while self._has_quota(model, key.endpoint):
            wait = await self._run(model, key.endpoint, lambda turns: turns.ask(key, len(body)))
            if wait is None:
                break
            if not wait.seconds:
                seen.has_learned = bool(wait.quota)
                break
            if wait.is_long:
                raise _quota_failure(model, wait)
            await asyncio.sleep(wait.look_seconds)
        seen.count_sent(1)

    def note_headers(self, model: ModelConfig, headers: Mapping[str, str]) -> None:
        """Note what limits an answer names; they are stored together with the next turn."""
        if (limits := read_rate_headers(headers)) != NO_LIMITS:
            seen = self._seen[_endpoint_key(model)]
            seen.limits, seen.has_learned = limits, True

    async def note_reply(self, model: ModelConfig, body: bytes, usage: Usage) -> None:
        """Give up the turn of a request whose reply has come, and count what it has used."""
        key, used = _turn_key(model, body), usage.prompt_tokens + usage.completion_tokens
        if self._has_quota(model, key.endpoint):
            await self._run(model, key.endpoint, lambda turns: turns.settle(key, used))

    async def note_failure(self, model: ModelConfig, body: bytes, error: ApplicationError) -> None:
        """Give up the turn of a request that failed; after a 429 nobody asks for a time."""
        key, cause = _turn_key(model, body), error.__cause__
        if cause is None:
            return
        seen = self._seen[key.endpoint]
        refusal = cause if isinstance(cause, openai.RateLimitError) else None
        # An empty account and a request that is too long say nothing of a quota.
        if refusal and error.type == "Endpoint":
            self.note_headers(model, refusal.response.headers)
            seen.count_sent(-1)
            seen.has_learned = True

        def give_up(turns: EndpointTurns) -> None:
            if refusal and error.type == "Endpoint":
                headers = refusal.response.headers
                wait = named_wait_seconds(headers, refusal.body, str(refusal))
                turns.note_refusal(key, wait, seen.sent)
            turns.settle(key, None)

        if self._has_quota(model, key.endpoint):
            await self._run(model, key.endpoint, give_up)

    def _has_quota(self, model: ModelConfig, endpoint: str) -> bool:
        return bool(_set_quota(model) or self._seen[endpoint].has_learned)

    async def _look(self, endpoint: str) -> bool:
        """Whether another worker has learned a quota of the endpoint."""
        store = RelationalStore(self._root)
        look = partial(store.read, lambda c: endpoint_has_quota(c, endpoint), seconds=LOOK_SECONDS)
        try:
            return store.may_hold_data and await asyncio.to_thread(look)
        except (StoreUnavailableError, StoreRejectedError):
            return False

    async def _run(
        self, model: ModelConfig, endpoint: str, work: Callable[[EndpointTurns], T]
    ) -> T | None:
        """Do the work in the store. Without the store no job waits: the endpoint limits them."""
        limits = self._seen[endpoint].limits

        def run(connection: Connection) -> T:
            turns = EndpointTurns(connection, endpoint, _set_quota(model))
            turns.note_limits(limits)
            result = work(turns)
            turns.save()
            return result

        try:
            store = partial(RelationalStore(self._root).run, run, seconds=STORE_SECONDS)
            result = await asyncio.to_thread(store)
        except (StoreUnavailableError, StoreRejectedError) as error:
            activity.logger.warning("the call waits for no quota: %s", error)
            return None
        if self._seen[endpoint].limits is limits:
            self._seen[endpoint].limits = NO_LIMITS
        return result


def _set_quota(model: ModelConfig) -> Quota:
    return Quota(model.requests_per_minute, model.tokens_per_minute)


def _quota_failure(model: ModelConfig, wait: TurnWait) -> ApplicationError:
    return typed_failure(
        "Endpoint",
        f"endpoint: quota of {provider_name(model)} ({_describe_quota(model, wait.quota)}) is in "
        f"use; the turn of this call comes in {wait.seconds:.0f} s.",
        retry=True,
        delay=wait.look_seconds,
        helps="a higher model.requests_per_minute or model.tokens_per_minute, if the "
        "endpoint allows it",
    )


def _describe_quota(model: ModelConfig, quota: Quota) -> str:
    parts = (
        (quota.requests, "requests", model.requests_per_minute),
        (quota.tokens, "tokens", model.tokens_per_minute),
    )
    named = [
        f"{number:,.0f} {unit}{'' if is_set else ' as learned'}"
        for number, unit, is_set in parts
        if number
    ]
    return f"{' and '.join(named)} a minute"


def _turn_key(model: ModelConfig, body: bytes) -> TurnKey:
    """Return the key of a request's turn, by which it is found after the job has waited."""
    digest, job = hashlib.sha256(body).hexdigest()[:32], activity_job_id()
    return TurnKey(_endpoint_key(model), job, f"{job} {digest}", model.weight)


def _endpoint_key(model: ModelConfig) -> str:
    return f"{provider_name(model)} {model.api_key_variable}"
