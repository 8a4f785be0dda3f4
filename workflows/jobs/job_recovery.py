"""Recover from a failed step: go back, try again later, or wait for a person."""

import asyncio
from contextlib import suppress

from temporalio import workflow

from protocol.course_window import Course
from protocol.job_record import JobRecord
from protocol.job_state import Remark
from workflows.jobs import questions
from workflows.jobs.job_display import JobDisplay
from workflows.jobs.job_steps import JobSteps
from workflows.rules import endpoint_remedies, skipped_calls
from workflows.runtime import wait_states
from workflows.runtime.activity_calls import count_unfinished_replies
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.inbox import Inbox


class JobRecovery:
    """Keeps a job with a failed step from being lost."""

    def __init__(self, job: JobRecord, steps: JobSteps, inbox: Inbox, display: JobDisplay) -> None:
        self._job = job
        self._steps = steps
        self._inbox = inbox
        self._display = display

    async def handle_failure(self, failed: StepFailed) -> None:
        """Go back if the step's checkpoint is lost; else wait for what is away, or for a person."""
        job = self._job
        count_unfinished_replies(job, failed)
        if failed.is_outage or failed.kind in ("Endpoint", "StoreUnavailableError"):
            await self._pause_before_retry(failed)
        elif failed.kind != "CheckpointMissing" or not await self.recover_checkpoint():
            waiting = endpoint_remedies.wait_with_remedy(
                wait_states.step_failure_wait(failed), job, failed
            )
            # Shown before the job waits, so that the details are there.
            await self._steps.write_error(job, waiting, failed)
            job.waiting = waiting

    async def recover_checkpoint(self) -> bool:
        """Go back to the newest existing checkpoint, or wait for a person to restore one.

        Returns:
            False if that is the job's own checkpoint, as it was the last time: something else is
            missing, such as the start of a phase.
        """
        job = self._job
        try:
            recovered = await self._steps.find_checkpoint(job)
        except StepFailed as error:
            if error.is_outage:
                await self._pause_before_retry(error)
            else:
                job.waiting = wait_states.step_failure_wait(error)
            return True
        if recovered.commit == job.commit:
            # It may have come late from another host, where the trees of open helpers remain.
            job.helpers = []
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
        # Count the lost steps as never taken, so that the job repeats the steps of an undisturbed
        # one.
        job.step = recovered.state.step
        for dropped in questions.drop_questions(job):
            self._inbox.notice(dropped)
        job.calls, job.next_call = recovered.calls, recovered.next_call
        job.call_start = None
        job.failed_call = ""
        if recovered.failed_call is not None:
            job.failed_call = skipped_calls.failed_call_in_reply(
                job.calls[recovered.failed_call], recovered.failure
            )
        job.handed_over, job.end_tried_step = recovered.handed_over, 0
        job.drop_review()
        job.correction, job.advice, job.timer, job.pending = None, "", None, None
        job.helpers = []
        job.person_edits = ""
        job.course = Course()
        job.context = job.compacted_context = 0
        if unheard:
            # Remarks of people survive the loss of the checkpoint that held them.
            await self.keep_remarks(unheard, [])
        return True

    async def keep_remarks(self, remarks: list[Remark], items: list[str]) -> str:
        """Write people's remarks into a checkpoint; `items` are added to the scope.

        Returns:
            Why the items cannot be added; empty if they are.
        """
        job = self._job
        reply = await self._steps.keep_remarks(job, remarks, items)
        job.advance_to(reply.commit, reply.at)
        job.context = reply.context
        job.state.remarks = reply.remarks
        job.state.take_items(reply.scope)
        return reply.refused

    async def _pause_before_retry(self, failed: StepFailed) -> None:
        """Show that an endpoint, a store or a remote is unavailable, and wait before retrying."""
        waiting = endpoint_remedies.wait_with_remedy(
            wait_states.temporary_failure_wait(failed), self._job, failed
        )
        if self._job.waiting is None:
            await self._steps.write_error(self._job, waiting, failed)
        self._job.waiting = waiting
        self._display.show_status()
        await self._display.call_people()
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: bool(self._inbox.signals), timeout=failed.delay)
        self._steps.may_continue_as_new = True
