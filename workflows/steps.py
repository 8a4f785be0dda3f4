"""How activities are called: time limits, retries, summaries. Nothing here decides anything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

from protocol.endings import (
    Closed,
    CloseRequest,
    Ending,
    EndingRequest,
    Facts,
    FactsRequest,
    Judged,
    JudgeRequest,
    Outcome,
    Point,
    ReviewReply,
    ReviewRequest,
    Transitioned,
    TransitionRequest,
)
from protocol.record import JobRecord, Timer, Waiting
from protocol.reflection import Reflected, ReflectRequest
from protocol.requests import (
    LOST_WORKERS,
    At,
    Call,
    Compacted,
    CompactRequest,
    ErrorNote,
    Imported,
    ModelReply,
    ModelRequest,
    Recovered,
    RecoverRequest,
    ShowCallRequest,
    ShownCall,
    ToolReply,
    ToolRequest,
)
from protocol.starting import Prepared, PrepareRequest
from protocol.state import Data
from protocol.tools import ToolRoute
from protocol.traces import Stored, StoreTraces, Trace
from workflows import replies
from workflows.parking import StepFailed

HEARTBEAT = timedelta(seconds=5)
"""Also how soon a lost worker, or a cancelled call, is noticed."""
TEN_MINUTES = 10 * 60
R = TypeVar("R", bound=Data)


class Steps:
    """The activities of one job, as coroutines of checkpoint to checkpoint."""

    def __init__(self) -> None:
        self.may_continue_as_new = False
        """Whether the present workflow task has run no local activity.

        One that continues as new must not: a signal that arrives meanwhile makes the server
        throw the task away, and its local activities would run a second time.
        """

    def at(self, job: JobRecord) -> dict[str, Any]:
        """The fields of a request that say where the job stands."""
        place = {**self.root(job), "commit": job.commit}
        return {**place, "at": job.at, "step": job.step}

    def root(self, job: JobRecord) -> dict[str, str]:
        """The fields of a request that say where the job's checkpoints are."""
        return {"root": job.root, **({"remote": job.remote} if job.remote else {})}

    async def prepare(self, request: PrepareRequest) -> Prepared:
        what = f"start {request.agent}"
        if fork := request.fork:
            what = f"fork {fork.job[:100]} from phase {fork.phase}"
        return await self._regular(
            "prepare", request, Prepared, what, seconds=TEN_MINUTES, attempts=4
        )

    async def model_call(self, job: JobRecord) -> ModelReply:
        request = ModelRequest(**{**self.at(job), "step": job.step + 1})
        if job.correction:
            request.correction = job.correction
        if replies.must_call(job):
            request.must_call = True
        return await self._regular(
            "model_call",
            request,
            ModelReply,
            story(job, "model call"),
            seconds=job.limits.model_seconds + 30,
            attempts=0,
        )

    async def compact(self, job: JobRecord, *, hard: bool = False) -> Compacted:
        """Make the context smaller; `hard` when the endpoint said that it is too long."""
        limit = job.context_limit
        request = CompactRequest(**self.at(job), limit=limit)
        if hard:
            request.hard, request.limit = True, min(limit, job.context)
        return await self._regular(
            "compact",
            request,
            Compacted,
            story(job, f"compact {job.context:,} tokens"),
            seconds=job.limits.model_seconds * 2 + 60,
            attempts=4,
        )

    async def tool(
        self,
        job: JobRecord,
        call: Call,
        route: ToolRoute,
        refusal: str | None = None,
        answer: str | None = None,
        *,
        approved: bool = False,
    ) -> ToolReply:
        """One tool call, or the record of its refusal or answer."""
        request = self._tool_request(job, refusal)
        if approved:
            request.approved = True
        if answer is not None:
            request.answer = answer
        if route.ends_reply and (rest := len(job.calls) - job.next_call - 1):
            request.skip = rest
        if job.timer:
            request.waited = job.timer.seconds
        what = f"{call.tool} {call.path}" if call.path else call.tool
        summary = story(job, f"{what} refused" if refusal else what)
        attempts = job.limits.tool_attempts
        if route.local or refusal:
            return await self._local(call.tool, request, summary, route.seconds, attempts)
        return await self._regular(
            call.tool, request, ToolReply, summary, seconds=route.seconds, attempts=attempts
        )

    def timer(self, call: Call) -> Timer:
        """When a call of `wait` ends that begins now."""
        now = workflow.time()
        ends = now + (call.seconds or 0)
        if call.until is not None:
            ends = max(now, min(ends, call.until))
        return Timer(begun=now, ends=ends)

    async def sleep(self, job: JobRecord, timer: Timer, woken: Callable[[], bool]) -> bool:
        """Let time pass; whether it is over, and not only interrupted."""
        left = timer.ends - workflow.time()
        if left <= 0:
            return True
        if woken():
            return False
        summary = story(job, f"wait {timer.seconds:,} s")
        try:
            await workflow.wait_condition(woken, timeout=left, timeout_summary=summary)
            over = False
        except TimeoutError:
            over = True
        self.may_continue_as_new = True
        return over

    async def deny(self, job: JobRecord, call: Call, refusal: str) -> ToolReply:
        """Answer a call that no activity may be run for."""
        request = self._tool_request(job, refusal)
        summary = story(job, f"{call.tool[:60]} denied")
        return await self._local("deny_call", request, summary, 10, job.limits.tool_attempts)

    async def facts(self, job: JobRecord) -> Facts:
        request = FactsRequest(**self.at(job), call=job.next_call)
        # The last todo's `done_when` may be a command, for which its own route has the time.
        route = job.route("todo_complete")
        seconds = max(60, route.seconds) if route else 60
        return await self._regular(
            "gate_facts", request, Facts, story(job, "gate"), seconds=seconds, attempts=4
        )

    async def show_call(self, job: JobRecord) -> ShownCall:
        request = ShowCallRequest(**self.at(job), call=job.next_call)
        return await self._regular(
            "show_call", request, ShownCall, story(job, "ask a person"), seconds=60, attempts=4
        )

    async def judge_ending(
        self, job: JobRecord, route: ToolRoute, points: list[Point], *, approved: bool = False
    ) -> Ending:
        """Ask the guards of the call at hand, which would end the phase or the job."""
        request = EndingRequest(
            **self.at(job),
            call=job.next_call,
            points=points,
            approved=approved,
            bypass=list(job.bypasses),
            stop_hook_active=job.stop_hook_active,
        )
        return await self._regular(
            "judge_ending",
            request,
            Ending,
            story(job, f"guards of {route.name}"),
            seconds=route.seconds + 30,
            attempts=job.limits.tool_attempts,
        )

    async def transition(self, job: JobRecord, request: TransitionRequest) -> Transitioned:
        summary = story(
            job, f"{request.outcome}; phase {request.number} ({request.purpose}) begins"
        )
        return await self._regular(
            "transition", request, Transitioned, summary, seconds=TEN_MINUTES, attempts=4
        )

    async def close(self, job: JobRecord, outcome: Outcome, **details: Any) -> Closed:
        request = CloseRequest(
            **self.at(job),
            status=outcome,
            phases=job.last_phase,
            rewinds=job.rewinds,
            usage=job.usage,
            **details,
        )
        return await self._regular(
            "close_job", request, Closed, story(job, f"job {outcome}"), TEN_MINUTES, 4
        )

    async def reflect(self, job: JobRecord, issue: str, call: int | None) -> Reflected:
        """What the attempt that failed teaches; never worth holding the job up."""
        request = ReflectRequest(**self.at(job), issue=issue[:2000])
        if call is not None:
            request.call = call
        return await self._regular(
            "reflect",
            request,
            Reflected,
            story(job, "reflection"),
            seconds=job.limits.model_seconds * 2 + 60,
            attempts=2,
        )

    async def review(self, job: JobRecord, number: int, *, last: bool) -> ReviewReply:
        """One reply of the reviewer."""
        request = ReviewRequest(**self.at(job), call=job.next_call, number=number)
        if last:
            request.last = True
        return await self._regular(
            "review_job",
            request,
            ReviewReply,
            story(job, f"review call {number + 1}"),
            seconds=job.limits.model_seconds + 30,
            attempts=0,
        )

    async def store_traces(self, job: JobRecord, handed: list[Trace]) -> Stored:
        """Hand notes of the job to the store, which takes each once."""
        request = StoreTraces(
            **self.root(job),
            agent=job.agent,
            task=job.title,
            project=job.project,
            traces=handed,
        )
        count = len(handed)
        return await self._regular(
            "store_traces",
            request,
            Stored,
            story(job, f"{count} trace{'s' if count > 1 else ''}"),
            seconds=60,
            attempts=2,
        )

    async def judge_phase(self, job: JobRecord) -> Judged:
        """Ask the judge about the phase that the call at hand would end."""
        since = job.phases[job.state.phase.number]
        request = JudgeRequest(**self.at(job), call=job.next_call, since=since)
        return await self._regular(
            "judge_phase",
            request,
            Judged,
            story(job, "judge"),
            seconds=job.limits.model_seconds + 60,
            attempts=0,
        )

    async def find_checkpoint(self, job: JobRecord) -> Recovered:
        candidates = [*job.recent[::-1], *list(job.phases.values())[::-1]]
        request = RecoverRequest(**self.root(job), candidates=candidates)
        return await self._regular(
            "find_checkpoint",
            request,
            Recovered,
            "look for a checkpoint",
            seconds=TEN_MINUTES,
            attempts=2,
        )

    async def show_folder(self, job: JobRecord) -> Imported:
        return await self._regular(
            "show_folder", At(**self.at(job)), Imported, "show the folder", seconds=60, attempts=2
        )

    async def take_folder(self, job: JobRecord) -> Imported:
        return await self._regular(
            "take_folder",
            At(**self.at(job)),
            Imported,
            "take the folder",
            seconds=TEN_MINUTES,
            attempts=4,
        )

    async def write_error(self, job: JobRecord, waiting: Waiting) -> None:
        """Leave details in `errors/`, where people look; not worth failing over."""
        request = ErrorNote(**self.at(job), text=f"{waiting.message}\n\n{waiting.remedy}\n")
        with suppress(StepFailed):
            await self._regular(
                "write_error",
                request,
                Imported,
                story(job, "note the error"),
                seconds=20,
                attempts=1,
            )

    def _tool_request(self, job: JobRecord, refusal: str | None) -> ToolRequest:
        request = ToolRequest(**self.at(job), call=job.next_call)
        if refusal:
            request.refusal = refusal[:2000]
        elif job.bypasses:
            request.bypass = list(job.bypasses)
        return request

    async def _regular(
        self,
        name: str,
        request: Data,
        result: type[R],
        summary: str,
        seconds: int,
        attempts: int,
    ) -> R:
        """Run an activity; with 0 attempts as often as it takes."""
        try:
            reply: R = await workflow.execute_activity(
                name,
                request,
                result_type=result,
                start_to_close_timeout=timedelta(seconds=seconds),
                heartbeat_timeout=HEARTBEAT,
                # Failures say themselves when to try again (`activities.failures`). This is for
                # attempts of which nothing was heard any more: the first goes again at once.
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(milliseconds=100),
                    maximum_interval=timedelta(seconds=60),
                    maximum_attempts=attempts + LOST_WORKERS if attempts else 0,
                ),
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=summary,
            )
            return reply
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            raise StepFailed(name, error) from error
        finally:
            self.may_continue_as_new = True

    async def _local(
        self, name: str, request: ToolRequest, summary: str, seconds: int, attempts: int
    ) -> ToolReply:
        self.may_continue_as_new = False
        try:
            reply: ToolReply = await workflow.execute_local_activity(
                name,
                request,
                result_type=ToolReply,
                start_to_close_timeout=timedelta(seconds=seconds),
                retry_policy=RetryPolicy(maximum_attempts=attempts),
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=summary,
            )
            return reply
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            raise StepFailed(name, error) from error


def story(job: JobRecord, what: str) -> str:
    """A line for Temporal Web: `phase 2 · todo 3 · write_file notes/a.md`."""
    phase = job.state.phase
    todo = f" · todo {phase.current.id}" if phase.current else ""
    return f"phase {phase.number}{todo} · {what}"[:180]
