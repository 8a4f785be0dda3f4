"""From one phase of a job to the next, whatever ended it: a gate, a rewind, or a person."""

from typing import Any

from protocol.endings import TransitionReply, TransitionRequest
from protocol.job_record import JobRecord
from protocol.notices import Notice
from protocol.phase import Phase, Purpose
from workflows.jobs import questions
from workflows.jobs.job_steps import JobSteps
from workflows.jobs.stuck_watch import StuckWatch
from workflows.rules import budget, reservations, skipped_calls
from workflows.runtime import acts, trace_notes
from workflows.runtime.activity_calls import position_request_fields
from workflows.runtime.inbox import Inbox

NO_SUMMARY = "no room in the limits for its summary; the notes on its todos take the place"


class PhaseTransition:
    """Puts the next phase in the place of the running one."""

    def __init__(self, job: JobRecord, steps: JobSteps, inbox: Inbox) -> None:
        self._job = job
        self._steps = steps
        self._inbox = inbox

    async def run_transition(self, purpose: Purpose, **details: Any) -> None:
        """End the running phase and begin a new one with the next unused number."""
        job, ended = self._job, self._job.state.phase
        await self._steps.give_up_task(job)
        request = TransitionRequest(
            **position_request_fields(job),
            number=job.last_phase + 1,
            purpose=purpose,
            rewinds=job.rewinds + (purpose == "rewind"),
            began=job.phases.get(ended.number),
            **details,
        )
        request.acts = acts.acts_in_phase(job)
        request.may_ask = job.clarification.used < job.limits.clarifications
        request.summary = request.outcome == "completed" and await self._has_room_for_summary()
        reply = await self._steps.run_transition(job, request)
        self._trace_phase_outcome(ended, request, reply.issue)
        self._begin_phase(request, reply)

    async def _has_room_for_summary(self) -> bool:
        """Whether the ending phase gets a summary: a long tactical one, if the limits have room."""
        job = self._job
        is_long = job.phase_usage.model_calls > job.limits.summary_calls
        if job.state.phase.kind != "tactical" or not is_long:
            return False
        reservation = reservations.summary_call_reservation(job)
        if budget.exceeded_limit(job, reservation):
            self._inbox.notice(Notice(text=NO_SUMMARY, phase=job.state.phase.number))
            return False
        return True

    def _begin_phase(self, request: TransitionRequest, reply: TransitionReply) -> None:
        """Put the new phase into the record."""
        job = self._job
        for dropped in questions.drop_questions(job):
            self._inbox.notice(dropped)
        job.advance_to(reply.commit, reply.at)
        job.state, job.rewinds = reply.state, request.rewinds
        job.last_phase = request.number
        job.phases[request.number] = reply.commit
        job.context = reply.context
        job.add_usage(reply.usage)
        not_run = skipped_calls.skipped_calls_note(job, request.call)
        course = job.course
        job.begin_phase()
        job.correction = not_run
        if request.by:
            # A person chose the way, on which the same phases come again.
            job.course = job.course.model_copy(update={"phase_marks": [], "idle_phases": 0})
        elif reply.mark:
            StuckWatch(job, self._inbox).record_phase(
                course, reply.mark, idle=reply.idle, work=reply.work
            )
        self._inbox.notice_moved_aside(reply.moved_aside)
        for remark in reply.remarks:
            self._inbox.notice(remark)

    def _trace_phase_outcome(self, ended: Phase, request: TransitionRequest, issue: str) -> None:
        """Record a failed attempt, and a success after it."""
        job = self._job
        if request.outcome == "rewound":
            job.last_failure = request.issue or issue
            happened = f"phase {ended.number} ({ended.name}) was rewound"
            trace_notes.note_trace(job, "outcome", "gate", "rewind", happened, why=job.last_failure)
        elif job.last_failure and ended.kind == "tactical":
            happened = f"phase {ended.number} ({ended.name}) was completed after a failure"
            trace_notes.note_trace(job, "outcome", "gate", "phase", happened, why=job.last_failure)
            job.last_failure = ""
