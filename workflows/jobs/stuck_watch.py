"""Acts on the verdicts of stuck detection: advice to the model, a narrowed turn, or a wait.

`workflows.rules.course` follows what a phase has done, and `workflows.rules.stuck` judges it.
"""

from collections.abc import Sequence

from protocol.course_window import Course
from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.requests import Call
from protocol.short_text import one_line
from workflows.rules import course, stuck
from workflows.runtime import trace_notes
from workflows.runtime.inbox import Inbox

MAX_ERROR = 200
"""Most characters of an error in a notice and a trace."""


class StuckWatch:
    """Watches one job."""

    def __init__(self, job: JobRecord, inbox: Inbox) -> None:
        self._job = job
        self._inbox = inbox

    def refusal_reason(self, tool: str) -> str | None:
        """Return why a turn that stuck detection has narrowed does not accept a call, or None."""
        return stuck.stuck_phase_refusal(self._job.course, tool, self._todo_number)

    def record_call(self, happened: course.CallOutcome) -> None:
        """Follow the course of the job over one call."""
        job = self._job
        after = course.course_after_call(job.course, happened, job.limits.stuck)
        self._record_course(after, happened.reply.error or "")

    def record_reply(self, calls: list[Call]) -> None:
        """Follow the course of the job over one reply."""
        self._record_course(course.course_after_reply(self._job.course, calls))

    def record_phase(self, ended: Course, mark: str, *, idle: bool, work: str) -> None:
        """Follow the course of the job over a phase of work, once the next phase has begun."""
        after = course.course_after_phase(ended, mark, idle=idle, work=work)
        self._record_course(after.in_new_phase)

    def _record_course(self, now: Course, error: str = "") -> None:
        """Take over this course, and act on the verdicts of stuck detection.

        Args:
            now: The course after the newest event.
            error: The error of the newest call; empty if it did not fail.
        """
        job, before = self._job, self._job.course
        if stuck.is_stuck_advice_outdated(now):
            now = self._withdraw_stuck_advice(now)
        job.course = now
        verdicts = stuck.judge_stuckness(before, now, job.limits.stuck, job.state.phase)
        if not verdicts:
            return
        self._report_verdicts(verdicts, error)
        gravest = verdicts[0]
        if isinstance(gravest, stuck.Wait):
            job.waiting = gravest.waiting
            return
        job.nudges += 1
        if isinstance(gravest, stuck.Narrow) or job.calls or job.correction is None:
            job.advice = stuck.stuck_advice_text(verdicts)
        # Otherwise the correction of the reply without calls says more than the advice.
        if isinstance(gravest, stuck.Narrow):
            job.course = stuck.narrow_stuck_course(now, gravest, job.step)
        else:
            job.course = stuck.mark_stuck_advice_sent(now, verdicts)

    def _report_verdicts(self, verdicts: Sequence[stuck.Verdict], error: str) -> None:
        """Put verdicts into notices and traces."""
        job = self._job
        for verdict in verdicts:
            issue = verdict.issue
            if error and verdict.pattern in stuck.FAILURES:
                # Readers of notices and traces do not see the call's answer.
                issue += f" {one_line(error, MAX_ERROR)}"
            nudges = isinstance(verdict, stuck.Nudge)
            self._inbox.notice(
                Notice(
                    text=f"stuck, {verdict.word}. {issue}",
                    topic="advice" if nudges else "",
                    step=job.step,
                )
            )
            trace_notes.note_trace(
                job,
                "violation",
                "detector",
                verdict.pattern,
                issue,
                what_was_correct=verdict.advice,
            )

    def _withdraw_stuck_advice(self, now: Course) -> Course:
        """Take back advice that the model would read after calls which made it wrong."""
        job = self._job
        job.advice = ""
        job.nudges -= 1
        self._inbox.withdraw_notices("advice", job.step)
        return now.model_copy(update={"unread_nudges": []})

    @property
    def _todo_number(self) -> int:
        current = self._job.state.phase.current
        return current.id if current else 0
