"""How a job stands: what people send to it, what keeps it waiting, what it shows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol.course import Course
from protocol.record import JobRecord, ReceivedSignal, WaitState
from protocol.state import Remark
from workflows import (
    activity_failures,
    budget,
    guards,
    notifications,
    questions,
    remedies,
    replies,
    status,
    traces,
)
from workflows.activity_calls import StepInterrupted
from workflows.activity_failures import StepFailed
from workflows.lifecycle import CancelRequested, Lifecycle, is_cancelled
from workflows.phase_loop import PhaseLoop
from workflows.steps import JobSteps

MOST_EDITS = 20_000
"""Characters of what people edited in pauses and the model has not read."""
MOST_REMARKS = 100_000
"""Characters of all that people say to a job, which is carried from run to run."""


class JobLifecycle(Lifecycle):
    """A job between its steps."""

    _job: JobRecord
    _loop: PhaseLoop

    def __init__(self) -> None:
        super().__init__()
        self._steps = JobSteps()
        self._last_report = ""

    async def _attend_signals(self) -> None:
        """Open the letters; stand still while the job waits for a person."""
        job = self._job
        while True:
            while self._inbox.signals:
                received = self._inbox.signals[0]
                with suppress(StepInterrupted):
                    await self._steps.run_interruptible(
                        self._handle_signal(received), self._inbox.has_cancel
                    )
                self._inbox.signals.remove(received)
            if is_cancelled():
                # It arrived while an activity was under way that finished all the same.
                raise asyncio.CancelledError
            if job.waiting is None and self._is_reported_waiting:
                # The step that follows may be a long one.
                await self._report_to_project()
                continue
            if job.waiting is None or job.waiting.trying:
                self._note_going_on()
                return
            self._show_status(job)
            await self._report_to_project()
            await self._call_when_due()
            self._continue_as_new_if_due()
            await self._wait_for_signals()

    async def _wait_for_signals(self) -> None:
        """Wait for people, but for an answer or an approval only so long."""
        job = self._job
        timeout = questions.time_left(job, workflow.time())
        try:
            await workflow.wait_condition(
                lambda: bool(self._inbox.signals or self._inbox.refused), timeout=timeout
            )
        except TimeoutError:
            if not self._inbox.signals:
                self._inbox.notice(questions.apply_default_answer(job, workflow.time()))
        job.clock = workflow.now().timestamp()
        self._steps.may_continue_as_new = True

    async def _handle_signal(self, received: ReceivedSignal) -> None:
        try:
            await self._apply_signal(received)
        except StepFailed as failed:
            self._inbox.refuse(f"signal {received.signal}: {failed.message}")
            if failed.kind == "CheckpointMissing":
                await self._recover_checkpoint()

    async def _apply_signal(self, received: ReceivedSignal) -> None:
        job = self._job
        if received.signal == "cancel":
            raise CancelRequested(received.payload.get("reason") or "cancelled by a person")
        if received.signal == "rewind":
            await self._rewind_asked_by_person(received.payload)
        elif received.signal == "pause":
            if self._is_paused():
                # To show the folder anew would take away what they edited.
                self._inbox.refuse("signal pause: the job is paused already")
                return
            try:
                # Before the job shows as paused: what is edited from then on is taken in.
                await self._show_folder()
            finally:
                job.paused_from = job.waiting.reason if job.waiting else None
                job.waiting = activity_failures.PAUSED
        elif received.signal == "limit":
            payload = {key: value for key, value in received.payload.items() if key != "by"}
            if refusal := self._loop.apply_limits(payload):
                self._inbox.refuse(f"signal limit: {refusal}")
        elif received.signal in questions.SIGNALS:
            if why := questions.take_answer(job, received, workflow.time()):
                self._inbox.refuse(why)
            elif received.signal != "answer":
                self._inbox.notice(questions.decision(job.approvals[-1]))
            elif by := received.payload.get("by"):
                self._inbox.notice(f"signal {received.signal}: taken, from {by}")
        elif received.signal == "tell":
            await self._take_remark(received.payload)
        elif received.signal == "bypass":
            if refusal := guards.grant_bypass(job, received.payload):
                self._inbox.refuse(f"signal bypass: {refusal}")
            else:
                self._inbox.notice(f"bypass of {received.payload['guard']} once")
        elif job.waiting is None:
            self._inbox.refuse("signal resume: the job is not waiting")
        elif job.waiting.reason in ("clarification", "approval"):
            self._inbox.refuse(f"signal resume: the job waits for a person. {job.waiting.remedy}")
        else:
            await self._resume_job(job.waiting, received.payload.get("set"))

    async def _take_remark(self, payload: dict[str, Any]) -> None:
        """Have the agent hear what a person says with its next turn."""
        job = self._job
        remark = Remark(
            text=payload["text"], by=payload.get("by", ""), phase=job.state.phase.number
        )
        if sum(len(each.text) for each in (*job.state.remarks, remark)) > MOST_REMARKS:
            self._inbox.refuse(
                f"signal tell: more than {MOST_REMARKS:,} characters were said to this job; pause "
                "it and edit instructions.md"
            )
            return
        await self._keep_remarks([remark], [remark.text] if payload.get("item") else [])
        job.add_correction(f"A person says: {remark.text}")
        # What is delivered may have to be otherwise now.
        job.drop_review()
        self._inbox.notice(f"{remark.by or 'a person'} told the agent: {remark.text[:200]}")
        happened = f"{remark.by or 'A person'} told the agent something"
        traces.note_trace(
            job, "correction", "person", "tell", happened, what_was_correct=remark.text
        )

    async def _keep_remarks(self, remarks: list[Remark], items: list[str]) -> None:
        job = self._job
        reply = await self._steps.keep_remarks(job, remarks, items)
        job.advance_to(reply.commit, reply.at)
        job.context = reply.context
        job.state.remarks = reply.remarks
        job.state.take_items(reply.scope)
        if reply.refused:
            self._inbox.refuse(f"signal tell: item: {reply.refused}")

    async def _rewind_asked_by_person(self, payload: dict[str, Any]) -> None:
        job, phase = self._job, payload.get("phase")
        if phase is not None and phase not in job.phases:
            self._inbox.refuse(
                f"signal rewind: there is no phase {phase}; the phases are {min(job.phases)} to "
                f"{job.last_phase}"
            )
            return
        if self._is_paused():
            await self._take_folder()
        details: dict[str, Any] = {"outcome": "rewound", "issue": payload["issue"]}
        details["by"] = payload.get("by") or "a person"
        if phase is not None:
            details["restore"] = job.phases[phase]
            details["restore_files"] = payload.get("restore_files", True)
            if details["restore_files"]:
                # They are taken back with the rest.
                job.person_edits = ""
        who = payload.get("by") or "A person"
        happened = f"{who} took phase {job.state.phase.number} back"
        traces.note_trace(
            job, "correction", "person", "rewind", happened, what_was_correct=payload["issue"]
        )
        await self._loop.change_phase("rewind", **details)
        job.waiting = None

    async def _show_folder(self) -> None:
        """Bring the folder up to date, since a person is about to look at it.

        Raises StepFailed where the checkpoint is missing. What a folder lacks that lags behind for
        another reason is not taken for removed.
        """
        try:
            shown = await self._steps.show_folder(self._job)
            self._inbox.moved_aside(shown.moved_aside)
        except StepFailed as failed:
            if failed.kind == "CheckpointMissing":
                raise
            self._inbox.notice(f"the folder may lack the last steps: {failed}")

    def _is_paused(self) -> bool:
        """Whether the folder is a person's now, since the job is paused."""
        waiting = self._job.waiting
        return waiting is not None and waiting.reason == "paused"

    async def _resume_job(self, waiting: WaitState, settings: dict[str, Any] | None) -> None:
        job, reason = self._job, waiting.reason
        if reason == "budget" and (still := self._loop.next_call_wait()):
            self._inbox.refuse(f"signal resume: {still.message} {still.remedy}")
            return
        if settings and not await self._set_model(settings):
            return
        if reason == "paused":
            await self._take_folder()
            # What it waited for then, the person has seen as well.
            reason = job.paused_from or reason
        if reason == "rewinds":
            # A person's own rewinds may have gone beyond the limit.
            job.limits.rewinds = max(job.limits.rewinds, job.rewinds) + 1
        elif reason in ("stuck", "review") or (reason == "endpoint" and job.course.narrowed_issue):
            job.course = Course()
            job.review_rejections = job.judge_refusals = 0
        job.waiting = None

    async def _set_model(self, settings: dict[str, Any]) -> bool:
        """Give the job other settings of its model; whether they can be taken.

        Raises StepFailed where they are none.
        """
        job = self._job
        reply = await self._steps.set_model(job, settings)
        limits = budget.with_model(job.limits, reply.model, reply.limits)
        if isinstance(limits, str):
            self._inbox.refuse(f"signal resume: {limits}")
            return False
        job.advance_to(reply.commit, reply.at)
        job.model, job.limits, job.can_require_call = reply.model, limits, True
        changes = "; ".join(reply.changes) or "as it was"
        self._inbox.notice(f"the model is set: {changes}")
        traces.note_trace(
            job, "correction", "person", "resume", f"A person set the model: {changes}"
        )
        return True

    async def _take_folder(self) -> None:
        """Take in what a person edited while the job was paused."""
        job = self._job
        imported = await self._steps.take_folder(job)
        job.advance_to(imported.commit, imported.at)
        job.state.take_items(imported.scope)
        # The files may be others now: the call of job_complete goes through its gate again.
        job.drop_review()
        for note in imported.notes:
            self._inbox.notice(note)
        if imported.edits:
            # Those of an earlier pause may not have been read yet.
            job.person_edits = f"{job.person_edits}\n{imported.edits}".strip()[-MOST_EDITS:]

    # Trouble

    async def _handle_failure(self, failed: StepFailed) -> None:
        """A step failed for good: go back if its checkpoint is lost, else wait for a person."""
        job = self._job
        if failed.kind in ("Endpoint", "StoreUnavailableError"):
            await self._pause_before_retry(failed)
        elif failed.kind != "CheckpointMissing" or not await self._recover_checkpoint():
            waiting = remedies.with_settings(activity_failures.wait_after_failure(failed), job)
            # Before the job shows as waiting, so that whoever looks finds it.
            await self._steps.write_error(job, waiting, failed)
            job.waiting = waiting

    async def _recover_checkpoint(self) -> bool:
        """Go back to the newest checkpoint there is, or wait for a person to bring one.

        Returns:
            False where that is the one the job stands on, and was the last time: what is missing
            is something else, such as the start of a phase.
        """
        job = self._job
        try:
            recovered = await self._steps.find_checkpoint(job)
        except StepFailed as lost:
            job.waiting = activity_failures.wait_after_failure(lost)
            return True
        if recovered.commit == job.commit:
            # It may have been on its way from another host.
            again, job.missing_checkpoint = job.missing_checkpoint == job.commit, job.commit
            return not again
        self._inbox.notice(
            f"checkpoint {job.commit[:12]} is lost; went back to {recovered.commit[:12]} "
            f"(phase {recovered.state.phase.number}, step {recovered.state.step})"
        )
        job.recent_checkpoints = [
            commit for commit in job.recent_checkpoints if commit != job.commit
        ]
        job.advance_to(recovered.commit, recovered.at)
        unheard = job.state.remarks[len(recovered.state.remarks) :]
        job.state = recovered.state
        # What is lost never was: the steps are the same that an undisturbed job takes.
        job.step = recovered.state.step
        for dropped in questions.drop_questions(job):
            self._inbox.notice(dropped)
        job.calls, job.next_call = recovered.calls, recovered.next_call
        job.failed_call = ""
        if recovered.failed_call is not None:
            job.failed_call = replies.failed_call(
                job.calls[recovered.failed_call], recovered.failure
            )
        job.handed_over, job.end_tried_step = recovered.handed_over, 0
        job.drop_review()
        job.correction, job.advice, job.timer, job.pending = None, "", None, None
        job.person_edits = ""
        job.course = Course()
        job.context = job.compacted_context = 0
        if unheard:
            # What people said is not lost with the checkpoint that held it.
            await self._keep_remarks(unheard, [])
        return True

    async def _pause_before_retry(self, failed: StepFailed) -> None:
        """An endpoint or a store is away: say so, and let it be for a while."""
        waiting = remedies.with_settings(activity_failures.wait_for_endpoint(failed), self._job)
        if self._job.waiting is None:
            await self._steps.write_error(self._job, waiting, failed)
        self._job.waiting = waiting
        self._show_status(self._job)
        await self._call_when_due()
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: bool(self._inbox.signals), timeout=failed.delay)
        self._steps.may_continue_as_new = True

    # What others see

    def _show_status(self, job: JobRecord) -> None:
        job.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = status.web_details(job, self._inbox.notices)
        memo = status.memo_fields(job)
        self._update_display(details, memo, status.attribute_values(job, memo))

    @property
    def _is_reported_waiting(self) -> bool:
        """Whether this is what the project was told last."""
        return bool(self._job.project) and self._last_report.startswith("waiting ")

    async def _report_to_project(self) -> None:
        """Tell the project this job works for how it stands, when that has changed."""
        job = self._job
        report = status.child_report(job, workflow.info().workflow_id)
        change = f"{report.status} {report.waiting} {report.asks} {report.message} {report.phase}"
        if not job.project or change == self._last_report:
            return
        self._last_report = change
        sending = self._steps.send_signal(job.project, "report", report.model_dump(mode="json"))
        if why := await asyncio.shield(sending):
            self._inbox.notice(f"project {job.project} could not be told: {why}")

    async def _call_when_due(self) -> None:
        """Call people for what they were not called for yet."""
        info = workflow.info()
        due = notifications.due_of_job(self._job, info.workflow_id, info.first_execution_run_id)
        await self._call_people(due, self._job.notifying)

    def _note_going_on(self) -> None:
        """What the job comes to wait for from here on is another wait, also for the same reason."""
        if self._job.waiting is None and self._job.notifying:
            self._job.notifying.waits = {}

    def _continue_as_new_if_due(self) -> None:
        """Begin a new run with the same state once the history is long."""
        job = self._job
        due = self._steps.may_continue_as_new and job.result is None
        if due and self._is_long(job, job.limits.history_events):
            self._continue_as_new(job)
