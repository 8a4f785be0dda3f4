"""The activities of a job: what each is given, and the line that Temporal Web shows for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol.record import JobRecord, Timer, Waiting
from protocol.requests import (
    At,
    Call,
    Compacted,
    CompactRequest,
    Done,
    ErrorNote,
    Imported,
    ModelReply,
    ModelRequest,
    Recovered,
    RecoverRequest,
    ShowCallRequest,
    Shown,
    ShownCall,
    TellRequest,
    Told,
    ToolReply,
    ToolRequest,
)
from protocol.starting import ModelSet, Prepared, PrepareRequest, SetModel
from protocol.state import Remark
from protocol.tools import ToolRoute
from protocol.traces import Stored, StoreTraces, Trace
from workflows import budget, replies
from workflows.activity_calls import TEN_MINUTES, position, root, story
from workflows.ending_steps import TURNS, EndingSteps
from workflows.parking import StepFailed


class Steps(EndingSteps):
    """The activities of one job, as coroutines of checkpoint to checkpoint."""

    async def prepare(self, request: PrepareRequest) -> Prepared:
        what = f"start {request.agent}"
        if fork := request.fork:
            what = f"fork {fork.job[:100]} from {fork.place}"
        return await self.regular(
            "prepare", request, Prepared, what, seconds=TEN_MINUTES, attempts=4
        )

    async def model_call(self, job: JobRecord) -> ModelReply:
        request = ModelRequest(**{**position(job), "step": job.step + 1})
        parts = (job.edits, job.next_correction, budget.running_low(job))
        if said := "\n".join(filter(None, parts)):
            request.correction = said
        if replies.must_call(job):
            request.must_call = True
        if replies.is_squeezed(job):
            request.squeezed = True
        return await self.regular(
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
        request = CompactRequest(**position(job), limit=limit)
        if hard:
            request.hard, request.limit = True, min(limit, job.context)
        return await self.regular(
            "compact",
            request,
            Compacted,
            story(job, f"compact {job.context:,} tokens"),
            seconds=job.limits.model_seconds * 2 + 60,
            attempts=TURNS,
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
        if job.pending:
            # Its guards have let it pass, or it would not be under way.
            request.pending, request.judged = job.pending, True
        elif job.timer:
            request.waited = job.timer.seconds
            if route.guarded:
                request.judged = True
        what = f"{call.tool} {call.path}" if call.path else call.tool
        summary = story(job, f"{what} refused" if refusal else what)
        attempts = job.limits.tool_attempts
        if route.local or refusal:
            return await self.local(call.tool, request, summary, route.seconds, attempts)
        return await self.regular(
            call.tool, request, ToolReply, summary, seconds=route.seconds, attempts=attempts
        )

    async def give_up_task(self, job: JobRecord) -> None:
        """Tell a server that its task is not wanted any more; not worth failing over."""
        route = job.route(job.calls[job.next_call].tool) if job.pending else None
        if route is None or job.pending is None or not job.pending.task:
            return
        request = self._tool_request(job, None)
        request.pending, request.gives_up, request.judged = job.pending, True, True
        with suppress(StepFailed):
            await self.regular(
                route.name,
                request,
                ToolReply,
                story(job, f"{route.name} is given up"),
                seconds=route.seconds,
                attempts=1,
            )

    def timer(self, call: Call) -> Timer:
        """When a call of `wait` ends that begins now."""
        now = workflow.time()
        ends = now + (call.seconds or 0)
        if call.until is not None:
            ends = max(now, min(ends, call.until))
        return Timer(begun=now, ends=ends)

    async def sleep(
        self, job: JobRecord, timer: Timer, most: float, woken: Callable[[], bool]
    ) -> bool:
        """Let time pass, at most so much; whether the timer is over, and not only interrupted."""
        left = timer.ends - workflow.time()
        if left <= 0:
            return True
        if woken():
            return False
        summary = story(job, f"wait {timer.seconds:,} s")
        try:
            await workflow.wait_condition(woken, timeout=min(left, most), timeout_summary=summary)
            over = False
        except TimeoutError:
            over = left <= most
        self.may_continue_as_new = True
        return over

    async def deny(self, job: JobRecord, call: Call, refusal: str) -> ToolReply:
        """Answer a call that no activity may be run for."""
        request = self._tool_request(job, refusal)
        summary = story(job, f"{call.tool[:60]} denied")
        return await self.local("deny_call", request, summary, 10, job.limits.tool_attempts)

    async def show_call(self, job: JobRecord) -> ShownCall:
        request = ShowCallRequest(**position(job), call=job.next_call)
        return await self.regular(
            "show_call", request, ShownCall, story(job, "ask a person"), seconds=60, attempts=4
        )

    async def store_traces(self, job: JobRecord, handed: list[Trace]) -> Stored:
        """Hand notes of the job to the store, which takes each once."""
        request = StoreTraces(
            **root(job),
            agent=job.agent,
            task=job.title,
            project=job.project,
            traces=handed,
        )
        count = len(handed)
        return await self.regular(
            "store_traces",
            request,
            Stored,
            story(job, f"{count} trace{'s' if count > 1 else ''}"),
            seconds=60,
            attempts=2,
        )

    async def keep_remarks(self, job: JobRecord, remarks: list[Remark], items: list[str]) -> Told:
        """Keep what people say with the job's instructions."""
        request = TellRequest(**position(job), remarks=remarks, items=items)
        return await self.regular(
            "tell", request, Told, story(job, "a person speaks"), seconds=60, attempts=4
        )

    async def find_checkpoint(self, job: JobRecord) -> Recovered:
        candidates = [*job.recent[::-1], *list(job.phases.values())[::-1]]
        request = RecoverRequest(**root(job), candidates=candidates)
        return await self.regular(
            "find_checkpoint",
            request,
            Recovered,
            "look for a checkpoint",
            seconds=TEN_MINUTES,
            attempts=2,
        )

    async def show_folder(self, job: JobRecord) -> Shown:
        return await self.regular(
            "show_folder", At(**position(job)), Shown, "show the folder", seconds=60, attempts=2
        )

    async def take_folder(self, job: JobRecord) -> Imported:
        return await self.regular(
            "take_folder",
            At(**position(job)),
            Imported,
            "take the folder",
            seconds=TEN_MINUTES,
            attempts=4,
        )

    async def set_model(self, job: JobRecord, settings: dict[str, Any]) -> ModelSet:
        return await self.regular(
            "set_model",
            SetModel(**position(job), set=settings),
            ModelSet,
            story(job, "settings of the model"),
            seconds=60,
            attempts=4,
        )

    async def write_error(
        self, job: JobRecord, waiting: Waiting, failed: StepFailed | None = None
    ) -> None:
        """Leave details in `errors/`, where people look; not worth failing over."""
        request = ErrorNote(**position(job), text=f"{waiting.message}\n\n{waiting.remedy}\n")
        if job.next_call < len(job.calls):
            request.call = job.next_call
        if failed:
            request.cause = "\n".join(failed.causes)
        with suppress(StepFailed):
            await self.regular(
                "write_error",
                request,
                Done,
                story(job, "note the error"),
                seconds=20,
                attempts=1,
            )

    def _tool_request(self, job: JobRecord, refusal: str | None) -> ToolRequest:
        request = ToolRequest(**position(job), call=job.next_call)
        if refusal:
            request.refusal = refusal[:2000]
        elif job.bypasses:
            request.bypass = list(job.bypasses)
        return request
