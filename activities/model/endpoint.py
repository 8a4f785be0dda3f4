"""Connect to the endpoint of a job's model calls."""

import os
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from zlib import crc32

import httpx2
import openai
from openai import AsyncOpenAI
from temporalio import activity

from activities.model.endpoint_errors import SET_KEY
from activities.model.providers import REHEARSAL
from activities.redaction.credentials import api_key_credential
from activities.runtime.activity_info import activity_job_id
from activities.runtime.failures import typed_failure
from config.schema.model_settings import ModelConfig, check_endpoint_address
from rehearsal import RehearsalTransport, rehearse

CONNECTIONS = httpx2.Limits(
    max_connections=None, max_keepalive_connections=None, keepalive_expiry=60
)
"""Connections are enough for a worker's concurrent calls, and stay open over a step of a minute.
The client's defaults, 100 and 5 s, would mean a new handshake for most calls of a busy worker.
"""

POOLS = 64
"""Number of connection pools per endpoint. The client scans all connections of a pool at each
request and its end (httpcore2's `_assign_requests_to_connections`): with hundreds in one pool that
was a third of a busy worker's time.
"""

Connect = Callable[[ModelConfig], AsyncOpenAI]


def connect_endpoint(model: ModelConfig) -> AsyncOpenAI:
    """Return a client without retries, which are Temporal's; the key is read at every call."""
    if model.name == REHEARSAL:
        return _connect_rehearsal_endpoint()
    base_url = model.base_url or os.environ.get("OPENAI_BASE_URL") or None
    if base_url is not None:
        _check_endpoint_address(base_url, "model.base_url" if model.base_url else "OPENAI_BASE_URL")
    try:
        key = api_key_credential(model.api_key_variable)
    except ValueError as error:
        raise typed_failure(
            "Credentials",
            f"The key in {model.api_key_variable} {error}.",
            mend=SET_KEY,
        ) from None
    if not key and base_url is None:
        raise typed_failure(
            "Credentials",
            f"The environment variable {model.api_key_variable} is not set in the worker.",
            mend=SET_KEY,
        )
    # The calls of a job share a pool, so that each finds the previous connection.
    pool = crc32(activity_job_id().encode()) % POOLS if activity.in_activity() else 0
    return _endpoint_client(base_url, key or "none", float(model.timeout_seconds), pool)


def _check_endpoint_address(address: str, source: str) -> None:
    try:
        check_endpoint_address(address)
    except ValueError as error:
        raise typed_failure(
            "Credentials",
            f"The address in {source} cannot be used: {error}.",
            mend="Set OPENAI_BASE_URL in the worker's environment and restart the worker",
        ) from None


@lru_cache(maxsize=1)
def _connect_rehearsal_endpoint() -> AsyncOpenAI:
    transport = RehearsalTransport(rehearse)
    return AsyncOpenAI(
        base_url="http://rehearsal/v1",
        api_key=REHEARSAL,
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )


@lru_cache(maxsize=8 * POOLS)
def _endpoint_client(base_url: str | None, key: str, seconds: float, _: int) -> AsyncOpenAI:
    timeout = httpx2.Timeout(seconds, connect=10)
    http = openai.DefaultAsyncHttpxClient(
        limits=CONNECTIONS, timeout=timeout, verify=_endpoint_certificates()
    )
    where = endpoint_address_arguments(base_url)
    kind = openai.AsyncAzureOpenAI if "api_version" in where else AsyncOpenAI
    return kind(**where, api_key=key, max_retries=0, timeout=timeout, http_client=http)


def endpoint_address_arguments(base_url: str | None) -> dict[str, Any]:
    """Return the address as the client's arguments, with the query behind the path.

    An api-version marks an Azure deployment, which takes the key in another header.
    """
    if base_url is None or "?" not in base_url:
        return {"base_url": base_url}
    url = httpx2.URL(base_url)
    query = dict(url.params)
    version = query.pop("api-version", None)
    where = {"base_url": str(url.copy_with(query=None)), "default_query": query}
    return {**where, "api_version": version} if version else where


@lru_cache(maxsize=1)
def _endpoint_certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()
