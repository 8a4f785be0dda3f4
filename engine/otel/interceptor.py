"""What a worker's workflows and activities are watched by."""

from __future__ import annotations

from temporalio.worker import (
    ActivityInboundInterceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from temporalio.worker import Interceptor as WorkerInterceptor

from engine.otel.job_spans import JobSpans
from engine.otel.step_spans import StepSpans


class TracingInterceptor(WorkerInterceptor):
    """Stands within Temporal's own, which puts the trace into place."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return StepSpans(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return JobSpans
