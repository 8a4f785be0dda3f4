"""Questions to people, tested on the job's record alone."""

import json

import pytest

from protocol.job_record import JobRecord
from protocol.payloads import ReceivedSignal
from protocol.requests import ShowCallReply
from tests.workflows.records import record
from workflows.jobs import approvals, questions

NOW = 1_800_000_000.0
ASKED = ShowCallReply(commit="c", arguments={"question": "Which?", "default": "Any."})
MOVE = ShowCallReply(commit="c", arguments={"old": "a.md", "new": "b.md"})


def asking(**details: object) -> JobRecord:
    job = record(commit="0123456789abcdef", **details)
    questions.ask_question(job, ASKED, NOW)
    assert job.clarification.pending
    job.waiting = questions.waiting_for_answer(job.clarification.pending, "tea")
    return job


def approving(hours: float | None = None) -> JobRecord:
    job = record(commit="0123456789abcdef", step=4, next_call=1)
    job.limits.approve_hours = hours
    approvals.open_approval_question(job, "move_file", MOVE, "Really?", "approve", NOW)
    assert job.approval
    job.waiting = approvals.waiting_for_approval_answer(job.approval, "tea")
    return job


def letter(signal: str, **payload: object) -> ReceivedSignal:
    return ReceivedSignal(signal=signal, payload=payload)


def answer(job: JobRecord, received: ReceivedSignal) -> None:
    assert questions.question_mismatch_reason(job, received) == ""
    questions.take_question_answer(job, received, NOW)


def test_a_question_says_until_when_and_how_to_answer() -> None:
    waiting = asking().waiting
    assert waiting
    assert "2027-01-16 08:00 UTC" in waiting.message
    assert waiting.command == 'starter.py answer tea "your answer"'
    assert f"`{waiting.command}`" in waiting.remedy
    # As code: elsewhere in Markdown, Temporal Web would make the quotes curly and break the JSON.
    assert '`{"id": "01234567", "text": "your answer"}`' in waiting.remedy
    assert waiting.about == {"id": "01234567", "question": "Which?", "default": "Any."}


@pytest.mark.parametrize(
    ("server", "asked"),
    [("", "The agent asked: Which?"), ("tea", "The MCP server tea asked: Which?")],
)
def test_the_trace_of_an_answer_says_who_asked(server: str, asked: str) -> None:
    job = asking()
    assert job.clarification.pending
    job.clarification.pending.server = server
    answer(job, letter("answer", text="Any."))
    questions.note_answer_trace(job, job.clarification.pending)
    assert [trace.what_happened for trace in job.traces] == [asked]


@pytest.mark.parametrize(
    ("job_id", "shown"),
    [
        ("tea-1.b_c", "answer tea-1.b_c "),
        ("my tea", "answer 'my tea' "),
        ("a'b", r"answer 'a'\''b' "),
    ],
)
def test_the_command_names_the_job_as_a_shell_takes_it(job_id: str, shown: str) -> None:
    pending = asking().clarification.pending
    assert pending
    assert shown in questions.waiting_for_answer(pending, job_id).remedy


def test_a_long_question_is_short_in_the_message_and_whole_beside_it() -> None:
    long = ShowCallReply(commit="c", arguments={"question": "why " * 400, "default": "x"})
    job = record(commit="0" * 40)
    questions.ask_question(job, long, NOW)
    assert job.clarification.pending
    waiting = questions.waiting_for_answer(job.clarification.pending, "tea")
    assert len(waiting.message) < 450
    assert waiting.about["question"] == "why " * 400


def test_an_answer_fits_its_question_alone() -> None:
    job = asking()
    wrong = questions.question_mismatch_reason(job, letter("answer", id="76543210", text="x"))
    assert wrong == ("no question '76543210' is open; the open one is '01234567'")
    assert questions.question_mismatch_reason(job, letter("approve", id="01234567"))
    assert job.waiting
    answer(job, letter("answer", text="Green."))
    assert job.waiting is None
    assert job.clarification.pending
    assert job.clarification.pending.answer == "A person answers: Green."
    assert questions.question_mismatch_reason(job, letter("answer", text="Black.")) == (
        "no question is open"
    )


def test_an_approval_is_for_one_call_of_one_reply() -> None:
    job = approving()
    assert questions.question_mismatch_reason(job, letter("deny", id="7", reason="no"))
    answer(job, letter("approve", id="01234567", reason="Mind."))
    approval = approvals.current_approval(job)
    assert approval
    assert approval.approved is True
    assert job.correction == "A person approved move_file: Mind."
    assert questions.question_mismatch_reason(job, letter("deny", reason="no"))
    job.next_call = 2
    assert approvals.current_approval(job) is None
    job.next_call, job.step = 1, 5
    assert approvals.current_approval(job) is None


