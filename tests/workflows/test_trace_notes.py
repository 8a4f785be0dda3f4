"""What a job notes and when it hands the notes over, tested on the record alone."""

from protocol.trace_requests import MOST_CHARACTERS, MOST_KEPT
from tests.workflows.project_records import started
from tests.workflows.records import record
from workflows.runtime import trace_notes, wait_states


def noted(job: object, count: int) -> None:
    for number in range(count):
        trace_notes.note_trace(job, "violation", "gate", "tools", f"call {number}")  # type: ignore[arg-type]


def test_each_note_has_a_key_of_its_own_across_runs() -> None:
    job = record(run_id="one")
    noted(job, 2)
    job.run_id, job.traces = "two", []
    noted(job, 1)
    assert [trace.key for trace in job.traces] == ["two.3"]


def test_texts_are_cut() -> None:
    job = record()
    trace_notes.note_trace(
        job, "violation", "gate", "g", "x" * 9999, why="y\n" * 9999, path="z" * 9999
    )
    [trace] = job.traces
    assert len(trace.what_happened) == len(trace.path) == MOST_CHARACTERS
    # Cut between two words.
    assert MOST_CHARACTERS - 2 <= len(trace.why) <= MOST_CHARACTERS


def test_notes_wait_until_there_are_many_or_the_job_rests() -> None:
    job = record()
    assert not trace_notes.is_trace_flush_due(job)
    noted(job, trace_notes.FLUSHED_AT - 1)
    assert not trace_notes.is_trace_flush_due(job)
    job.waiting = wait_states.PAUSED
    assert trace_notes.is_trace_flush_due(job)
    job.waiting = None
    noted(job, 1)
    assert trace_notes.is_trace_flush_due(job)


def test_notes_of_a_phase_that_ended_are_due() -> None:
    job = record()
    noted(job, 1)
    job.state.phase.number += 1
    assert trace_notes.is_trace_flush_due(job)


def test_notes_that_were_not_taken_go_again_with_fresh_ones() -> None:
    job = record()
    noted(job, trace_notes.FLUSHED_AT)
    job.deferred_traces = trace_notes.FLUSHED_AT
    job.state.phase.number += 1
    assert not trace_notes.is_trace_flush_due(job)
    noted(job, trace_notes.FLUSHED_AT)
    assert trace_notes.is_trace_flush_due(job)


def test_a_job_that_carries_as_many_as_it_may_tries_again_at_every_step() -> None:
    job = record()
    noted(job, MOST_KEPT)
    job.deferred_traces = MOST_KEPT
    assert trace_notes.is_trace_flush_due(job)
    job.waiting = wait_states.STORE
    assert not trace_notes.is_trace_flush_due(job)


def test_a_project_carries_as_many_as_a_job() -> None:
    job, project = record(), started("groups")
    noted(job, MOST_KEPT)
    project.traces = job.traces[1:]
    assert not trace_notes.is_trace_record_full(project)
    project.traces = job.traces
    assert trace_notes.is_trace_record_full(project)
