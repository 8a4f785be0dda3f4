"""One quota of an endpoint for all jobs, set or learned: when a request may be sent."""

import asyncio
import hashlib
import logging
import math
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

import openai
from sqlalchemy import Connection
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.model.endpoint_waits import named_wait_seconds
from activities.model.providers import provider_name
from activities.model.rate_headers import read_rate_headers
from activities.runtime.activity_info import activity_job_id
from activities.runtime.failures import typed_failure
from activities.stores.endpoint_places import RENEW_SECONDS
from activities.stores.endpoint_turns import (
    LONGEST_SLEEP,
    EndpointTurns,
    TurnKey,
    TurnWait,
    endpoint_has_quota,
)
from activities.stores.learned_quota import MINUTE, NamedLimits, Quota
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRejectedError, StoreUnavailableError
from config.schema.model_settings import ModelConfig
from protocol.short_text import count_noun
from protocol.usage import Usage

LOG = logging.getLogger(__name__)
STORE_SECONDS = 10.0
LOOK_SECONDS = 2.0
"""Time limit of a try to see what other workers have learned of an endpoint."""
STORE_THREADS = 2
"""Its own, since many calls that look for their turn would keep the worker's other threads busy."""
MOST_SENT = 20_000
"""Requests of a minute that are remembered; more are not told from so many."""
AWAY_SECONDS = 30.0
"""How long the store is not asked after it did not answer. Calls would queue for its time-outs."""
NO_LIMITS = NamedLimits()
T = TypeVar("T")


@dataclass(frozen=True)
class _Waiter:
    """A call of this worker that waits for a place."""

    start: float
    """Its position in the queue."""
    woken: asyncio.Event


@dataclass
class _SeenEndpoint:
    """What this worker has seen of an endpoint, and its calls there."""

    limits: NamedLimits = NO_LIMITS
    """The newest that are not in the store yet."""
    has_learned: bool | None = None
    """Whether a quota was learned; None before the first look."""
    sent: deque[float] = field(default_factory=partial(deque, maxlen=MOST_SENT))
    """When requests of the last minute were sent; as many are taken away as were refused."""
    waiters: dict[str, _Waiter] = field(default_factory=dict)
    holders: list[str] = field(default_factory=list)
    """Calls that have a place."""
    left: list[str] = field(default_factory=list)
    """Calls whose place the store could not free."""
    upkeep: asyncio.Task[None] | None = None

    def count_sent(self) -> int:
        """Return how many were sent within the last minute."""
        while self.sent and self.sent[0] < time.monotonic() - MINUTE:
            self.sent.popleft()
        return len(self.sent)

    def note_sent(self) -> None:
        self.count_sent()
        self.sent.append(time.monotonic())

    def wake_next(self) -> None:
        """Let the first call that waits for a place look again."""
        if self.waiters:
            min(self.waiters.values(), key=lambda waiter: waiter.start).woken.set()


