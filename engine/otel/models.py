"""Model calls by OpenTelemetry's conventions for generative AI: a span and two figures each.

https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from opentelemetry.metrics import Histogram
from opentelemetry.trace import SpanKind

from engine.otel.failing import kind_of, mark
from engine.otel.pipeline import SCOPE, meters, tracer

if TYPE_CHECKING:
    from activities.model.stream import Streamed
    from config.schema import ModelConfig

REHEARSAL = "rehearsal"
PROVIDER = "openai"
"""Whose protocol it is; who answers at the address may be another."""
TOKENS = [4**power for power in range(14)]
"""Bounds of the figure's buckets, as the conventions have them; so are the next."""
SECONDS = [0.01 * 2**power for power in range(14)]
LONGEST_NAME = 200


@contextmanager
def chat(
    model: ModelConfig, host: str, port: int | None, place: Mapping[str, str | int]
) -> Iterator[Callable[[Streamed], None]]:
    """Around one request; what is yielded takes the reply."""
    common: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": REHEARSAL if model.name == REHEARSAL else PROVIDER,
        "gen_ai.request.model": model.name,
        "server.address": host,
    }
    if port:
        common["server.port"] = port
    asked: dict[str, str | int | float] = {
        **place,
        **common,
        "gen_ai.request.max_tokens": model.max_output_tokens,
        "gen_ai.request.stream": model.stream,
    }
    if model.temperature is not None:
        asked["gen_ai.request.temperature"] = model.temperature
    began = time.perf_counter()
    with tracer().start_as_current_span(
        f"chat {model.name}",
        kind=SpanKind.CLIENT,
        attributes=asked,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:

        def heard(reply: Streamed) -> None:
            usage = reply.usage
            common["gen_ai.response.model"] = (reply.answered_by or model.name)[:LONGEST_NAME]
            span.set_attributes(
                {
                    "gen_ai.response.model": common["gen_ai.response.model"],
                    "gen_ai.response.finish_reasons": (reply.finish[:40],),
                    "gen_ai.usage.input_tokens": usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": usage.completion_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                }
            )
            for kind, tokens in (
                ("input", usage.prompt_tokens),
                ("output", usage.completion_tokens),
            ):
                _tokens().record(tokens, {**common, "gen_ai.token.type": kind})

        try:
            yield heard
        except BaseException as error:
            common["error.type"] = kind_of(error)
            mark(span, kind_of(error))
            raise
        finally:
            _duration().record(time.perf_counter() - began, common)


@cache
def _tokens() -> Histogram:
    return (
        meters()
        .get_meter(SCOPE)
        .create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
    )


@cache
def _duration() -> Histogram:
    return (
        meters()
        .get_meter(SCOPE)
        .create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
    )
