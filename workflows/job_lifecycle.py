"""How a job stands: what people send to it, what keeps it waiting, what it shows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol.course import Course
from protocol.record import JobRecord, Letter, Waiting
from protocol.state import Remark
from workflows import (
    budget,
    guards,
    notifications,
    parking,
    questions,
    remedies,
    replies,
    status,
    traces,
)
from workflows.activity_calls import Interrupted
from workflows.lifecycle import CancelAsked, Lifecycle, is_cancelled
from workflows.parking import StepFailed
from workflows.phase_loop import PhaseLoop
from workflows.steps import Steps

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
        self._steps = Steps()
        self._told = ""

    async def _attend(self) -> None:
        """Open the letters; stand still while the job waits for a person."""
        job = self._job
        while True:
            while self._inbox.letters:
                letter = self._inbox.letters[0]
                with suppress(Interrupted):
                    await self._steps.interruptible(self._open(letter), self._inbox.cancels)
                self._inbox.letters.remove(letter)
            if is_cancelled():
                # It arrived while an activity was under way that finished all the same.
                raise asyncio.CancelledError
            if job.waiting is None and self._is_thought_waiting:
                # The step that follows may be a long one.
                await self._tell_project()
                continue
            if job.waiting is None or job.waiting.trying:
                self._note_going_on()
                return
            self._show(job)
            await self._tell_project()
            await self._call_when_due()
            self._continue_as_new_if_due()
            await self._wait_for_letters()

    async def _wait_for_letters(self) -> None:
        """Wait for people, but for an answer or an approval only so long."""
        job = self._job
        left = questions.time_left(job, workflow.time())
        try:
            await workflow.wait_condition(
                lambda: bool(self._inbox.letters or self._inbox.refused), timeout=left
            )
        except TimeoutError:
            if not self._inbox.letters:
                self._inbox.notice(questions.time_out(job, workflow.time()))
        job.clock = workflow.now().timestamp()
        self._steps.may_continue_as_new = True

    async def _open(self, letter: Letter) -> None:
        try:
            await self._obey(letter)
        except StepFailed as failed:
            self._inbox.refuse(f"signal {letter.signal}: {failed.message}")
            if failed.kind == "CheckpointMissing":
                await self._go_back()

    async def _obey(self, letter: Letter) -> None:
        job = self._job
        if letter.signal == "cancel":
            raise CancelAsked(letter.payload.get("reason") or "cancelled by a person")
        if letter.signal == "rewind":
            await self._rewind_asked_by_person(letter.payload)
        elif letter.signal == "pause":
            if self._keeps_edits():
                # To show the folder anew would take away what they edited.
                self._inbox.refuse("signal pause: the job is paused already")
                return
            try:
                # Before the job shows as paused: what is edited from then on is taken in.
                await self._show_folder()
            finally:
                job.paused_from = job.waiting.reason if job.waiting else None
                job.waiting = parking.PAUSED
        elif letter.signal == "limit":
            payload = {key: value for key, value in letter.payload.items() if key != "by"}
            if refusal := self._loop.limit(payload):
                self._inbox.refuse(f"signal limit: {refusal}")
        elif letter.signal in questions.SIGNALS:
            if why := questions.take(job, letter, workflow.time()):
                self._inbox.refuse(why)
            elif letter.signal != "answer":
                self._inbox.notice(questions.decision(job.approvals[-1]))
            elif by := letter.payload.get("by"):
                self._inbox.notice(f"signal {letter.signal}: taken, from {by}")
        elif letter.signal == "tell":
            await self._take_remark(letter.payload)
        elif letter.signal == "bypass":
            if refusal := guards.bypass(job, letter.payload):
                self._inbox.refuse(f"signal bypass: {refusal}")
            else:
                self._inbox.notice(f"bypass of {letter.payload['guard']} once")
        elif job.waiting is None:
            self._inbox.refuse("signal resume: the job is not waiting")
        elif job.waiting.reason in ("clarification", "approval"):
            self._inbox.refuse(f"signal resume: the job waits for a person. {job.waiting.remedy}")
        else:
            await self._resume(job.waiting, letter.payload.get("set"))

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
        job.correct(f"A person says: {remark.text}")
        # What is delivered may have to be otherwise now.
        job.drop_review()
        self._inbox.notice(f"{remark.by or 'a person'} told the agent: {remark.text[:200]}")
        happened = f"{remark.by or 'A person'} told the agent something"
        traces.note(job, "correction", "person", "tell", happened, what_was_correct=remark.text)

    async def _keep_remarks(self, remarks: list[Remark], items: list[str]) -> None:
        job = self._job
        told = await self._steps.keep_remarks(job, remarks, items)
        job.move_to(told.commit, told.at)
        job.context = told.context
        job.state.remarks = told.remarks
        job.state.take_items(told.scope)
        if told.refused:
            self._inbox.refuse(f"signal tell: item: {told.refused}")

    async def _rewind_asked_by_person(self, payload: dict[str, Any]) -> None:
        job, phase = self._job, payload.get("phase")
        if phase is not None and phase not in job.phases:
            self._inbox.refuse(
                f"signal rewind: there is no phase {phase}; the phases are {min(job.phases)} to "
                f"{job.last_phase}"
            )
            return
        if self._keeps_edits():
            await self._take_folder()
        details: dict[str, Any] = {"outcome": "rewound", "issue": payload["issue"]}
        details["by"] = payload.get("by") or "a person"
        if phase is not None:
            details["restore"] = job.phases[phase]
            details["restore_files"] = payload.get("restore_files", True)
            if details["restore_files"]:
                # They are taken back with the rest.
                job.edits = ""
        who = payload.get("by") or "A person"
        happened = f"{who} took phase {job.state.phase.number} back"
        traces.note(
            job, "correction", "person", "rewind", happened, what_was_correct=payload["issue"]
        )
        await self._loop.turn("rewind", **details)
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

    def _keeps_edits(self) -> bool:
        """Whether the folder is a person's now, since the job is paused."""
        waiting = self._job.waiting
        return waiting is not None and waiting.reason == "paused"

    async def _resume(self, waiting: Waiting, settings: dict[str, Any] | None) -> None:
        job, reason = self._job, waiting.reason
        if reason == "budget" and (still := self._loop.no_room()):
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
        elif reason in ("stuck", "review") or (reason == "endpoint" and job.course.narrowed):
            job.course = Course()
            job.sent_back = job.judged_no = 0
        job.waiting = None

    async def _set_model(self, settings: dict[str, Any]) -> bool:
        """Give the job other settings of its model; whether they can be taken.

        Raises StepFailed where they are none.
        """
        job = self._job
        made = await self._steps.set_model(job, settings)
        limits = budget.with_model(job.limits, made.model, made.limits)
        if isinstance(limits, str):
            self._inbox.refuse(f"signal resume: {limits}")
            return False
        job.move_to(made.commit, made.at)
        job.model, job.limits, job.may_demand = made.model, limits, True
        told = "; ".join(made.changes) or "as it was"
        self._inbox.notice(f"the model is set: {told}")
        traces.note(job, "correction", "person", "resume", f"A person set the model: {told}")
        return True

    async def _take_folder(self) -> None:
        """Take in what a person edited while the job was paused."""
        job = self._job
        taken = await self._steps.take_folder(job)
        job.move_to(taken.commit, taken.at)
        job.state.take_items(taken.scope)
        # The files may be others now: the call of job_complete goes through its gate again.
        job.drop_review()
        for note in taken.notes:
            self._inbox.notice(note)
        if taken.edits:
            # Those of an earlier pause may not have been read yet.
            job.edits = f"{job.edits}\n{taken.edits}".strip()[-MOST_EDITS:]

    # Trouble

    async def _trouble(self, failed: StepFailed) -> None:
        """A step failed for good: go back if its checkpoint is lost, else wait for a person."""
        job = self._job
        if failed.kind in ("Endpoint", "StoreAway"):
            await self._try_again(failed)
        elif failed.kind != "CheckpointMissing" or not await self._go_back():
            waiting = remedies.with_settings(parking.waiting_for(failed), job)
            # Before the job shows as waiting, so that whoever looks finds it.
            await self._steps.write_error(job, waiting, failed)
            job.waiting = waiting

    async def _go_back(self) -> bool:
        """Go back to the newest checkpoint there is, or wait for a person to bring one.

        Returns:
            False where that is the one the job stands on, and was the last time: what is missing
            is something else, such as the start of a phase.
        """
        job = self._job
        try:
            found = await self._steps.find_checkpoint(job)
        except StepFailed as lost:
            job.waiting = parking.waiting_for(lost)
            return True
        if found.commit == job.commit:
            # It may have been on its way from another host.
            again, job.missed = job.missed == job.commit, job.commit
            return not again
        self._inbox.notice(
            f"checkpoint {job.commit[:12]} is lost; went back to {found.commit[:12]} "
            f"(phase {found.state.phase.number}, step {found.state.step})"
        )
        job.recent = [commit for commit in job.recent if commit != job.commit]
        job.move_to(found.commit, found.at)
        unheard = job.state.remarks[len(found.state.remarks) :]
        job.state = found.state
        # What is lost never was: the steps are the same that an undisturbed job takes.
        job.step = found.state.step
        for dropped in questions.drop(job):
            self._inbox.notice(dropped)
        job.calls, job.next_call = found.calls, found.next_call
        job.failed_call = ""
        if found.failed is not None:
            job.failed_call = replies.failed_call(job.calls[found.failed], found.why)
        job.handed_over, job.end_tried = found.handed_over, 0
        job.drop_review()
        job.correction, job.advice, job.timer, job.pending = None, "", None, None
        job.edits = ""
        job.course = Course()
        job.context = job.compacted = 0
        if unheard:
            # What people said is not lost with the checkpoint that held it.
            await self._keep_remarks(unheard, [])
        return True

    async def _try_again(self, failed: StepFailed) -> None:
        """An endpoint or a store is away: say so, and let it be for a while."""
        waiting = remedies.with_settings(parking.trying(failed), self._job)
        if self._job.waiting is None:
            await self._steps.write_error(self._job, waiting, failed)
        self._job.waiting = waiting
        self._show(self._job)
        await self._call_when_due()
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: bool(self._inbox.letters), timeout=failed.delay)
        self._steps.may_continue_as_new = True

    # What others see

    def _show(self, job: JobRecord) -> None:
        job.refusals += self._inbox.refused
        self._inbox.refused = 0
        details = status.details(job, self._inbox.notices)
        told = status.memo(job)
        self._display(details, told, status.attributes(job, told))

    @property
    def _is_thought_waiting(self) -> bool:
        """Whether this is what the project was told last."""
        return bool(self._job.project) and self._told.startswith("waiting ")

    async def _tell_project(self) -> None:
        """Tell the project this job works for how it stands, when that has changed."""
        job = self._job
        told = status.report(job, workflow.info().workflow_id)
        change = f"{told.status} {told.waiting} {told.asks} {told.message} {told.phase}"
        if not job.project or change == self._told:
            return
        self._told = change
        report = self._steps.tell(job.project, "report", told.model_dump(mode="json"))
        if why := await asyncio.shield(report):
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
            self._hand_over(job)
