"""A span for each attempt of an activity, and for each model call in it, with its metrics.

Those of model calls follow OpenTelemetry's conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from opentelemetry.metrics import Histogram
from opentelemetry.trace import Span, SpanKind
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.runtime.tracing import WATCHER, ModelRequest, ReplyCallback, TracedReply
from engine.otel import otlp_providers
from protocol.requests import ToolReply

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
    with otlp_providers.otel_tracer().start_as_current_span(
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
            common["error.type"] = otlp_providers.failure_kind(error)
            otlp_providers.set_span_failure_kind(span, otlp_providers.failure_kind(error))
            raise
        finally:
            _model_call_duration_histogram().record(time.perf_counter() - began, common)


@cache
def _model_call_token_histogram() -> Histogram:
    return (
        otlp_providers.meter_provider()
        .get_meter(otlp_providers.SCOPE)
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
        otlp_providers.meter_provider()
        .get_meter(otlp_providers.SCOPE)
        .create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
    )


NOT_DONE = "refused"
FAILED = "tool_error"


class StepSpans(ActivityInboundInterceptor):
    """Runs an activity within its own span."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        place: dict[str, str | int] = {"longhaul.job": info.workflow_id or ""}
        with otlp_providers.otel_tracer().start_as_current_span(
            info.activity_type,
            attributes={**place, "longhaul.attempt": info.attempt},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            WATCHER.set(StepSpanWatcher(span, place))
            try:
                result = await self.next.execute_activity(input)
            except BaseException as error:
                otlp_providers.set_span_failure_kind(span, otlp_providers.failure_kind(error))
                raise
            if isinstance(result, ToolReply) and not result.ok and not result.asks:
                otlp_providers.set_span_failure_kind(span, NOT_DONE if result.guard else FAILED)
            return result


class StepSpanWatcher:
    """Watches one attempt of an activity; see `activities.runtime.tracing`."""

    def __init__(self, span: Span, place: dict[str, str | int]) -> None:
        self._span = span
        self._place = place

    def note_position(self, agent: str, phase: int, step: int) -> None:
        self._place["longhaul.agent"] = agent
        self._place["longhaul.phase"] = phase
        self._place["longhaul.step"] = step
        self._span.set_attributes(self._place)

    def tool(self, name: str, call: str) -> None:
        self._span.update_name(f"execute_tool {name}")
        self._span.set_attributes(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": call,
                "gen_ai.tool.type": "function",
            }
        )

    def chat(self, request: ModelRequest) -> AbstractContextManager[ReplyCallback]:
        return model_call_span(request, self._place)
