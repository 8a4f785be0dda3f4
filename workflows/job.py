"""The job: one agent at work on one set of instructions, from start to result.

    prepare → bootstrap → tactical → strategic → tactical → … → final → result

The loop below does one thing at a time: attend to what people sent, then either ask the model
for a reply or carry out the next call of the reply at hand. Whatever the model does, the plan's
rhythm is kept here: what ends a phase passes its gate first, and what a step made counts only
once its checkpoint is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from protocol.course import Course
from protocol.payloads import Refused, read_start
from protocol.record import JobRecord, Letter, Waiting
from protocol.starting import PrepareRequest
from workflows import guards, parking, questions, status, traces
from workflows.parking import StepFailed
from workflows.phase_loop import PhaseLoop
from workflows.signals import Signals
from workflows.start import Start
from workflows.steps import Steps


class CancelAsked(Exception):
    """A person sent the signal `cancel`."""


class Interrupted(Exception):
    """The step in flight was given up for a signal; nothing of it counts."""


@workflow.defn(name="Job")
class Job(Signals):
    """Runs an agent on instructions. Input: {"agent": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = Steps()
        self._start = Start(self._steps, self._inbox)
        self._shown: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._told = ""

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """From start to result; see the module."""
        self._job = await self._begin(start)
        self._job.run = workflow.info().run_id
        self._loop = PhaseLoop(
            self._job, self._steps, self._inbox.notice, lambda: bool(self._inbox.letters)
        )
        try:
            while (result := self._job.result) is None:
                await self._advance()
            return result.model_dump()
        except CancelAsked as asked:
            await self._cancelled(str(asked), by_signal=True)
            raise asyncio.CancelledError from None
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self._cancelled("cancelled through Temporal", by_signal=False)
            raise

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Where the job stands."""
        job = getattr(self, "_job", None)
        if job is None:
            return status.preparing(self._inbox.notices, self._start.waiting)
        return status.status(job, self._inbox.notices)

    async def _begin(self, start: tuple[Any, ...]) -> JobRecord:
        if workflow.info().continued_run_id:
            job = JobRecord.model_validate(start[0])
            self._inbox.letters[:0] = job.inbox
            self._inbox.notices[:0] = job.notices
            return job
        try:
            asked = read_start(start)
            request = PrepareRequest(
                **asked.model_dump(), chain=workflow.info().first_execution_run_id
            )
            made = await self._start.prepared(request)
        except Refused as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except StepFailed as failed:
            raise ApplicationError(failed.message, type="BadStart", non_retryable=True) from None
        job = JobRecord.begin(made, workflow.now().timestamp())
        for line in job.notices:
            self._inbox.notice(line)
        if asked.project:
            job.project = asked.project.id
            if asked.fork:
                job.lesson = " ".join(asked.project.handoff.inputs.results)[:2000]
        self._show(job)
        return job

    async def _advance(self) -> None:
        await self._attend()
        try:
            await self._interruptible(self._loop.step())
            if self._job.waiting and self._job.waiting.trying:
                self._job.waiting = None
        except Interrupted:
            pass
        except StepFailed as failed:
            await self._trouble(failed)
        if traces.due(self._job):
            with suppress(Interrupted):
                await self._interruptible(self._loop.keep_traces())
        self._job.count_time(workflow.now().timestamp())
        self._show(self._job)
        await self._tell_project()
        self._continue_as_new_if_due()

    # What people send

    async def _attend(self) -> None:
        """Open the letters; stand still while the job waits for a person."""
        job = self._job
        while True:
            while self._inbox.letters:
                letter = self._inbox.letters[0]
                try:
                    await self._obey(letter)
                except StepFailed as failed:
                    self._inbox.refuse(f"signal {letter.signal}: {failed.message}")
                    if failed.kind == "CheckpointMissing":
                        await self._trouble(failed)
                self._inbox.letters.remove(letter)
            if _is_cancelled():
                # It arrived while an activity was under way that finished all the same.
                raise asyncio.CancelledError
            if job.waiting is None or job.waiting.trying:
                return
            self._show(job)
            await self._tell_project()
            self._continue_as_new_if_due()
            await self._wait_for_letters()

    async def _wait_for_letters(self) -> None:
        """Wait for people, but for the answer to a question only so long."""
        job = self._job
        left = questions.time_left(job, workflow.time())
        try:
            await workflow.wait_condition(
                lambda: bool(self._inbox.letters or self._inbox.refused), timeout=left
            )
        except TimeoutError:
            if not self._inbox.letters:
                self._inbox.notice(questions.time_out(job))
        job.clock = workflow.now().timestamp()
        self._steps.may_continue_as_new = True

    async def _obey(self, letter: Letter) -> None:
        job = self._job
        if letter.signal == "cancel":
            raise CancelAsked(letter.payload.get("reason") or "cancelled by a person")
        if letter.signal == "rewind":
            await self._rewind_asked_by_person(letter.payload)
        elif letter.signal == "pause":
            try:
                # Before the job shows as paused: what is edited from then on is taken in.
                await self._steps.show_folder(job)
            finally:
                job.waiting = parking.PAUSED
        elif letter.signal == "limit":
            if refusal := self._loop.limit(letter.payload):
                self._inbox.refuse(f"signal limit: {refusal}")
        elif letter.signal in questions.SIGNALS:
            if why := questions.take(job, letter):
                self._inbox.refuse(why)
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
            await self._resume(job.waiting)

    async def _rewind_asked_by_person(self, payload: dict[str, Any]) -> None:
        job, phase = self._job, payload.get("phase")
        if phase is not None and phase not in job.phases:
            self._inbox.refuse(
                f"signal rewind: there is no phase {phase}; the phases are {min(job.phases)} to "
                f"{job.last_phase}"
            )
            return
        details: dict[str, Any] = {"outcome": "rewound", "issue": payload["issue"]}
        if phase is not None:
            details["restore"] = job.phases[phase]
            details["restore_files"] = payload.get("restore_files", True)
        happened = f"A person took phase {job.state.phase.number} back"
        traces.note(
            job, "correction", "person", "rewind", happened, what_was_correct=payload["issue"]
        )
        await self._loop.turn("rewind", **details)
        job.waiting = None

    async def _resume(self, waiting: Waiting) -> None:
        job = self._job
        if waiting.reason == "paused":
            taken = await self._steps.take_folder(job)
            job.move_to(taken.commit)
            job.at = taken.at
            job.state.take_items(taken.scope)
            # The files may be others now: the call of job_complete goes through its gate again.
            job.review = None
            for note in taken.notes:
                self._inbox.notice(note)
        elif waiting.reason == "rewinds":
            # A person's own rewinds may have gone beyond the limit.
            job.limits.rewinds = max(job.limits.rewinds, job.rewinds) + 1
        elif waiting.reason == "budget" and (still := self._loop.no_room()):
            self._inbox.refuse(f"signal resume: {still.message} {still.remedy}")
            return
        elif waiting.reason in ("stuck", "review"):
            job.course = Course()
            job.sent_back = job.refused_completions = job.judged_no = 0
        job.waiting = None

    async def _interruptible(self, step: Coroutine[Any, Any, Any]) -> None:
        """Run a step, but give it up at once when a letter asks for that."""
        task = asyncio.create_task(step)
        try:
            await workflow.wait_condition(
                lambda: task.done() or self._inbox.urgent(self._job.phases)
            )
        finally:
            given_up = not task.done()
            if given_up:
                task.cancel()
                await workflow.wait([task])
                if not task.cancelled():
                    task.exception()  # looked at, or it is logged as one that nobody saw
        try:
            task.result()
        except (FailureError, asyncio.CancelledError) as error:
            if given_up and is_cancelled_exception(error):
                raise Interrupted from None
            raise

    # Trouble and ends

    async def _trouble(self, failed: StepFailed) -> None:
        """A step failed for good: go back if its checkpoint is lost, else wait for a person."""
        job = self._job
        if failed.kind == "Endpoint":
            await self._try_again(failed)
            return
        if failed.kind != "CheckpointMissing":
            waiting = parking.waiting_for(failed)
            # Before the job shows as waiting, so that whoever looks finds it.
            await self._steps.write_error(job, waiting)
            job.waiting = waiting
            return
        try:
            found = await self._steps.find_checkpoint(job)
        except StepFailed as lost:
            job.waiting = parking.waiting_for(lost)
            return
        self._inbox.notice(
            f"checkpoint {job.commit[:12]} is lost; went back to {found.commit[:12]} "
            f"(phase {found.state.phase.number}, step {found.state.step})"
        )
        job.recent = [commit for commit in job.recent if commit != job.commit]
        job.move_to(found.commit)
        job.at, job.state = found.at, found.state
        # What is lost never was: the steps are the same that an undisturbed job takes.
        job.step = found.state.step
        for dropped in questions.drop(job):
            self._inbox.notice(dropped)
        job.calls, job.next_call, job.correction, job.review = [], 0, None, None
        job.course, job.timer = Course(), None
        job.context = job.compacted = 0

    async def _try_again(self, failed: StepFailed) -> None:
        """The endpoint has failed for long: say so, and let it be for a while."""
        waiting = parking.trying(failed)
        if self._job.waiting is None:
            await self._steps.write_error(self._job, waiting)
        self._job.waiting = waiting
        self._show(self._job)
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: bool(self._inbox.letters), timeout=failed.delay)
        self._steps.may_continue_as_new = True

    async def _cancelled(self, reason: str, *, by_signal: bool) -> None:
        """Write down that the job was cancelled; only the server can then close it so."""
        keeping = asyncio.create_task(self._loop.keep_traces())
        with suppress(asyncio.CancelledError):
            await asyncio.shield(keeping)
        await keeping
        try:
            closing = asyncio.create_task(
                self._steps.close(self._job, "cancelled", reason=reason, request_cancel=by_signal)
            )
            # The cancellation that it asks for may arrive before it ends, and must not end it.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(closing)
            closed = await closing
            self._job.move_to(closed.commit)
            self._job.result = closed.result
        except StepFailed as failed:
            self._inbox.notice(f"completion.json not written: {failed.message}")
        self._job.waiting = None
        self._show(self._job)
        await self._tell_project()
        if by_signal:
            await workflow.wait_condition(_is_cancelled)

    async def _tell_project(self) -> None:
        """Tell the project this job works for how it stands, when that has changed."""
        job = self._job
        told = status.report(job, workflow.info().workflow_id)
        change = f"{told.status} {told.waiting} {told.message} {told.phase}"
        if not job.project or change == self._told:
            return
        self._told = change
        project: Any = workflow.get_external_workflow_handle(job.project)
        try:
            await asyncio.shield(project.signal("report", told.model_dump(mode="json")))
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            self._inbox.notice(f"project {job.project} could not be told: {error}")

    def _continue_as_new_if_due(self) -> None:
        """Begin a new run with the same state once the history is long."""
        job = self._job
        long = workflow.info().get_current_history_length() >= job.limits.history_events
        if long and self._steps.may_continue_as_new and job.result is None:
            job.inbox, job.notices = self._inbox.letters, self._inbox.notices
            workflow.continue_as_new(args=[job.model_dump(mode="json", exclude_defaults=True)])

    def _show(self, job: JobRecord) -> None:
        """Keep Temporal Web current; memo and attributes only when they change."""
        job.refusals += self._inbox.refused
        self._inbox.refused = 0
        workflow.set_current_details(status.details(job, self._inbox.notices))
        memo, attributes = status.memo(job), status.attributes(job)
        if memo != self._shown[0]:
            workflow.upsert_memo(memo)
        if attributes != self._shown[1]:
            workflow.upsert_search_attributes(
                [SearchAttributeKey.for_keyword(k).value_set(v) for k, v in attributes.items()]
            )
        self._shown = (memo, attributes)


def _is_cancelled() -> bool:
    return workflow.cancellation_reason() is not None