class EndpointQuota:
    """The quotas of endpoints, in the store that all workers share.

    An endpoint that names no limits and refuses nothing costs no access to the store but one look.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self.worker = uuid.uuid4().hex
        self._seen: dict[str, _SeenEndpoint] = defaultdict(_SeenEndpoint)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads = ThreadPoolExecutor(STORE_THREADS, "quota")
        self._away_until = 0.0

    @staticmethod
    def of_worker(root: Root) -> "EndpointQuota":
        """Return the one that all clients of this process share for a root."""
        return _quotas.setdefault(root.path, EndpointQuota(root))

    def turn(self, model: ModelConfig, body: bytes) -> "EndpointTurn":
        """Return a request's turn: on entering it waits until the request may be sent."""
        key = _turn_key(model, body)
        return EndpointTurn(self, model, key, len(body), self._seen[key.endpoint])

    def note_headers(self, model: ModelConfig, headers: Mapping[str, str]) -> None:
        """Note what limits an answer names; they are stored together with the next turn."""
        if (limits := read_rate_headers(headers)) != NO_LIMITS:
            seen = self._seen[_endpoint_key(model)]
            seen.limits, seen.has_learned = limits, True

    async def has_quota(self, model: ModelConfig) -> bool:
        endpoint = _endpoint_key(model)
        seen = self._seen[endpoint]
        if not _set_quota(model) and seen.has_learned is None:
            found = await self._look(endpoint)
            # An answer may have named a quota meanwhile.
            if seen.has_learned is None:
                seen.has_learned = found
        return bool(_set_quota(model) or seen.has_learned)

    async def _look(self, endpoint: str) -> bool:
        """Whether another worker has learned a quota of the endpoint."""
        store = RelationalStore(self._root)
        look = partial(store.read, lambda c: endpoint_has_quota(c, endpoint), seconds=LOOK_SECONDS)
        try:
            return store.may_hold_data and await asyncio.to_thread(look)
        except (StoreUnavailableError, StoreRejectedError):
            return False

    async def run(
        self, model: ModelConfig, work: Callable[[EndpointTurns], T], *, probes: bool = False
    ) -> T | None:
        """Do the work in the store. Without the store no job waits: the endpoint limits them.

        Args:
            probes: Whether the store is asked even if it did not answer of late.
        """
        endpoint = _endpoint_key(model)
        limits = self._seen[endpoint].limits

        def run(connection: Connection) -> T:
            turns = EndpointTurns(connection, endpoint, _set_quota(model))
            turns.note_limits(limits)
            result = work(turns)
            turns.save()
            return result

        def run_unless_away() -> T | None:
            # It may have been found away while this waited for a thread.
            if time.monotonic() < self._away_until and not probes:
                return None
            try:
                return RelationalStore(self._root).run(run, seconds=STORE_SECONDS)
            except (StoreUnavailableError, StoreRejectedError) as error:
                LOG.warning("the calls wait for no quota: %s", error)
                self._away_until = time.monotonic() + AWAY_SECONDS
                return None

        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._threads, run_unless_away)
        if result is not None and self._seen[endpoint].limits is limits:
            self._seen[endpoint].limits = NO_LIMITS
        return result

    def start(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Start work that goes on if the call is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def keep_places(self, model: ModelConfig) -> None:
        """Renew the leases of places, free those that the store could not free, and see whether a
        store that was away is back."""
        seen = self._seen[_endpoint_key(model)]
        if seen.upkeep is None or seen.upkeep.done():
            seen.upkeep = self.start(self._keep_places(model, seen))

    async def _keep_places(self, model: ModelConfig, seen: _SeenEndpoint) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if not (seen.holders or seen.left or time.monotonic() < self._away_until):
                return
            held, left = [*seen.holders], [*seen.left]
            if await self.run(model, partial(_keep, held=held, left=left), probes=True):
                self._away_until = 0.0
                seen.left = [holder for holder in seen.left if holder not in left]
                seen.wake_next()


def _keep(turns: EndpointTurns, held: list[str], left: list[str]) -> bool:
    if held:
        turns.places.renew(held)
    for holder in left:
        turns.leave(holder)
    return True


class EndpointTurn:
    """The turn of one request, which ends with the block whatever becomes of the request."""

    def __init__(
        self,
        quota: EndpointQuota,
        model: ModelConfig,
        key: TurnKey,
        size: int,
        seen: _SeenEndpoint,
    ) -> None:
        self._quota, self._model, self._key, self._size = quota, model, key, size
        self._seen = seen
        self._holder = uuid.uuid4().hex
        self.usage: Usage | None = None
        """What the reply has used, once it is there."""
        self.has_begun = False
        self.end: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Wait for the turn. Raises ApplicationError: it is far off."""
        until = time.monotonic() + LONGEST_SLEEP
        while await self._quota.has_quota(self._model):
            wait = await self._ask()
            if wait is None:
                if _set_quota(self._model).at_once:
                    self._quota.keep_places(self._model)
                break
            if not wait.seconds:
                self._begin(wait)
                break
            # Nobody knows when a request ends, and `show` has the reason from a failed attempt.
            is_silent = wait.place_look is not None and time.monotonic() > until
            if wait.is_long or is_silent:
                raise _quota_failure(self._model, wait)
            await self._pause(wait)
        self._seen.note_sent()
        self.has_begun = True
        return self

    async def _ask(self) -> TurnWait | None:
        asking = self._quota.start(
            self._quota.run(
                self._model, lambda turns: turns.ask(self._key, self._size, self._holder)
            )
        )
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            self._quota.start(self._withdraw(asking))
            raise

    def _begin(self, wait: TurnWait) -> None:
        if not _set_quota(self._model):
            self._seen.has_learned = bool(wait.quota)
        if wait.quota.at_once:
            self._seen.holders.append(self._holder)
            self._quota.keep_places(self._model)
            if wait.has_more_places:
                self._seen.wake_next()

    async def _pause(self, wait: TurnWait) -> None:
        waiter = _Waiter(wait.start, asyncio.Event())
        if wait.place_look is not None:
            self._seen.waiters[self._holder] = waiter
        try:
            with suppress(TimeoutError):
                # Python 3.11's wait_for loses a cancellation that comes together with the event.
                async with asyncio.timeout(wait.look_seconds):
                    await waiter.woken.wait()
        except asyncio.CancelledError:
            self._quota.start(self._withdraw())
            raise
        finally:
            self._seen.waiters.pop(self._holder, None)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, ApplicationError):
            self.end = self._quota.start(self._end(error))
        else:
            # The turn may be that of another attempt, which took the place of this one.
            self.end = self._quota.start(self._leave())
        # After a reply, which is paid for and is to be kept first, nobody waits for it.
        if isinstance(error, ApplicationError):
            await asyncio.shield(self.end)

    async def _end(self, failure: ApplicationError | None) -> None:
        """Give up the turn, and count what it has used; after a 429 nobody asks for a time."""
        usage, refusal = self.usage, self._note_refusal(failure)
        used = None if usage is None else usage.prompt_tokens + usage.completion_tokens

        def settle(turns: EndpointTurns) -> None:
            if refusal:
                refusal(turns)
            turns.settle(self._key, used)

        await self._leave(settle if _set_quota(self._model) or self._seen.has_learned else None)

    def _note_refusal(
        self, failure: ApplicationError | None
    ) -> Callable[[EndpointTurns], None] | None:
        """Note a 429; return what the store is to learn of it, None if it was none."""
        refusal = _refusal_cause(failure)
        if refusal is None:
            return None
        headers = refusal.response.headers
        self._quota.note_headers(self._model, headers)
        self._seen.has_learned = True
        if self._seen.sent:
            self._seen.sent.pop()
        sent, worker = self._seen.count_sent(), self._quota.worker
        wait = named_wait_seconds(headers, refusal.body, str(refusal))
        return lambda turns: turns.note_refusal(self._key, wait, sent, worker)

    async def _withdraw(self, asking: asyncio.Task[TurnWait | None] | None = None) -> None:
        """Take a cancelled call out of the queue, or leave the place that it is about to get."""
        wait = await asking if asking else None
        if wait and not wait.seconds:
            await self._leave()
            return
        if asking is None or wait:
            await self._quota.run(self._model, lambda turns: turns.withdraw(self._key))
        self._seen.wake_next()

    async def _leave(self, settle: Callable[[EndpointTurns], None] | None = None) -> None:
        """Do the last work in the store, leave the place, and let the next call look."""
        with suppress(ValueError):
            self._seen.holders.remove(self._holder)

        def leave(turns: EndpointTurns) -> bool:
            if settle:
                settle(turns)
            turns.leave(self._holder)
            return True

        has_place = _set_quota(self._model).at_once is not None
        try:
            has_left = False
            if has_place or settle:
                has_left = await self._quota.run(self._model, leave) or False
            if has_place and not has_left:
                self._seen.left.append(self._holder)
                self._quota.keep_places(self._model)
        finally:
            self._seen.wake_next()


_quotas: WeakValueDictionary[Path, EndpointQuota] = WeakValueDictionary()


def _refusal_cause(failure: ApplicationError | None) -> openai.RateLimitError | None:
    """Return the 429 of a failure. An empty account and a request that is too long say nothing of a
    quota."""
    cause = failure.__cause__ if failure and failure.type == "Endpoint" else None
    return cause if isinstance(cause, openai.RateLimitError) else None


def _set_quota(model: ModelConfig) -> Quota:
    return Quota(model.requests_per_minute, model.tokens_per_minute, model.requests_at_once)


def _quota_failure(model: ModelConfig, wait: TurnWait) -> ApplicationError:
    about = "" if wait.place_look is None else "about "
    return typed_failure(
        "Endpoint",
        f"endpoint: quota of {provider_name(model)} ({_describe_quota(model, wait.quota)}) is in "
        f"use; the turn of this call comes in {about}{math.ceil(wait.seconds)} s.",
        retry=True,
        delay=wait.look_seconds,
        helps="a higher model.requests_per_minute, model.tokens_per_minute or "
        "model.requests_at_once, if the endpoint allows it",
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
    minute = [f"{' and '.join(named)} a minute"] if named else []
    at_once = [f"{count_noun(quota.at_once, 'request')} at once"] if quota.at_once else []
    return ", ".join([*minute, *at_once])


def _turn_key(model: ModelConfig, body: bytes) -> TurnKey:
    """Return the key of a request's turn, by which it is found after the job has waited."""
    digest, job = hashlib.sha256(body).hexdigest()[:32], activity_job_id()
    return TurnKey(_endpoint_key(model), job, f"{job} {digest}", model.weight)


def _endpoint_key(model: ModelConfig) -> str:
    return f"{provider_name(model)} {model.api_key_variable}"
