"""What people's signals do to a job: one handler for each row of the table `SIGNALS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow

from protocol.course_window import Course
from protocol.job_state import Remark
from protocol.payloads import ReceivedSignal
from protocol.publishing import change_publish, publish_notice, split_publish_settings
from protocol.short_text import one_line
from workflows import acts, approvals, budget, guard_outcomes, questions, trace_notes, wait_states
from workflows.activity_failures import StepFailed
from workflows.cancellation import CancelRequested
from workflows.job_recovery import JobRecovery
from workflows.phase_transition import PhaseTransition
from workflows.tool_calls import ToolCalls

ANSWER_PATCH = "a server's answer is traced once the server takes it"
"""Runs that traced such an answer when it arrived replay as they were."""
MAX_EDIT_CHARACTERS = 20_000
"""Most characters of edits in pauses that the model has not read."""
ADDED_ITEM = (
    "It is item {id} of the scope: a todo that names it completes it, or a ticked box in a phase "
    "of plan.md that begins with {id}."
)
MAX_REMARK_CHARACTERS = 100_000
"""Most characters of all remarks to a job, which are carried from run to run."""


class JobSignals:
    """Handles the signals of one job in order of arrival."""

    def __init__(
        self, tool_calls: ToolCalls, transition: PhaseTransition, recovery: JobRecovery
    ) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._inbox = tool_calls.inbox
        self._calls = tool_calls
        self._transition = transition
        self._recovery = recovery
        self._handlers: dict[str, Callable[[ReceivedSignal], Awaitable[str]]] = {
            "rewind": self._rewind,
            "cancel": self._cancel,
            "pause": self._pause,
            "resume": self._resume,
            "limit": self._set_limits,
            "answer": self._take_answer,
            "approve": self._take_answer,
            "deny": self._take_answer,
            "bypass": self._grant_bypass,
            "tell": self._take_remark,
        }

    async def handle(self, received: ReceivedSignal) -> None:
        """Apply a signal, and record who sent it and when.

        A signal whose step fails is refused.
        """
        phase, refused = self._job.state.phase.number, self._inbox.refused
        self._inbox.sender, detail = received.by, ""
        try:
            detail = await self._handlers[received.signal](received)
        except StepFailed as failed:
            self._refuse(received, failed.message)
            if failed.kind == "CheckpointMissing":
                await self._recovery.recover_checkpoint()
        finally:
            self._inbox.sender = ""
        act = acts.describe_act(received, phase, detail)
        if self._inbox.refused > refused:
            act.refused = self._inbox.notices[-1].removeprefix("refused: ")
        else:
            if received.signal in ("approve", "deny"):
                decided = self._job.approvals[-1]
                act.did, act.detail = approvals.approval_decision_words(decided)
                act.id = decided.id
            self._inbox.notice(acts.act_line(act))
        acts.keep_act(self._job, act)

    async def pause_job(self, received: ReceivedSignal) -> None:
        """Pause the job, with the folder up to date."""
        job = self._job
        try:
            # Before the job shows as paused: edits are imported from then on.
            await self.show_folder()
        except StepFailed as failed:
            self._inbox.notice(f"the folder may lack the last steps: {failed.message}")
            if failed.kind == "CheckpointMissing":
                await self._recovery.recover_checkpoint()
        finally:
            job.pausing = None
            job.paused_from = job.waiting.reason if job.waiting else None
            job.waiting = wait_states.paused_wait(received.by, acts.describe_calls_left(job))

    async def show_folder(self) -> None:
        """Update the folder before a person looks at it.

        Raises StepFailed if the checkpoint is missing. If the folder lags for another reason,
        missing files do not count as removed.
        """
        try:
            shown = await self._steps.show_folder(self._job)
            self._inbox.notice_moved_aside(shown.moved_aside)
        except StepFailed as failed:
            if failed.kind == "CheckpointMissing":
                raise
            self._inbox.notice(f"the folder may lack the last steps: {failed}")

    def _refuse(self, received: ReceivedSignal, why: str) -> None:
        self._inbox.refuse(f"signal {received.signal}: {why}")

    @property
    def _is_paused(self) -> bool:
        """Whether the job is paused, so that a person may edit the folder."""
        waiting = self._job.waiting
        return waiting is not None and waiting.reason == "paused"

    # One handler for each signal. Each returns what to record beside the payload.

    async def _cancel(self, received: ReceivedSignal) -> str:
        act = acts.describe_act(received, self._job.state.phase.number)
        acts.keep_act(self._job, act)
        self._inbox.notice(acts.act_line(act))
        raise CancelRequested(received.payload.get("reason") or "cancelled by a person")

    async def _rewind(self, received: ReceivedSignal) -> str:
        job, payload = self._job, received.payload
        phase = payload.get("phase")
        if phase is not None and phase not in job.phases:
            why = f"there is no phase {phase}; the phases are {min(job.phases)} to {job.last_phase}"
            self._refuse(received, why)
            return ""
        edited = await self._import_folder(received.by) if self._is_paused else ""
        who = received.by
        details = {"outcome": "rewound", "issue": payload["issue"], "by": who or "a person"}
        if phase is not None:
            details["restore"] = job.phases[phase]
            details["restore_files"] = payload.get("restore_files", True)
            if details["restore_files"]:
                # The edits are undone as well.
                job.person_edits = ""
        happened = f"{who or 'A person'} took phase {job.state.phase.number} back"
        trace_notes.note_trace(
            job, "correction", "person", "rewind", happened, what_was_correct=payload["issue"]
        )
        await self._transition.run_transition("rewind", **details)
        job.waiting = job.pausing = None
        return f"{edited}. {payload['issue']}" if edited else ""

    async def _pause(self, received: ReceivedSignal) -> str:
        """Pause once the calls of the current reply have run."""
        job = self._job
        if self._is_paused or job.pausing:
            # Showing the folder again would overwrite a person's edits.
            state = "paused" if self._is_paused else "about to pause"
            self._refuse(received, f"the job is {state} already")
            return ""
        if acts.is_pause_due(job):
            await self.pause_job(received)
            return ""
        job.pausing = received
        return acts.describe_pause_moment(job)

    async def _resume(self, received: ReceivedSignal) -> str:
        job, settings = self._job, received.payload.get("set")
        waiting, edited = job.waiting, ""
        if waiting is None and job.pausing:
            job.pausing = None
            return "the pause had not taken effect"
        if waiting is None:
            self._refuse(received, "the job is not waiting")
            return ""
        if waiting.reason in ("clarification", "approval"):
            self._refuse(received, f"the job waits for a person. {waiting.remedy}")
            return ""
        if waiting.reason == "budget" and (still := self._calls.next_call_wait()):
            self._refuse(received, f"{still.message} {still.remedy}")
            return ""
        settings, push = split_publish_settings(settings or {})
        if push and (why := self._change_publish(push)):
            self._refuse(received, why)
            return ""
        if settings and not await self._set_model(received, settings):
            return ""
        reason = waiting.reason
        if reason == "paused":
            edited = await self._import_folder(received.by)
            # The person has seen what the job waited for before the pause.
            reason = job.paused_from or reason
        if reason == "rewinds":
            # A person's own rewinds may have exceeded the limit.
            job.limits.rewinds = max(job.limits.rewinds, job.rewinds) + 1
        elif reason in ("stuck", "review") or (reason == "endpoint" and job.course.narrowed_issue):
            job.course, job.advice = Course(), ""
            job.judge_refusals = 0
        job.waiting = None
        return edited

    async def _set_limits(self, received: ReceivedSignal) -> str:
        job = self._job
        payload = {key: value for key, value in received.payload.items() if key != "by"}
        limits = budget.limits_after_signal(job.limits, job.model, payload)
        if isinstance(limits, str):
            self._refuse(received, limits)
            return ""
        job.limits = limits
        if job.waiting and job.waiting.reason == "budget":
            job.waiting = self._calls.next_call_wait()
            if still := job.waiting:
                notice = f"signal limit: taken, and there is still no room. {still.message}"
                self._inbox.notice(notice)
        return ""

    async def _take_answer(self, received: ReceivedSignal) -> str:
        if why := questions.take_question_answer(self._job, received, workflow.time()):
            self._inbox.refuse(why)
            return ""
        question = self._job.clarification.pending
        if question and question.server and not workflow.patched(ANSWER_PATCH):
            questions.note_answer_trace(self._job, question)
        return ""

    async def _grant_bypass(self, received: ReceivedSignal) -> str:
        if refusal := guard_outcomes.grant_guard_bypass(self._job, received.payload):
            self._refuse(received, refusal)
        return ""

    async def _take_remark(self, received: ReceivedSignal) -> str:
        """Add a person's remark to the agent's next turn."""
        job, payload = self._job, received.payload
        remark = Remark(
            text=payload["text"], by=payload.get("by", ""), phase=job.state.phase.number
        )
        if sum(len(each.text) for each in (*job.state.remarks, remark)) > MAX_REMARK_CHARACTERS:
            self._refuse(
                received,
                f"more than {MAX_REMARK_CHARACTERS:,} characters were said to this job; pause it "
                "and edit instructions.md",
            )
            return ""
        items = [remark.text] if payload.get("item") else []
        known = {item.id for item in job.state.scope}
        await self._recovery.keep_remarks([remark], items)
        job.add_correction(f"A person says: {remark.text}")
        if added := [item.id for item in job.state.scope if item.id not in known]:
            job.add_correction(ADDED_ITEM.format(id=added[0]))
        # The remark may change the deliverables.
        job.drop_review()
        happened = f"{remark.by or 'A person'} told the agent something"
        trace_notes.note_trace(
            job, "correction", "person", "tell", happened, what_was_correct=remark.text
        )
        return ""

    # Shared by several handlers.

    def _change_publish(self, settings: dict[str, Any]) -> str:
        """Change where the branch is pushed; return why not, else nothing."""
        job = self._job
        if job.publish is None:
            return "the job pushes no branch"
        try:
            job.publish = change_publish(job.publish, settings)
        except ValueError as error:
            return one_line(str(error), 300)
        self._inbox.notice(publish_notice(job.publish))
        return ""

    async def _set_model(self, received: ReceivedSignal, settings: dict[str, Any]) -> bool:
        """Change settings of the job's model; return whether they are valid.

        Raises StepFailed for anything that is no setting.
        """
        job = self._job
        reply = await self._steps.set_model(job, settings)
        limits = budget.budget_limits_with_model(job.limits, reply.model, reply.limits)
        if isinstance(limits, str):
            self._refuse(received, limits)
            return False
        job.advance_to(reply.commit, reply.at)
        job.model, job.limits, job.can_require_call = reply.model, limits, True
        job.tools = reply.tools or job.tools
        changes = "; ".join(reply.changes) or "as it was"
        self._inbox.notice(f"the model is set: {changes}")
        trace_notes.note_trace(
            job, "correction", "person", "resume", f"A person set the model: {changes}"
        )
        return True

    async def _import_folder(self, by: str) -> str:
        """Import a person's edits made during the pause; return the files."""
        job = self._job
        imported = await self._steps.take_folder(job, by)
        job.advance_to(imported.commit, imported.at)
        job.state.take_items(imported.scope)
        # The files may have changed, so a call of job_complete goes through its gate again.
        job.drop_review()
        for note in imported.notes:
            self._inbox.notice(note)
        if imported.edits:
            # The model may not have read the edits of an earlier pause yet.
            edits = f"{job.person_edits}\n{imported.edits}".strip()
            job.person_edits = edits[-MAX_EDIT_CHARACTERS:]
        return f"{acts.EDITED}{imported.paths}" if imported.paths else ""
