"""A receiver for what this process exports; its tests take the plugins from here."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest

from engine.otel import optional_export
from tests.engine.otel.receiver import Receiver, Span


@dataclass
class Exported:
    """The spans of this process."""

    pipeline: ModuleType
    receiver: Receiver

    def spans(self, job: str) -> list[Span]:
        """Return all spans of a job so far."""
        self.pipeline.span_export().tracers.force_flush()
        return [each for each in self.receiver.spans() if each.attributes["longhaul.job"] == job]


@pytest.fixture(scope="session")
def exported() -> Iterator[Exported]:
    with Receiver() as receiver, pytest.MonkeyPatch.context() as environment_patch:
        environment_patch.setenv(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{receiver.address}/v1/traces"
        )
        # A batch that exceeds the time-out is dropped, and a busy machine may take 10 seconds.
        environment_patch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "120")
        pipeline = optional_export.load_otlp_export()
        # OpenTelemetry allows one provider for each process; it is made here.
        assert not pipeline.span_export.cache_info().currsize, "another test has made it"
        pipeline.span_export()
        environment_patch.undo()
        yield Exported(pipeline, receiver)
