"""What people's signals do to a job: one handler for each row of the table `SIGNALS`."""

from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import workflow

from protocol.approval_statement import expiry_problem
from protocol.course_window import Course
from protocol.errors import SignalRefused
from protocol.job_record import Approval, JobRecord
from protocol.job_state import Remark
from protocol.limits import JobLimits
from protocol.notices import PersonAct
from protocol.payloads import ReceivedSignal
from protocol.publishing import change_publish, publish_notice, split_publish_settings
from protocol.short_text import one_line
from workflows.jobs import approvals, guard_outcomes, questions
from workflows.jobs.job_recovery import JobRecovery
from workflows.jobs.phase_transition import PhaseTransition
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import budget
from workflows.runtime import acts, trace_notes, wait_states
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.cancellation import CancelRequested

FOLDER_LACKS = "the folder may lack the last steps: {why}"
MAX_EDIT_CHARACTERS = 20_000
"""Most characters of edits in pauses that the model has not read."""
REPLY_TO_COME = "the reply of the model call under way is kept, unless something is changed"
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
        self._handlers: dict[str, Callable[[ReceivedSignal, PersonAct], Awaitable[None]]] = {
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
        job, lost = self._job, False
        act = acts.describe_act(received, job.state.phase.number)
        try:
            if why := signal_refusal_reason(job, received):
                raise SignalRefused(why)
            await self._handlers[received.signal](received, act)
        except SignalRefused as refusal:
            act.refused = str(refusal)
        except StepFailed as failed:
            act.refused, lost = failed.message, failed.kind == "CheckpointMissing"
        self._record_act(received, act)
        if lost:
            await self._recovery.recover_checkpoint()

    def _record_act(self, received: ReceivedSignal, act: PersonAct) -> None:
        received.act = act
        self._inbox.refused += bool(act.refused)
        self._inbox.notice(act.notice)
        acts.keep_act(self._job, act)

    async def pause_job(self, received: ReceivedSignal) -> None:
        """Pause the job, with the folder up to date."""
        job = self._job
        try:
            # Before the job shows as paused: edits are imported from then on.
            await self.show_folder()
        except StepFailed as failed:
            self._inbox.notice(FOLDER_LACKS.format(why=failed.message), "folder")
            if failed.kind == "CheckpointMissing":
                await self._recovery.recover_checkpoint()
        finally:
            job.pausing = None
            job.paused_from = job.waiting.reason if job.waiting else None
            remaining = REPLY_TO_COME if self._steps.holding else acts.describe_calls_left(job)
            job.waiting = wait_states.paused_wait(received.by, remaining)

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
            self._inbox.notice(FOLDER_LACKS.format(why=failed), "folder")

    # One handler for each signal. Each may add to the act what is known beyond the payload.

    async def _cancel(self, received: ReceivedSignal, act: PersonAct) -> None:
        self._record_act(received, act)
        raise CancelRequested(received.payload.get("reason") or "cancelled by a person")

    async def _rewind(self, received: ReceivedSignal, act: PersonAct) -> None:
        job, payload = self._job, received.payload
        phase, issue, who = payload.get("phase"), payload["issue"], received.by
        if is_paused(job):
            await self._import_folder(who, act)
        details = {"outcome": "rewound", "issue": issue, "by": who or "a person"}
        if phase is not None:
            details["restore"] = job.phases[phase]
            details["restore_files"] = payload.get("restore_files", True)
            if details["restore_files"]:
                # The edits are undone as well.
                job.person_edits = ""
        happened = f"{who or 'A person'} took phase {job.state.phase.number} back"
        trace_notes.note_trace(
            job, "correction", "person", "rewind", happened, what_was_correct=issue
        )
        await self._transition.run_transition("rewind", **details)
        job.waiting = job.pausing = None
        if act.edited:
            act.detail = f"{act.detail}. {issue}"

    async def _pause(self, received: ReceivedSignal, act: PersonAct) -> None:
        """Pause at once during a model call, else once the calls of the current reply have run."""
        job = self._job
        if acts.is_pause_due(job):
            await self.pause_job(received)
        else:
            job.pausing = received
            act.detail = acts.describe_pause_moment(job)

    async def _resume(self, received: ReceivedSignal, act: PersonAct) -> None:
        job, waiting = self._job, self._job.waiting
        if waiting is None:
            if not job.pausing:
                raise SignalRefused("the job is not waiting")
            job.pausing, act.detail = None, "the pause had not taken effect"
            return
        if waiting.reason in ("clarification", "approval"):
            raise SignalRefused(f"the job waits for a person. {waiting.remedy}")
        if waiting.reason == "budget" and (still := self._calls.next_call_wait()):
            raise SignalRefused(f"{still.message} {still.remedy}")
        settings, push = split_publish_settings(received.payload.get("set") or {})
        if push:
            self._change_publish(push)
        if settings:
            await self._set_model(settings)
        reason = waiting.reason
        if reason == "paused":
            await self._import_folder(received.by, act)
            # The person has seen what the job waited for before the pause.
            reason = job.paused_from or reason
        if reason == "rewinds":
            # A person's own rewinds may have exceeded the limit.
            job.limits.rewinds = max(job.limits.rewinds, job.rewinds) + 1
        elif reason in ("stuck", "review") or (reason == "endpoint" and job.course.narrowed_issue):
            job.course, job.advice = Course(), ""
            job.judge_refusals = 0
        job.waiting = None

    async def _set_limits(self, received: ReceivedSignal, act: PersonAct) -> None:
        job = self._job
        limits = _limits_after(job, received)
        assert isinstance(limits, JobLimits)
        job.limits = limits
        if job.waiting and job.waiting.reason == "budget":
            job.waiting = self._calls.next_call_wait()
            if still := job.waiting:
                notice = f"signal limit: taken, and there is still no room. {still.message}"
                self._inbox.notice(notice)

    async def _take_answer(self, received: ReceivedSignal, act: PersonAct) -> None:
        approval = approvals.current_approval(self._job)
        if received.signal == "approve" and approval and approval.signers:
            act.by = await self._check_signature(received, approval)
        questions.take_question_answer(self._job, received, workflow.time())
        if received.signal in ("approve", "deny"):
            decided = self._job.approvals[-1]
            act.did, act.detail = approvals.approval_decision_words(decided)
            act.id = decided.id

    async def _check_signature(self, received: ReceivedSignal, approval: Approval) -> str:
        """Return the signer, as who approved the call. Raises SignalRefused: nobody signed it."""
        statement = approvals.signed_statement(approval, received, self._calls.job_id)
        if stale := expiry_problem(statement.expires, workflow.time()):
            raise SignalRefused(stale)
        checked = await self._steps.check_approval(
            self._job, approval.tool, statement.text, received.payload["signature"]
        )
        if checked.refused:
            raise SignalRefused(checked.refused)
        received.payload["by"] = checked.by
        return checked.by

    async def _grant_bypass(self, received: ReceivedSignal, act: PersonAct) -> None:
        guard_outcomes.grant_guard_bypass(self._job, received.payload)

    async def _take_remark(self, received: ReceivedSignal, act: PersonAct) -> None:
        """Add a person's remark to the agent's next turn."""
        job, payload = self._job, received.payload
        if payload.get("unit"):
            raise SignalRefused("unit: only a project has features, groups or stages")
        remark = Remark(
            text=payload["text"], by=payload.get("by", ""), phase=job.state.phase.number
        )
        if sum(len(each.text) for each in (*job.state.remarks, remark)) > MAX_REMARK_CHARACTERS:
            raise SignalRefused(
                f"more than {MAX_REMARK_CHARACTERS:,} characters were said to this job; pause it "
                "and edit instructions.md"
            )
        items = [remark.text] if payload.get("item") else []
        known = {item.id for item in job.state.scope}
        no_item = await self._recovery.keep_remarks([remark], items)
        job.add_correction(f"A person says: {remark.text}")
        if added := [item.id for item in job.state.scope if item.id not in known]:
            job.add_correction(ADDED_ITEM.format(id=added[0]))
        # The remark may change the deliverables.
        job.drop_review()
        happened = f"{remark.by or 'A person'} told the agent something"
        trace_notes.note_trace(
            job, "correction", "person", "tell", happened, what_was_correct=remark.text
        )
        if no_item:
            raise SignalRefused(f"item: {no_item}")

    # Shared by several handlers.

    def _change_publish(self, settings: dict[str, Any]) -> None:
        """Change where the branch is pushed."""
        job = self._job
        if job.publish is None:
            raise SignalRefused("the job pushes no branch")
        try:
            job.publish = change_publish(job.publish, settings)
        except ValueError as error:
            raise SignalRefused(one_line(str(error), 300)) from None
        self._inbox.notice(publish_notice(job.publish))

    async def _set_model(self, settings: dict[str, Any]) -> None:
        """Change settings of the job's model. Raises StepFailed for anything that is no setting."""
        job = self._job
        reply = await self._steps.set_model(job, settings)
        limits = budget.budget_limits_with_model(job.limits, reply.model, reply.limits)
        if isinstance(limits, str):
            raise SignalRefused(limits)
        job.advance_to(reply.commit, reply.at)
        job.model, job.limits, job.can_require_call = reply.model, limits, True
        job.tools = reply.tools or job.tools
        changes = "; ".join(reply.changes) or "as it was"
        self._inbox.notice(f"the model is set: {changes}", "model")
        trace_notes.note_trace(
            job, "correction", "person", "resume", f"A person set the model: {changes}"
        )

    async def _import_folder(self, by: str, act: PersonAct) -> None:
        """Import a person's edits made during the pause; the act names the files."""
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
        if imported.paths:
            act.edited, act.detail = True, f"files edited: {imported.paths}"


def is_paused(job: JobRecord) -> bool:
    """Whether the job is paused, so that a person may edit the folder."""
    return job.waiting is not None and job.waiting.reason == "paused"


def signal_refusal_reason(job: JobRecord, received: ReceivedSignal) -> str:
    """Return why a signal cannot apply to the job as it is; empty if it may."""
    match received.signal:
        case "rewind":
            phase = received.payload.get("phase")
            if phase is not None and phase not in job.phases:
                first, last = min(job.phases), job.last_phase
                return f"there is no phase {phase}; the phases are {first} to {last}"
        case "pause" if is_paused(job) or job.pausing:
            # Showing the folder again would overwrite a person's edits.
            return f"the job is {'paused' if is_paused(job) else 'about to pause'} already"
        case "limit" if isinstance(limits := _limits_after(job, received), str):
            return limits
        case "answer" | "approve" | "deny":
            return questions.question_mismatch_reason(job, received)
        case "bypass":
            return guard_outcomes.guard_bypass_refusal_reason(job, received.payload["guard"])
    return ""


def _limits_after(job: JobRecord, received: ReceivedSignal) -> JobLimits | str:
    """Return the limits after the signal `limit`, or why it cannot set them."""
    values = {key: value for key, value in received.payload.items() if key != "by"}
    return budget.limits_after_signal(job.limits, job.model, values)
