"""Spans and metrics of model calls by OpenTelemetry's conventions for generative AI.

https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from opentelemetry.metrics import Histogram
from opentelemetry.trace import SpanKind

from activities.runtime.tracing import ModelRequest, ReplyCallback, TracedReply
from engine.otel.failure_kinds import failure_kind, set_span_failure_kind
from engine.otel.otlp_providers import SCOPE, meter_provider, otel_tracer

REHEARSAL = "rehearsal"
PROVIDER = "openai"
"""The protocol's provider; the endpoint may belong to another."""
TOKENS = [4**power for power in range(14)]
"""Histogram bounds for tokens and, below, for seconds, as the conventions recommend."""
SECONDS = [0.01 * 2**power for power in range(14)]
MAX_NAME_CHARACTERS = 200


@contextmanager
def model_call_span(
    request: ModelRequest, place: Mapping[str, str | int]
) -> Iterator[ReplyCallback]:
    """Trace one request; call the yielded function with the reply."""
    common: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": REHEARSAL if request.model == REHEARSAL else PROVIDER,
        "gen_ai.request.model": request.model,
        "server.address": request.host,
    }
    if request.port:
        common["server.port"] = request.port
    attributes: dict[str, str | int | float] = {
        **place,
        **common,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.stream": request.stream,
    }
    if request.temperature is not None:
        attributes["gen_ai.request.temperature"] = request.temperature
    began = time.perf_counter()
    with otel_tracer().start_as_current_span(
        f"chat {request.model}",
        kind=SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:

        def record_reply(reply: TracedReply) -> None:
            usage = reply.usage
            common["gen_ai.response.model"] = (reply.answered_by or request.model)[
                :MAX_NAME_CHARACTERS
            ]
            span.set_attributes(
                {
                    "gen_ai.response.model": common["gen_ai.response.model"],
                    "gen_ai.response.finish_reasons": (reply.finish[:40],),
                    "gen_ai.usage.input_tokens": usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": usage.completion_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                    "gen_ai.usage.cache_creation.input_tokens": usage.written_tokens,
                }
            )
            for kind, tokens in (
                ("input", usage.prompt_tokens),
                ("output", usage.completion_tokens),
            ):
                _model_call_token_histogram().record(tokens, {**common, "gen_ai.token.type": kind})

        try:
            yield record_reply
        except BaseException as error:
            common["error.type"] = failure_kind(error)
            set_span_failure_kind(span, failure_kind(error))
            raise
        finally:
            _model_call_duration_histogram().record(time.perf_counter() - began, common)


@cache
def _model_call_token_histogram() -> Histogram:
    return (
        meter_provider()
        .get_meter(SCOPE)
        .create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
    )


@cache
def _model_call_duration_histogram() -> Histogram:
    return (
        meter_provider()
        .get_meter(SCOPE)
        .create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
    )
