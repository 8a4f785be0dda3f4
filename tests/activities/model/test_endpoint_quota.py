"""One quota of an endpoint for all jobs: who waits, for how long, and what a 429 changes."""

import asyncio
import time
from datetime import timedelta

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


def test_without_a_quota_nothing_is_stored(root: Root) -> None:
    assert wait(root, model(), b"one") < 0.5
    assert not (root.path / ".longhaul/store.sqlite3").exists()


def test_a_call_waits_for_the_calls_of_other_workers(root: Root) -> None:
    settings = model(requests_per_minute=60)
    wait(root, settings, b"one")
    assert 0.5 < wait(root, settings, b"two") < 5
    # A model of another name has a quota of its own.
    assert wait(root, model(requests_per_minute=60).model_copy(update={"name": "o"}), b"1") < 0.5


def test_a_turn_that_is_far_off_is_left_to_a_later_attempt(root: Root) -> None:
    settings = model(requests_per_minute=1)
    wait(root, settings, b"one")
    with pytest.raises(ApplicationError) as caught:
        wait(root, settings, b"two")
    assert caught.value.type == "Endpoint"
    assert "(1 requests a minute) is in use: the turn of this call comes in 6" in str(caught.value)
    assert caught.value.next_retry_delay
    assert 55 < caught.value.next_retry_delay.total_seconds() < 61


def test_after_a_429_everybody_waits(root: Root) -> None:
    settings, quota = model(tokens_per_minute=1_000_000), EndpointQuota(root)
    refusal = openai.RateLimitError(
        "slow down", response=httpx2.Response(429, request=REQUEST), body=None
    )
    failure = ApplicationError("slow down", type="Endpoint", next_retry_delay=timedelta(seconds=90))
    failure.__cause__ = refusal

    async def ask_and_be_refused() -> None:
        await quota.wait_for_turn(settings, b"one")
        await quota.note_reply(settings, b"one", Usage(prompt_tokens=10, completion_tokens=5))
        await quota.wait_for_turn(settings, b"two")
        await quota.note_failure(settings, b"two", failure)

    asyncio.run(environment().run(ask_and_be_refused))
    with pytest.raises(ApplicationError, match=r"comes in (89|90) s"):
        wait(root, settings, b"three")