def test_a_denial_tells_the_model_why() -> None:
    job = approving()
    answer(job, letter("deny", reason="x" * 20_000))
    assert job.approval
    denial = approvals.approval_denial_text(job.approval)
    assert "did not approve this call of move_file. Reason: x" in denial
    assert len(denial) < 2000


def test_a_refused_end_of_a_job_is_called_again_after_the_change() -> None:
    job = record(commit="0123456789abcdef", step=4, next_call=1)
    closing = ShowCallReply(commit="c", arguments={"summary": "Tea."})
    approvals.open_approval_question(job, "job_complete", closing, "Push it?", "publish", NOW)
    assert job.approval
    job.waiting = approvals.waiting_for_approval_answer(job.approval, "tea")
    answer(job, letter("deny", reason="Name the pot"))
    shown = approvals.approval_denial_text(job.approval)
    assert shown.endswith(
        "Reason: Name the pot. Do what the reason asks for, then call job_complete again."
    )


def test_an_answer_to_a_paused_job_leaves_it_paused() -> None:
    job = asking()
    assert job.waiting
    job.waiting = job.waiting.model_copy(update={"reason": "paused"})
    answer(job, letter("answer", text="Green."))
    assert job.waiting


def test_time_runs_only_while_the_job_waits_for_an_answer() -> None:
    job = asking()
    assert questions.question_time_left(job, NOW + 60) == 24 * 3600 - 60
    assert questions.question_time_left(job, NOW + 10**6) == 1.0
    # The notice outlives the question, which the status shows no longer.
    asked, default = (ASKED.arguments[name] for name in ("question", "default"))
    assert questions.answer_expired_question(job, NOW).endswith(
        f": nobody answered in time: {asked} The agent's default holds: {default}"
    )
    assert job.waiting is None
    assert questions.question_time_left(job, NOW) is None
    assert questions.question_time_left(approving(), NOW) is None


def test_what_is_dropped_is_told() -> None:
    job = asking()
    assert questions.drop_questions(job) == ["the question 01234567 was dropped: Which?"]
    assert questions.drop_questions(job) == []
    job = approving()
    assert questions.drop_questions(job) == [
        "the request 01234567 to approve move_file was dropped"
    ]
    assert job.approval is None


def test_what_is_open_is_carried_over_whole() -> None:
    for job in (asking(), approving()):
        carried = json.loads(json.dumps(job.model_dump(mode="json", exclude_defaults=True)))
        assert JobRecord.model_validate(carried) == job


def test_a_decision_says_who_decided_what_and_when() -> None:
    job = approving()
    decision = letter("deny", reason="Keep it.", by="ada@kettle")
    answer(job, decision)
    [entry] = job.approvals
    assert (entry.by, entry.tool, entry.approved, entry.decided) == (
        *("ada@kettle", "move_file", False),
        int(NOW),
    )
    assert approvals.answered_approval_line(entry) == (
        "ada@kettle denied move_file (01234567) at 2027-01-15 08:00:00 UTC: old=a.md, new=b.md. "
        "Reason: Keep it."
    )


def test_a_call_that_nobody_approves_in_time_is_denied() -> None:
    job = approving(hours=2)
    assert job.waiting
    assert "Without an answer it is denied at 2027-01-15 10:00 UTC" in job.waiting.message
    assert questions.question_time_left(job, NOW + 60) == 7140
    notice = questions.answer_expired_question(job, NOW + 7200)
    assert notice.startswith("nobody approved move_file (01234567) in time, it was denied at")
    assert job.waiting is None
    approval = approvals.current_approval(job)
    assert approval
    assert approval.approved is False
    assert "Nobody approved this call of move_file in time" in approvals.approval_denial_text(
        approval
    )
    assert questions.question_mismatch_reason(job, letter("approve")) == (
        "no request for approval is open"
    )


def test_decisions_are_kept_with_bounds() -> None:
    job = approving()
    for _ in range(30):
        long = ShowCallReply(commit="c", arguments={f"name{n}": "x" * 5000 for n in range(30)})
        approvals.open_approval_question(job, "move_file", long, "Really?", "approve", NOW)
        answer(job, letter("approve"))
    assert len(job.approvals) == approvals.MOST_DECISIONS
    assert sum(len(each.model_dump_json()) for each in job.approvals) < 80_000
