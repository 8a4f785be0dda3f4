"""Traces that a job records for later jobs to learn from: pure functions of its record.

Traces wait in the durable record and are stored in batches, so that a refusal costs no activity of
its own.
"""

from collections.abc import Sequence

from protocol.job_record import JobRecord
from protocol.project_record import ProjectRecord
from protocol.project_units import EndedJob, RunningJob
from protocol.short_text import one_line
from protocol.trace_requests import MOST_CHARACTERS, MOST_KEPT, Source, Trace, TraceType

FLUSHED_AT = 20
"""Number of traces that are flushed at once, at any point of the phase."""


def note_trace(
    job: JobRecord,
    type: TraceType,
    source: Source,
    by: str,
    what_happened: str,
    *,
    what_was_correct: str = "",
    why: str = "",
    tool: str = "",
    path: str | None = None,
    trial: bool = False,
) -> None:
    """Add a trace to the job's record.

    Args:
        job: The record at the step where it happened.
        type: The kind of trace.
        source: The kind of thing that decided.
        by: Name of the guard, hook, gate or pattern that decided.
        what_happened: One or two sentences.
        what_was_correct: What should have been done, or is to be done now.
        why: The reason given.
        tool: The tool that was called, if any.
        path: The file that the call named, if any.
        trial: Whether a guard on trial would have refused what was let through.
    """
    current = job.state.phase.current
    job.trace_count += 1
    trace = Trace(
        key=f"{job.run_id}.{job.trace_count}",
        type=type,
        source=source,
        guard=by,
        tool=tool,
        path=one_line(path or "", MOST_CHARACTERS),
        stage="experiment" if trial else "",
        what_happened=one_line(what_happened, MOST_CHARACTERS),
        what_was_correct=one_line(what_was_correct, MOST_CHARACTERS),
        why=one_line(why, MOST_CHARACTERS),
        step=job.step,
        phase=job.state.phase.number,
        todo=one_line(current.content, MOST_CHARACTERS) if current else "",
        commit=job.commit,
        at=int(job.clock),
    )
    job.traces = [*job.traces, trace]


def note_handoff_trace(
    project: ProjectRecord, run: RunningJob, ended: EndedJob, why: Sequence[str], run_id: str
) -> None:
    """Add a trace of the outcome of a handoff to the project's record.

    Args:
        why: Why the work was not accepted; empty if it was.
        run_id: Run id of the project's workflow.
    """
    project.trace_count += 1
    handoff = run.handoff
    verdict = "was not accepted" if why else "was accepted"
    trace = Trace(
        key=f"{run_id}.{project.trace_count}",
        type="outcome",
        source="gate",
        guard="handoff",
        what_happened=one_line(
            f"handoff {handoff.id} from {handoff.from_agent} to {handoff.to_agent} {verdict}",
            MOST_CHARACTERS,
        ),
        why=one_line(" ".join(why), MOST_CHARACTERS),
        step=project.jobs,
        phase=0,
        todo=one_line(handoff.task, MOST_CHARACTERS),
        commit=ended.checkpoint,
        at=int(project.clock),
    )
    project.traces = [*project.traces, trace]


def is_trace_flush_due(job: JobRecord) -> bool:
    """Whether traces should be stored now: there are many, the phase changed, or the job waits."""
    if is_trace_record_full(job) and job.waiting is None:
        return True
    # Deferred traces are sent again together with the next batch.
    fresh = job.traces[job.deferred_traces :]
    if not fresh:
        return False
    rests = job.waiting is not None and not job.waiting.trying
    phase_ended = fresh[0].phase != job.state.phase.number
    return len(fresh) >= FLUSHED_AT or rests or phase_ended


def is_trace_record_full(record: JobRecord | ProjectRecord) -> bool:
    """Whether the record holds the maximum number of traces."""
    return len(record.traces) >= MOST_KEPT
