"""Calls that MCP servers finish later, tested on the job's record alone."""

import pytest

from protocol.job_record import JobRecord
from protocol.payloads import ReceivedSignal
from protocol.requests import Pending
from tests.workflows.records import record
from workflows.jobs import questions

NOW = 1_800_000_000.0
SIZE = Pending(key="k", server="tea", asks="size", question="How much?")


def answered(text: str) -> JobRecord:
    """A job whose person has answered the server, which does not have the answer yet."""
    job = record(commit="0123456789abcdef")
    questions.note_pending_progress(job, SIZE, NOW)
    job.waiting = questions.pending_call_wait(job, "job", NOW)
    signal = ReceivedSignal(signal="answer", payload={"text": text})
    questions.take_question_answer(job, signal, NOW)
    assert questions.pending_call_wait(job, "job", NOW) is None
    return job


def learned(job: JobRecord) -> list[tuple[str, str]]:
    return [(trace.what_happened, trace.what_was_correct) for trace in job.traces]


def test_an_answer_that_does_not_fit_is_not_learned_from() -> None:
    job = answered("huge")
    again = SIZE.model_copy(update={"question": "How much? ('huge' does not fit.)"})
    questions.note_pending_progress(job, again, NOW)
    questions.clear_pending_call(job)
    assert learned(job) == []


@pytest.mark.parametrize(
    "latest",
    [
        SIZE.model_copy(update={"asks": "name", "question": "Who?", "answers": {"size": {}}}),
        SIZE.model_copy(update={"turn": 2, "question": "Really?"}),
        SIZE.model_copy(update={"asks": "", "question": "", "task": "7"}),
        None,
    ],
    ids=["next question", "next turn", "task", "result"],
)
def test_an_answer_that_the_server_has_is_learned_from(latest: Pending | None) -> None:
    job = answered("large")
    if latest:
        questions.note_pending_progress(job, latest, NOW)
    questions.clear_pending_call(job)
    assert learned(job) == [("The MCP server tea asked: How much?", "large")]
