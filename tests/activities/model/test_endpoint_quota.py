"""One quota of an endpoint for all jobs: who waits, for how long, and what a 429 changes."""

import asyncio
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import httpx2
import openai
import pytest
from sqlalchemy import Connection
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.model import endpoint_quota
from activities.model.endpoint_quota import EndpointQuota
from activities.stores.endpoint_turns import EndpointTurns, TurnKey
from activities.stores.learned_quota import Quota
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import PLACES
from config.schema.model_settings import ModelConfig
from protocol.usage import Usage
from tests.activities.standing import environment

REQUEST = httpx2.Request("POST", "http://here/v1/chat/completions")


def model(**settings: int) -> ModelConfig:
    return ModelConfig.model_validate({"name": "m", "base_url": "http://here/v1", **settings})


def wait(root: Root, settings: ModelConfig, body: bytes) -> float:
    """Return the seconds until a request may be sent."""

    async def enter() -> None:
        await EndpointQuota(root).turn(settings, body).__aenter__()

    begun = time.monotonic()
    asyncio.run(environment().run(enter))
    return time.monotonic() - begun


async def call(
    quota: EndpointQuota,
    settings: ModelConfig,
    body: bytes,
    *,
    usage: Usage | None = None,
    error: Exception | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Make a call that gets a reply, or an error."""
    turn = quota.turn(settings, body)
    with suppress(ApplicationError):
        async with turn:
            quota.note_headers(settings, headers or {})
            turn.usage = usage
            if error:
                raise error
    assert turn.end
    await turn.end


def test_an_endpoint_that_names_and_refuses_nothing_is_not_in_the_store(root: Root) -> None:
    quota = EndpointQuota(root)

    async def ask_and_be_answered() -> None:
        headers = {"content-type": "text/event-stream", "x-request-id": "7"}
        await call(quota, model(), b"one", usage=Usage(prompt_tokens=10), headers=headers)

    asyncio.run(environment().run(ask_and_be_answered))
    assert not (root.path / ".longhaul/store.sqlite3").exists()


def test_a_call_waits_for_the_calls_of_other_workers(root: Root) -> None:
    settings = model(requests_per_minute=60)
    for body in (b"one", b"two"):
        assert wait(root, settings, body) < 0.5
    assert 0.5 < wait(root, settings, b"three") < 5
    # A model of another name has a quota of its own.
    assert wait(root, model(requests_per_minute=60).model_copy(update={"name": "o"}), b"1") < 0.5


def test_a_turn_that_is_far_off_is_left_to_a_later_attempt(root: Root) -> None:
    settings = model(requests_per_minute=1)
    wait(root, settings, b"one")
    with pytest.raises(ApplicationError) as caught:
        wait(root, settings, b"two")
    assert caught.value.type == "Endpoint"
    assert "endpoint: quota of http://here/v1 m (1 requests a minute) is in use; " in str(
        caught.value
    )
    assert re.search(r"the turn of this call comes in (60|61) s", str(caught.value))
    assert caught.value.next_retry_delay
    assert 50 < caught.value.next_retry_delay.total_seconds() < 61


def refused(headers: dict[str, str]) -> ApplicationError:
    refusal = openai.RateLimitError(
        "slow down", response=httpx2.Response(429, request=REQUEST, headers=headers), body=None
    )
    failure = ApplicationError("slow down", type="Endpoint")
    failure.__cause__ = refusal
    return failure


def test_after_a_429_everybody_waits(root: Root) -> None:
    settings, quota = model(tokens_per_minute=1_000_000), EndpointQuota(root)

    async def ask_and_be_refused() -> None:
        used = Usage(prompt_tokens=10, completion_tokens=5)
        await call(quota, settings, b"one", usage=used)
        await call(quota, settings, b"two", error=refused({"retry-after": "90"}))

    asyncio.run(environment().run(ask_and_be_refused))
    with pytest.raises(ApplicationError, match=r"comes in (89|90) s"):
        wait(root, settings, b"three")


def test_a_429_without_a_set_quota_teaches_other_workers_too(root: Root) -> None:
    settings, quota = model(), EndpointQuota(root)

    async def ask_and_be_refused() -> None:
        for number in range(30):
            await call(quota, settings, b"%d" % number)
        await call(quota, settings, b"30", error=refused({"retry-after": "30"}))

    asyncio.run(environment().run(ask_and_be_refused))
    with pytest.raises(ApplicationError, match=r"\(27 requests as learned a minute\) is in use"):
        wait(root, settings, b"four")


def test_limits_in_headers_are_learned_with_the_next_turn(root: Root) -> None:
    settings, quota = model(), EndpointQuota(root)
    headers = {"x-ratelimit-limit-requests": "1", "x-ratelimit-limit-tokens": "5000"}

    async def ask_and_hear() -> None:
        await call(quota, settings, b"one", headers=headers)
        await call(quota, settings, b"two", headers=headers)

    asyncio.run(environment().run(ask_and_hear))
    with pytest.raises(ApplicationError, match="1 requests as learned and 5,000 tokens as learned"):
        wait(root, settings, b"three")


async def make_calls(
    quota: EndpointQuota, settings: ModelConfig, job: int, now: list[int], most: list[int]
) -> int:
    """Make calls of 0.1 s for two seconds; return how many."""
    until, number = time.monotonic() + 2, 0
    while time.monotonic() < until:
        async with quota.turn(settings, b"%d %d" % (job, number)):
            now.append(job)
            most.append(len(now))
            await asyncio.sleep(0.1)
            now.remove(job)
        number += 1
    return number


def test_no_more_requests_are_under_way_than_set_and_each_job_has_its_share(root: Root) -> None:
    settings, now, most = model(requests_at_once=2), list[int](), list[int]()
    RelationalStore(root).run(lambda connection: None)  # Its tables take a second.

    async def work() -> list[int]:
        workers = [EndpointQuota(root), EndpointQuota(root)]
        calls = [make_calls(workers[job % 2], settings, job, now, most) for job in range(6)]
        return await asyncio.gather(*calls)

    done = asyncio.run(environment().run(work))
    assert max(most) == 2
    assert max(done) <= 2 * min(done) + 1
    assert sum(done) >= 12


@pytest.mark.parametrize("moment", ["asking", "waiting", "under way", "leaving"])
def test_a_call_cancelled_at_any_moment_leaves_its_place(root: Root, moment: str) -> None:
    settings, quota = model(requests_at_once=1), EndpointQuota(root)
    store = RelationalStore(root)
    store.run(lambda connection: None)

    async def hold() -> None:
        async with quota.turn(settings, b"held"):
            await asyncio.sleep(60)

    def keep_busy(connection: Connection) -> None:
        connection.execute(PLACES.delete().where(PLACES.c.holder == ""))
        time.sleep(1)

    async def cancel_and_call() -> float:
        tasks = [asyncio.create_task(hold()) for _ in range(1 + (moment == "waiting"))]
        if moment != "asking":
            await asyncio.sleep(1)
        if moment in ("asking", "leaving"):
            tasks.append(asyncio.create_task(asyncio.to_thread(store.run, keep_busy)))
        calls = tasks[: 1 + (moment == "waiting")]
        for _ in range(2):
            # The second comes while the first is dealt with.
            await asyncio.sleep(0.3)
            for task in reversed(calls):
                task.cancel()
        await asyncio.wait(tasks)
        begun = time.monotonic()
        async with quota.turn(settings, b"next"):
            return time.monotonic() - begun

    assert asyncio.run(environment().run(cancel_and_call)) < 3


def test_without_the_store_no_call_waits_and_places_are_left_once_it_is_back(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_quota, "STORE_SECONDS", 0.3)
    monkeypatch.setattr(endpoint_quota, "RENEW_SECONDS", 0.2)
    settings, quota = model(requests_at_once=1), EndpointQuota(root)
    store = RelationalStore(root)
    store.run(lambda connection: None)
    is_away, is_back = threading.Event(), threading.Event()

    def lock(connection: Connection) -> None:
        connection.execute(PLACES.delete().where(PLACES.c.holder == ""))
        is_away.set()
        is_back.wait(30)

    async def call_without_store() -> float:
        async with quota.turn(settings, b"held"):
            lost = asyncio.create_task(asyncio.to_thread(store.run, lock))
            await asyncio.to_thread(is_away.wait)
        begun = time.monotonic()
        await asyncio.gather(*(call(quota, settings, b"%d" % number) for number in range(20)))
        without = time.monotonic() - begun
        is_back.set()
        await lost
        await asyncio.sleep(1)
        assert store.run(lambda connection: connection.execute(PLACES.select()).first()) is None
        async with quota.turn(settings, b"one"):
            # The endpoint has its limit again.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(quota, settings, b"two"), 0.5)
        return without

    assert asyncio.run(environment().run(call_without_store)) < 3


def test_a_call_that_waits_long_for_a_place_is_left_to_a_later_attempt(root: Root) -> None:
    settings = model(requests_at_once=1)

    def take_places(connection: Connection) -> None:
        key = TurnKey("http://here/v1 m OPENAI_API_KEY", "job 1", "call")
        turns = EndpointTurns(connection, key.endpoint, Quota(None, None, 1))
        turns.ask(key, 100, "another worker's")
        turns.learned.note_place(100)
        for number in range(2, 6):
            turns.ask(replace(key, job=f"job {number}", call=f"call {number}"), 100, "waits")
        turns.save()

    RelationalStore(root).run(take_places)
    with pytest.raises(ApplicationError) as caught:
        wait(root, settings, b"mine")
    assert "(1 request at once) is in use; the turn of this call comes in about 500 s" in str(
        caught.value
    )
    assert caught.value.next_retry_delay == timedelta(seconds=45)
