"""A span for each attempt of an activity, with attributes of tools and the job."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from opentelemetry.trace import Span
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.runtime.tracing import WATCHER, ModelRequest, ReplyCallback
from engine.otel import model_spans
from engine.otel.failure_kinds import failure_kind, set_span_failure_kind
from engine.otel.otlp_providers import otel_tracer
from protocol.requests import ToolReply

NOT_DONE = "refused"
FAILED = "tool_error"


class StepSpans(ActivityInboundInterceptor):
    """Runs an activity within its own span."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        place: dict[str, str | int] = {"longhaul.job": info.workflow_id or ""}
        with otel_tracer().start_as_current_span(
            info.activity_type,
            attributes={**place, "longhaul.attempt": info.attempt},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            WATCHER.set(StepSpanWatcher(span, place))
            try:
                result = await self.next.execute_activity(input)
            except BaseException as error:
                set_span_failure_kind(span, failure_kind(error))
                raise
            if isinstance(result, ToolReply) and not result.ok and not result.asks:
                set_span_failure_kind(span, NOT_DONE if result.guard else FAILED)
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
        return model_spans.model_call_span(request, self._place)
