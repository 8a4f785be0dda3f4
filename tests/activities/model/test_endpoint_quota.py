"""One quota of an endpoint for all jobs: who waits, for how long, and what a 429 changes."""

import asyncio
import re
import time

import httpx2
import openai
import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.model.endpoint_quota import EndpointQuota
from config.schema.model_settings import ModelConfig
from protocol.usage import Usage
from tests.activities.standing import environment

REQUEST = httpx2.Request("POST", "http://here/v1/chat/completions")


def model(**settings: int) -> ModelConfig:
    return ModelConfig.model_validate({"name": "m", "base_url": "http://here/v1", **settings})


def wait(root: Root, settings: ModelConfig, body: bytes) -> float:
    """Return the seconds until a request may be sent."""
    begun = time.monotonic()
    asyncio.run(environment().run(EndpointQuota(root).wait_for_turn, settings, body))
    return time.monotonic() - begun


def test_an_endpoint_that_names_and_refuses_nothing_is_not_in_the_store(root: Root) -> None:
    quota = EndpointQuota(root)

    async def ask_and_be_answered() -> None:
        await quota.wait_for_turn(model(), b"one")
        quota.note_headers(model(), {"content-type": "text/event-stream", "x-request-id": "7"})
        await quota.note_reply(model(), b"one", Usage(prompt_tokens=10))

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
    assert re.search(r"the turn of this call comes in (59|60) s", str(caught.value))
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
        await quota.wait_for_turn(settings, b"one")
        await quota.note_reply(settings, b"one", Usage(prompt_tokens=10, completion_tokens=5))
        await quota.wait_for_turn(settings, b"two")
        await quota.note_failure(settings, b"two", refused({"retry-after": "90"}))

    asyncio.run(environment().run(ask_and_be_refused))
    with pytest.raises(ApplicationError, match=r"comes in (89|90) s"):
        wait(root, settings, b"three")


def test_a_429_without_a_set_quota_teaches_other_workers_too(root: Root) -> None:
    settings, quota = model(), EndpointQuota(root)

    async def ask_and_be_refused() -> None:
        for number in range(31):
            await quota.wait_for_turn(settings, b"%d" % number)
        await quota.note_failure(settings, b"30", refused({"retry-after": "30"}))

    asyncio.run(environment().run(ask_and_be_refused))
    with pytest.raises(ApplicationError, match=r"\(27 requests as learned a minute\) is in use"):
        wait(root, settings, b"four")


def test_limits_in_headers_are_learned_with_the_next_turn(root: Root) -> None:
    settings, quota = model(), EndpointQuota(root)
    headers = {"x-ratelimit-limit-requests": "1", "x-ratelimit-limit-tokens": "5000"}

    async def ask_and_hear() -> None:
        await quota.wait_for_turn(settings, b"one")
        quota.note_headers(settings, headers)
        await quota.wait_for_turn(settings, b"two")

    asyncio.run(environment().run(ask_and_hear))
    with pytest.raises(ApplicationError, match="1 requests as learned and 5,000 tokens as learned"):
        wait(root, settings, b"three")
