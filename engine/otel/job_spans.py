"""The span of a whole job, from its start to its end, over all its runs and workers.

The worker that ends the job sends the span, since no tracer could keep it open that long. So its
ids are derived from the job's first run, which is the same in every run and replay. Start time and
parent are passed on when the job continues as new.
"""

import asyncio
from typing import Any, NoReturn
from uuid import UUID

from opentelemetry import context, trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from temporalio import worker, workflow
from temporalio.converter import PayloadConverter
from temporalio.exceptions import is_cancelled_exception

from engine.otel.otlp_providers import SCOPE, failure_kind, span_export

HEADER = "longhaul-trace"
"""Header of a continued run: start in nanoseconds since 1970, and the id of the parent span."""
OPERATIONS = {"Job": "invoke_agent", "Project": "invoke_workflow"}
_LOW = 2**64 - 1


class JobSpans(worker.WorkflowInboundInterceptor):
    """Puts every step of a job under the job's span."""

    def init(self, outbound: worker.WorkflowOutboundInterceptor) -> None:
        super().init(_TraceForwarder(outbound, self))

    async def execute_workflow(self, input: worker.ExecuteWorkflowInput) -> Any:
        above = trace.get_current_span().get_span_context()
        if header := input.headers.get(HEADER):
            self.started_ns, self.parent = PayloadConverter.default.from_payload(header)
            self.span = above
        else:
            started = workflow.info().start_time.timestamp()
            self.started_ns, self.parent = int(started * 1e6) * 1000, above.span_id
            self.span = _job_span_context(above)
        # Not detached: the context belongs to this workflow's task and the tasks it creates.
        context.attach(trace.set_span_in_context(trace.NonRecordingSpan(self.span)))
        try:
            result = await super().execute_workflow(input)
        except asyncio.CancelledError:
            self._send_span(input, "cancelled")
            raise
        except Exception as error:
            if is_cancelled_exception(error):
                self._send_span(input, "cancelled")
            elif workflow.is_failure_exception(error):
                self._send_span(input, "failed", failure_kind(error))
            raise
        status = result.get("status") if isinstance(result, dict) else None
        self._send_span(input, str(status or "completed"))
        return result

    def _send_span(self, input: worker.ExecuteWorkflowInput, status: str, error: str = "") -> None:
        """Send the span, unless this is a replay; an eviction also counts as one."""
        if workflow.unsafe.is_replaying_history_events() or not self.span.trace_flags.sampled:
            return
        info = workflow.info()
        attributes = {"longhaul.job": info.workflow_id, "longhaul.status": status}
        name = operation = OPERATIONS.get(info.workflow_type, "")
        if operation:
            attributes["gen_ai.operation.name"] = operation
        # The input of a job that did not begin is unchecked.
        if not error and (agent := _job_span_agent_name(input)):
            attributes["gen_ai.agent.name"] = attributes["longhaul.agent"] = agent
            name += f" {agent}"
        if error:
            attributes["error.type"] = error
        out = span_export()
        span, parent = self.span, self.parent
        out.send(
            ReadableSpan(
                name or info.workflow_type,
                context=span,
                parent=trace.SpanContext(span.trace_id, parent, is_remote=True) if parent else None,
                resource=out.resource,
                attributes=attributes,
                status=trace.Status(trace.StatusCode.ERROR if error else trace.StatusCode.UNSET),
                start_time=self.started_ns,
                end_time=workflow.time_ns(),
                instrumentation_scope=InstrumentationScope(SCOPE),
            )
        )


class _TraceForwarder(worker.WorkflowOutboundInterceptor):
    def __init__(self, next: worker.WorkflowOutboundInterceptor, job: JobSpans) -> None:
        super().__init__(next)
        self._job = job

    def continue_as_new(self, input: worker.ContinueAsNewInput) -> NoReturn:
        header = PayloadConverter.default.to_payload([self._job.started_ns, self._job.parent])
        input.headers = {**input.headers, HEADER: header}
        super().continue_as_new(input)


def _job_span_context(above: trace.SpanContext) -> trace.SpanContext:
    """Return the context of the job's span: in the trace of its starter, else in a new trace."""
    run = UUID(workflow.info().first_execution_run_id).int
    trace_id = above.trace_id if above.is_valid else run
    around = trace.set_span_in_context(trace.NonRecordingSpan(above)) if above.is_valid else None
    sampling = span_export().sampler.should_sample(around, trace_id, workflow.info().workflow_type)
    is_sampled = sampling.decision is Decision.RECORD_AND_SAMPLE
    return trace.SpanContext(
        trace_id, run & _LOW, is_remote=True, trace_flags=trace.TraceFlags(is_sampled),
        trace_state=above.trace_state,
    )  # fmt: skip


def _job_span_agent_name(input: worker.ExecuteWorkflowInput) -> str:
    """Return the agent that the input of a start or a continued run names; empty if none."""
    start = input.args[0] if input.args else None
    agent = start.get("agent") if isinstance(start, dict) else None
    return agent if isinstance(agent, str) else ""
