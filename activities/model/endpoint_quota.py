"""One quota of an endpoint for all jobs: when a request may be sent."""

import asyncio
import hashlib
from collections.abc import Callable
from functools import partial

import openai
from sqlalchemy import Connection
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.job.activity_context import activity_job_id
from activities.model.providers import provider_name
from activities.runtime.failures import typed_failure
from activities.stores.endpoint_turns import (
    Quota,
    TurnKey,
    postpone_turns,
    settle_turn,
    wait_for_turn,
)
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRejectedError, StoreUnavailableError
from config.schema.model_settings import ModelConfig
from protocol.usage import Usage

LONGEST_SLEEP = 20.0
"""Seconds that an attempt waits for its turn; the next attempt waits for a later one."""
EARLY_SECONDS = 2.0
"""That attempt begins so long before the turn, which it then does not miss."""
REFUSED_SECONDS = 10.0
"""How long nobody asks after a 429 that names no time."""
STORE_SECONDS = 10.0


class EndpointQuota:
    """The quota of the endpoints that have one, in the store that all workers share."""

    def __init__(self, root: Root) -> None:
        self._root = root

    async def wait_for_turn(self, model: ModelConfig, body: bytes) -> None:
        if (quota := _model_quota(model)) is None:
            return
        turn = _turn_key(model, body)
        while seconds := await self._run(lambda c: wait_for_turn(c, turn, quota, len(body))):
            if seconds > LONGEST_SLEEP:
                raise typed_failure(
                    "Endpoint",
                    f"The quota of {provider_name(model)} ({_describe_quota(quota)}) is in use: "
                    f"the turn of this call comes in {seconds:.0f} s.",
                    retry=True,
                    delay=seconds - EARLY_SECONDS,
                    helps="a higher model.requests_per_minute or model.tokens_per_minute, if the "
                    "endpoint allows it",
                )
            await asyncio.sleep(seconds)

    async def note_reply(self, model: ModelConfig, body: bytes, usage: Usage) -> None:
        """Give up the turn of a request whose reply has come, and count what it has used."""
        if quota := _model_quota(model):
            turn, used = _turn_key(model, body), usage.prompt_tokens + usage.completion_tokens
            await self._run(lambda c: settle_turn(c, turn, quota, used))

    async def note_failure(self, model: ModelConfig, body: bytes, error: ApplicationError) -> None:
        quota, cause = _model_quota(model), error.__cause__
        if quota is None or cause is None:
            return
        turn = _turn_key(model, body)
        await self._run(lambda c: settle_turn(c, turn, quota, None))
        if isinstance(cause, openai.RateLimitError):
            delay = error.next_retry_delay
            seconds = delay.total_seconds() if delay else REFUSED_SECONDS
            await self._run(lambda c: postpone_turns(c, turn.endpoint, seconds))

    async def _run(self, work: Callable[[Connection], float | None]) -> float:
        """Do the work in the store. Without the store no job waits: the endpoint limits them."""
        try:
            run = partial(RelationalStore(self._root).run, seconds=STORE_SECONDS)
            return await asyncio.to_thread(run, work) or 0.0
        except (StoreUnavailableError, StoreRejectedError) as error:
            activity.logger.warning("the call waits for no quota: %s", error)
            return 0.0


def _model_quota(model: ModelConfig) -> Quota | None:
    quota = Quota(model.requests_per_minute, model.tokens_per_minute)
    return quota if quota.requests or quota.tokens else None


def _turn_key(model: ModelConfig, body: bytes) -> TurnKey:
    """Return the key of a request's turn, by which it is found after the job has waited."""
    digest = hashlib.sha256(body).hexdigest()[:32]
    return TurnKey(
        f"{provider_name(model)} {model.api_key_variable}", f"{activity_job_id()} {digest}"
    )


def _describe_quota(quota: Quota) -> str:
    parts = (quota.requests, "requests"), (quota.tokens, "tokens")
    return " and ".join(f"{number:,} {unit}" for number, unit in parts if number) + " a minute"
