"""What a process that exports traces and metrics adds to its client, workers and runtime."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache

from opentelemetry.trace import SpanKind
from temporalio.client import Plugin
from temporalio.contrib.opentelemetry import MetricsExporter, OpenTelemetryPlugin
from temporalio.plugin import SimplePlugin
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.worker import (
    ActivityInboundInterceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from temporalio.worker import Interceptor as WorkerInterceptor

from engine import logs
from engine.otel.job_spans import JobSpans
from engine.otel.otlp_providers import meter_provider, otel_tracer, span_export
from engine.otel.step_spans import StepSpans

UPDATES = 100_000
"""Metric updates of Temporal's SDK that are buffered between two exports, a second apart."""
LAST_SECONDS = 3.0
"""Seconds that an ending process tries to send outstanding data."""


class TracingInterceptor(WorkerInterceptor):
    """Adds spans of jobs and steps; Temporal's own interceptor has set the trace before it runs."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return StepSpans(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return JobSpans


def otlp_export_plugins() -> list[Plugin]:
    """Return Temporal's plugin, which propagates the trace, and the interceptor with our spans.

    Temporal's own spans are disabled, since they contain failure messages.
    """
    span_export()
    return [OpenTelemetryPlugin(), SimplePlugin("longhaul", interceptors=[TracingInterceptor()])]


@contextmanager
def start_span(kind: str, job: str) -> Iterator[None]:
    with otel_tracer().start_as_current_span(
        f"start {kind}",
        kind=SpanKind.PRODUCER,
        attributes={"longhaul.job": job},
        record_exception=False,
        set_status_on_exception=False,
    ):
        yield


@asynccontextmanager
async def otlp_metrics_runtime() -> AsyncIterator[Runtime]:
    """Yield a runtime whose metrics, including ours, are exported to OpenTelemetry."""
    buffer = MetricBuffer(UPDATES)
    runtime = Runtime(telemetry=TelemetryConfig(logging=logs.NATIVE, metrics=buffer))
    async with MetricsExporter(buffer, meter_provider()):
        yield runtime


@cache
def flush_exports() -> None:
    """Send outstanding data once; give up after a few seconds."""

    def shut_down_providers() -> None:
        if span_export.cache_info().currsize:
            span_export().shutdown()
        if meter_provider.cache_info().currsize:
            meter_provider().shutdown()

    sending = threading.Thread(target=shut_down_providers, daemon=True)
    sending.start()
    sending.join(LAST_SECONDS)
