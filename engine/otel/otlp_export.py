"""Exports spans and metrics by OTLP over HTTP in the background; no step waits for it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import NoOpTracer, SpanKind, Tracer
from temporalio.client import Plugin
from temporalio.contrib.opentelemetry import (
    MetricsExporter,
    OpenTelemetryPlugin,
    ReplaySafeTracerProvider,
)
from temporalio.contrib.opentelemetry._id_generator import TemporalIdGenerator
from temporalio.plugin import SimplePlugin
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from engine import logs
from engine.otel import export_settings

SCOPE = "longhaul"
UPDATES = 100_000
"""Metric updates of Temporal's SDK that are buffered between two exports, a second apart."""
LAST_SECONDS = 3.0
"""Seconds that an ending process tries to send outstanding data."""


class OwnTracerProvider(ReplaySafeTracerProvider):
    """Provides a real tracer only to our own code.

    Libraries that trace themselves, such as the MCP client, copy error messages from other systems
    into their spans. With a no-op tracer they still propagate our trace.
    """

    def get_tracer(self, instrumenting_module_name: str, *rest: Any, **more: Any) -> Tracer:
        if instrumenting_module_name != SCOPE:
            return NoOpTracer()
        return super().get_tracer(instrumenting_module_name, *rest, **more)


class SpanExport:
    """Exports spans from this process."""

    def __init__(self) -> None:
        generator = TemporalIdGenerator(RandomIdGenerator())
        self._provider = TracerProvider(
            resource=_otel_service_resource(), id_generator=generator, shutdown_on_exit=False
        )
        self._processor = (
            BatchSpanProcessor(OTLPSpanExporter()) if export_settings.exports_traces() else None
        )
        if self._processor:
            self._provider.add_span_processor(self._processor)
        self.tracers = OwnTracerProvider(self._provider, generator)
        # Temporal's plugin only uses the process's global provider.
        trace.set_tracer_provider(self.tracers)

    @property
    def sampler(self) -> Sampler:
        return self._provider.sampler

    @property
    def resource(self) -> Resource:
        return self._provider.resource

    def send(self, span: ReadableSpan) -> None:
        """Send a span that was built without a tracer."""
        if self._processor:
            self._processor.on_end(span)

    def shutdown(self) -> None:
        self._provider.shutdown()


@cache
def span_export() -> SpanExport:
    return SpanExport()


@cache
def otel_tracer() -> Tracer:
    return span_export().tracers.get_tracer(SCOPE)


@cache
def meter_provider() -> MeterProvider:
    """Return the provider of our metrics; nothing is sent if metrics are not exported."""
    readers = (
        [PeriodicExportingMetricReader(OTLPMetricExporter())]
        if export_settings.exports_metrics()
        else []
    )
    return MeterProvider(readers, resource=_otel_service_resource(), shutdown_on_exit=False)


def otlp_export_plugins() -> list[Plugin]:
    """Return Temporal's plugin, which propagates the trace, and the interceptor with our spans.

    Temporal's own spans are disabled, since they contain failure messages.
    """
    # Import late: the interceptor imports this module.
    from engine.otel.interceptor import TracingInterceptor  # noqa: PLC0415

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


def _otel_service_resource() -> Resource:
    """Return the service's attributes from the environment; its default name is ours."""
    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        return resource.merge(Resource({"service.name": SCOPE}))
    return resource
