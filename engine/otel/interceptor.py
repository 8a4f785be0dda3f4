"""Connects our spans to a worker's workflows and activities."""

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
    """Adds spans of jobs and steps; Temporal's own interceptor has set the trace before it runs."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return StepSpans(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return JobSpans
