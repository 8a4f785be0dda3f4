"""The process's providers of tracers and meters, which send by OTLP over HTTP in the background."""

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
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import NoOpTracer, Span, StatusCode, Tracer
from temporalio.contrib.opentelemetry import ReplaySafeTracerProvider, create_tracer_provider
from temporalio.exceptions import ApplicationError

from engine.otel import optional_export

SCOPE = "longhaul"


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
    def __init__(self) -> None:
        generator = create_tracer_provider(shutdown_on_exit=False).id_generator()
        self._provider = TracerProvider(
            resource=_otel_service_resource(), id_generator=generator, shutdown_on_exit=False
        )
        self._processor = (
            BatchSpanProcessor(OTLPSpanExporter()) if optional_export.exports_traces() else None
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
        if optional_export.exports_metrics()
        else []
    )
    return MeterProvider(readers, resource=_otel_service_resource(), shutdown_on_exit=False)


def _otel_service_resource() -> Resource:
    """Return the service's attributes from the environment; its default name is ours."""
    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        return resource.merge(Resource({"service.name": SCOPE}))
    return resource


def failure_kind(error: BaseException) -> str:
    """Return the endpoint's HTTP status, our failure type, or the exception's class."""
    # Read the attribute of the model client's errors: importing their classes would load the whole
    # client.
    if isinstance(status := getattr(error, "status_code", None), int):
        return str(status)
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def set_span_failure_kind(span: Span, kind: str) -> None:
    """Mark the span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
