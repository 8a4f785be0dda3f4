"""The job: one agent at work on one set of instructions, from start to result.

    prepare → bootstrap → tactical → strategic → tactical → … → final → result

The loop below does one thing at a time: attend to what people sent, then either ask the model
for a reply or carry out the next call of the reply at hand. Whatever the model does, the plan's
rhythm is kept here: what ends a phase passes its gate first, and what a step made counts only
once its checkpoint is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from protocol.payloads import Refused, read_start
from protocol.record import JobRecord, Letter, Waiting
from protocol.requests import Call, CloseRequest, PrepareRequest, TransitionRequest
from protocol.state import Purpose
from protocol.tools import ToolRoute
from workflows import gates, parking, status
from workflows.inbox import Inbox
from workflows.steps import Steps

NO_ACTION = (
    "Your last reply called no tool. Do todo {todo} with a tool, or call todo_complete when it is "
    "done."
)


class CancelAsked(Exception):
    """A person sent the signal `cancel`."""


class Interrupted(Exception):
    """The step in flight was given up for a signal; nothing of it counts."""


@workflow.defn(name="Job")
class Job:
    """Runs an agent on instructions. Input: {"agent": "…", "instructions": "…"}."""

    def __init__(self) -> None:
        self._inbox = Inbox()
        self._steps = Steps()
        self._shown: tuple[dict[str, str], dict[str, str]] = ({}, {})

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """From start to result; see the module."""
        self._job = await self._begin(start)
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

    # Signals only put into the inbox; see `_attend`.

    @workflow.signal(description='{"issue": "…", "phase": 3, "restore_files": true}')
    def rewind(self, *payload: Any) -> None:
        """Take the work back: reconsider the approach in the light of the issue."""
        self._inbox.put("rewind", payload)

    @workflow.signal(description='{"reason": "…"}')
    def cancel(self, *payload: Any) -> None:
        """End the job as cancelled; its last checkpoint is kept."""
        self._inbox.put("cancel", payload)

    @workflow.signal(description="{}")
    def pause(self, *payload: Any) -> None:
        """Stand still after the step in flight."""
        self._inbox.put("pause", payload)

    @workflow.signal(description="{}")
    def resume(self, *payload: Any) -> None:
        """Go on; also tries again what parked the job."""
        self._inbox.put("resume", payload)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, payload: Sequence[RawValue]) -> None:
        """A signal by a name that does not exist is refused visibly."""
        self._inbox.put(name, ())

    @workflow.query(description="What `starter.py show --json` prints.")
    def status(self) -> dict[str, Any]:
        """Where the job stands."""
        job = getattr(self, "_job", None)
        if job is None:
            return status.preparing(self._inbox.notices)
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
            made = await self._steps.prepare(request)
        except Refused as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            why = parking.message_of(error)
            raise ApplicationError(why, type="BadStart", non_retryable=True) from None
        job = JobRecord(
            agent=made.agent,
            model=made.model,
            title=made.title,
            root=made.root,
            commit=made.commit,
            at=made.at,
            state=made.state,
            tools=made.tools,
            limits=made.limits,
            search_attributes=made.search_attributes,
            phases={1: made.commit},
        )
        self._show(job)
        return job

    async def _advance(self) -> None:
        await self._attend()
        try:
            await self._interruptible(self._step())
        except Interrupted:
            pass
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            await self._trouble(error)
        self._show(self._job)
        self._continue_as_new_if_due()

    async def _step(self) -> None:
        job = self._job
        if job.next_call < len(job.calls):
            await self._carry_out(job.calls[job.next_call])
        elif job.calls_in_phase >= job.limits.model_calls_per_phase:
            job.waiting = parking.CALLS
        else:
            await self._ask_model()

    async def _ask_model(self) -> None:
        job = self._job
        reply = await self._steps.model_call(job)
        job.move_to(reply.commit)
        job.at = reply.at
        job.step += 1
        job.state.step = job.step
        job.calls_in_phase += 1
        job.usage.add(reply.usage)
        job.calls, job.next_call = reply.calls, 0
        todo = job.state.phase.current
        job.correction = None if reply.calls else NO_ACTION.format(todo=todo.id if todo else "")

    async def _carry_out(self, call: Call) -> None:
        job, kind = self._job, self._job.state.phase.kind
        route = job.route(call.tool)
        offered = [entry.name for entry in job.tools if kind in entry.phases]
        if route is None:
            await self._deny(call, gates.unknown_tool(call.tool, offered))
        elif why := gates.phase_rule(route, kind):
            await self._deny(call, why)
        elif call.tool == "todo_complete" and job.state.phase.open_count == 1:
            await self._end_phase(call, route)
        elif call.tool == "todo_rewind":
            await self._rewind_asked_by_agent(call, route)
        elif call.tool == "job_complete":
            await self._complete(call, route)
        else:
            await self._run(call, route)

    async def _run(self, call: Call, route: ToolRoute, refusal: str | None = None) -> None:
        """Run a tool call, or record that a gate refused it."""
        job = self._job
        reply = await self._steps.tool(job, call, route, refusal)
        job.move_to(reply.commit)
        if not route.local and not refusal:
            job.at = reply.at
        job.usage.tool_calls += 1
        if refusal:
            job.refusals += 1
        job.next_call = len(job.calls) if route.ends_reply else job.next_call + 1
        if reply.ok and call.tool == "todo_complete" and (todo := job.state.phase.current):
            job.state.complete_todo(todo.id)

    async def _deny(self, call: Call, why: str) -> None:
        job = self._job
        reply = await self._steps.deny(job, call, why)
        job.move_to(reply.commit)
        job.refusals += 1
        job.next_call += 1

    async def _end_phase(self, call: Call, route: ToolRoute) -> None:
        job = self._job
        facts = (await self._steps.facts(job)).facts
        outcome = gates.phase_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            await self._run(call, route, outcome.reason)
            return
        current = job.state.phase.current
        await self._turn(
            outcome.purpose, call=job.next_call, completes=current.id if current else None
        )

    async def _complete(self, call: Call, route: ToolRoute) -> None:
        job = self._job
        facts = (await self._steps.facts(job)).facts
        if refusal := gates.completion_gate(facts):
            await self._run(call, route, refusal.reason)
            return
        closed = await self._steps.close(job, self._close_request("completed", call=job.next_call))
        job.move_to(closed.commit)
        for todo in job.state.phase.todos:
            todo.done = True
        job.result = closed.result

    async def _rewind_asked_by_agent(self, call: Call, route: ToolRoute) -> None:
        job = self._job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = parking.REWINDS
            return
        facts = (await self._steps.facts(job)).facts
        if facts.arguments_error:
            await self._run(call, route, facts.arguments_error)
            return
        await self._turn("rewind", outcome="rewound", call=job.next_call)

    async def _turn(self, purpose: Purpose, **details: Any) -> None:
        """From the running phase to a new one, with the next number that was never used."""
        job = self._job
        rewinds = job.rewinds + (purpose == "rewind")
        request = TransitionRequest(
            **self._steps.at(job),
            number=job.last_phase + 1,
            purpose=purpose,
            rewinds=rewinds,
            **details,
        )
        turned = await self._steps.transition(job, request)
        job.move_to(turned.commit)
        job.at, job.state, job.rewinds = turned.at, turned.state, rewinds
        job.last_phase = request.number
        job.phases[request.number] = turned.commit
        job.usage.add(turned.usage)
        job.calls, job.next_call, job.calls_in_phase, job.correction = [], 0, 0, None
        for path in turned.moved_aside:
            self._inbox.notice(f"moved to lost+found: {path}")

    # What people send

    async def _attend(self) -> None:
        """Open the letters; stand still while the job waits for a person."""
        job = self._job
        while True:
            while self._inbox.letters:
                letter = self._inbox.letters[0]
                try:
                    await self._obey(letter)
                except ActivityError as error:
                    if is_cancelled_exception(error):
                        raise
                    self._inbox.refuse(f"signal {letter.signal}: {parking.message_of(error)}")
                    if parking.kind_of(error) == "CheckpointMissing":
                        await self._trouble(error)
                self._inbox.letters.remove(letter)
            if _is_cancelled():
                # It arrived while an activity was under way that finished all the same.
                raise asyncio.CancelledError
            if job.waiting is None:
                return
            self._show(job)
            self._continue_as_new_if_due()
            await workflow.wait_condition(lambda: bool(self._inbox.letters))
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
        elif job.waiting is None:
            self._inbox.refuse("signal resume: the job is not waiting")
        else:
            await self._resume(job.waiting)

    async def _rewind_asked_by_person(self, payload: dict[str, Any]) -> None:
        job, phase = self._job, payload.get("phase")
        if phase is not None and phase not in job.phases:
            self._inbox.refuse(
                f"signal rewind: there is no phase {phase}; the phases are 1 to {job.last_phase}"
            )
            return
        details: dict[str, Any] = {"outcome": "rewound", "issue": payload["issue"]}
        if phase is not None:
            details["restore"] = job.phases[phase]
            details["restore_files"] = payload.get("restore_files", True)
        await self._turn("rewind", **details)
        job.waiting = None

    async def _resume(self, waiting: Waiting) -> None:
        job = self._job
        if waiting.reason == "paused":
            taken = await self._steps.take_folder(job)
            job.move_to(taken.commit)
            job.at = taken.at
            for note in taken.notes:
                self._inbox.notice(note)
        elif waiting.reason == "rewinds":
            job.limits.rewinds += 1
        elif waiting.reason == "budget":
            job.calls_in_phase = 0
        job.waiting = None

    async def _interruptible(self, step: Coroutine[Any, Any, None]) -> None:
        """Run a step, but give it up at once when a letter asks for that."""
        task = asyncio.create_task(step)
        try:
            await workflow.wait_condition(lambda: task.done() or self._inbox.urgent)
        finally:
            given_up = not task.done()
            if given_up:
                task.cancel()
                await workflow.wait([task])
        try:
            task.result()
        except (ActivityError, asyncio.CancelledError) as error:
            if given_up and is_cancelled_exception(error):
                raise Interrupted from None
            raise

    # Trouble and ends

    async def _trouble(self, error: ActivityError) -> None:
        """A step failed for good: go back if its checkpoint is lost, else wait for a person."""
        job = self._job
        if parking.kind_of(error) != "CheckpointMissing":
            job.waiting = parking.waiting_for(error)
            await self._steps.write_error(job, job.waiting)
            return
        try:
            found = await self._steps.find_checkpoint(job)
        except ActivityError as lost:
            if is_cancelled_exception(lost):
                raise
            job.waiting = parking.waiting_for(lost)
            return
        self._inbox.notice(
            f"checkpoint {job.commit[:12]} is lost; went back to {found.commit[:12]} "
            f"(phase {found.state.phase.number}, step {found.state.step})"
        )
        job.recent = [commit for commit in job.recent if commit != job.commit]
        job.move_to(found.commit)
        job.at, job.state = found.at, found.state
        job.calls, job.next_call, job.correction = [], 0, None

    async def _cancelled(self, reason: str, *, by_signal: bool) -> None:
        """Write down that the job was cancelled; only the server can then close it so."""
        request = self._close_request("cancelled", reason=reason, request_cancel=by_signal)
        try:
            closed = await self._steps.close(self._job, request)
            self._job.move_to(closed.commit)
            self._job.result = closed.result
        except ActivityError as error:
            self._inbox.notice(f"completion.json not written: {parking.message_of(error)}")
        self._show(self._job)
        if by_signal:
            await workflow.wait_condition(_is_cancelled)

    def _close_request(self, outcome: Any, **details: Any) -> CloseRequest:
        job = self._job
        return CloseRequest(
            **self._steps.at(job),
            status=outcome,
            phases=job.last_phase,
            rewinds=job.rewinds,
            usage=job.usage,
            **details,
        )

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
