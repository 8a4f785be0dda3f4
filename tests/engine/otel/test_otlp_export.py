"""What the process's provider gives to others, and what it reports about itself."""

from opentelemetry import trace
from opentelemetry.propagate import inject

from tests.engine.otel.conftest import Exported


def test_libraries_make_no_spans_but_hand_ours_on(exported: Exported) -> None:
    attributes = {"longhaul.job": "handing-on"}
    ours = exported.pipeline.otel_tracer().start_as_current_span("ours", attributes=attributes)
    with ours as span, trace.get_tracer("mcp-python-sdk").start_as_current_span("theirs") as theirs:
        theirs.set_attribute("longhaul.job", "handing-on")
        carrier: dict[str, str] = {}
        inject(carrier)
    assert f"{span.get_span_context().span_id:016x}" in carrier["traceparent"]
    assert [exported_span.name for exported_span in exported.spans("handing-on")] == ["ours"]


def test_the_service_has_our_name_unless_it_is_given_one(exported: Exported) -> None:
    assert exported.pipeline.span_export().resource.attributes["service.name"] == "longhaul"
