"""The activities of a job: what each is given, and the line that Temporal Web shows for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import workflow

from protocol.record import JobRecord, WaitState, WaitTimer
from protocol.requests import (
    Call,
    CompactReply,
    CompactRequest,
    EmptyReply,
    FolderReply,
    ImportReply,
    JobPosition,
    ModelReply,
    ModelRequest,
    RecoverReply,
    RecoverRequest,
    RemarksReply,
    RemarksRequest,
    ShowCallReply,
    ShowCallRequest,
    ToolReply,
    ToolRequest,
    WriteErrorRequest,
)
from protocol.start import PrepareReply, PrepareRequest, SetModelReply, SetModelRequest
from protocol.state import Remark
from protocol.tools import ToolRoute
from protocol.traces import StoreTracesReply, StoreTracesRequest, Trace
from workflows import budget, replies
from workflows.activity_calls import TEN_MINUTES, checkpoint_fields, position_fields, step_summary
from workflows.activity_failures import StepFailed
from workflows.ending_steps import TURNS, EndingSteps


class JobSteps(EndingSteps):
    """The activities of one job, as coroutines of checkpoint to checkpoint."""

    async def prepare_job(self, request: PrepareRequest) -> PrepareReply:
        what = f"start {request.agent}"
        if fork := request.fork:
            what = f"fork {fork.job[:100]} from {fork.place}"
        return await self.run_activity(
            "prepare", request, PrepareReply, what, seconds=TEN_MINUTES, attempts=4
        )

    async def model_call(self, job: JobRecord) -> ModelReply:
        request = ModelRequest(**{**position_fields(job), "step": job.step + 1})
        parts = (job.person_edits, job.next_correction, budget.running_low(job))
        if said := "\n".join(filter(None, parts)):
            request.correction = said
        if replies.must_call(job):
            request.must_call = True
        if replies.is_compaction_exhausted(job):
            request.compaction_exhausted = True
        return await self.run_activity(
            "model_call",
            request,
            ModelReply,
            step_summary(job, "model call"),
            seconds=job.limits.model_seconds + 30,
            attempts=0,
        )

    async def compact_context(self, job: JobRecord, *, hard: bool = False) -> CompactReply:
        """Make the context smaller; `hard` when the endpoint said that it is too long."""
        limit = job.context_limit
        request = CompactRequest(**position_fields(job), limit=limit)
        if hard:
            request.hard, request.limit = True, min(limit, job.context)
        return await self.run_activity(
            "compact",
            request,
            CompactReply,
            step_summary(job, f"compact {job.context:,} tokens"),
            seconds=job.limits.model_seconds * 2 + 60,
            attempts=TURNS,
        )

    async def call_tool(
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
            request.pending, request.guards_passed = job.pending, True
        elif job.timer:
            request.waited_seconds = job.timer.seconds
            if route.guarded:
                request.guards_passed = True
        what = f"{call.tool} {call.path}" if call.path else call.tool
        summary = step_summary(job, f"{what} refused" if refusal else what)
        attempts = job.limits.tool_attempts
        if route.local or refusal:
            return await self.run_local_activity(
                call.tool, request, summary, route.seconds, attempts
            )
        return await self.run_activity(
            call.tool, request, ToolReply, summary, seconds=route.seconds, attempts=attempts
        )

    async def give_up_task(self, job: JobRecord) -> None:
        """Tell a server that its task is not wanted any more; not worth failing over."""
        route = job.route(job.calls[job.next_call].tool) if job.pending else None
        if route is None or job.pending is None or not job.pending.task:
            return
        request = self._tool_request(job, None)
        request.pending, request.gives_up, request.guards_passed = job.pending, True, True
        with suppress(StepFailed):
            await self.run_activity(
                route.name,
                request,
                ToolReply,
                step_summary(job, f"{route.name} is given up"),
                seconds=route.seconds,
                attempts=1,
            )

    def begin_timer(self, call: Call) -> WaitTimer:
        """When a call of `wait` ends that begins now."""
        now = workflow.time()
        ends = now + (call.seconds or 0)
        if call.until is not None:
            ends = max(now, min(ends, call.until))
        return WaitTimer(started=now, ends=ends)

    async def sleep_until(
        self, job: JobRecord, timer: WaitTimer, most: float, woken: Callable[[], bool]
    ) -> bool:
        """Let time pass, at most so much; whether the timer is over, and not only interrupted."""
        remaining = timer.ends - workflow.time()
        if remaining <= 0:
            return True
        if woken():
            return False
        summary = step_summary(job, f"wait {timer.seconds:,} s")
        try:
            await workflow.wait_condition(
                woken, timeout=min(remaining, most), timeout_summary=summary
            )
            over = False
        except TimeoutError:
            over = remaining <= most
        self.may_continue_as_new = True
        return over

    async def deny_call(self, job: JobRecord, call: Call, refusal: str) -> ToolReply:
        """Answer a call that no activity may be run for."""
        request = self._tool_request(job, refusal)
        summary = step_summary(job, f"{call.tool[:60]} denied")
        return await self.run_local_activity(
            "deny_call", request, summary, 10, job.limits.tool_attempts
        )

    async def show_call(self, job: JobRecord) -> ShowCallReply:
        request = ShowCallRequest(**position_fields(job), call=job.next_call)
        return await self.run_activity(
            "show_call",
            request,
            ShowCallReply,
            step_summary(job, "ask a person"),
            seconds=60,
            attempts=4,
        )

    async def store_traces(self, job: JobRecord, handed: list[Trace]) -> StoreTracesReply:
        """Hand notes of the job to the store, which takes each once."""
        request = StoreTracesRequest(
            **checkpoint_fields(job),
            agent=job.agent,
            task=job.title,
            project=job.project,
            traces=handed,
        )
        count = len(handed)
        return await self.run_activity(
            "store_traces",
            request,
            StoreTracesReply,
            step_summary(job, f"{count} trace{'s' if count > 1 else ''}"),
            seconds=60,
            attempts=2,
        )

    async def keep_remarks(
        self, job: JobRecord, remarks: list[Remark], items: list[str]
    ) -> RemarksReply:
        """Keep what people say with the job's instructions."""
        request = RemarksRequest(**position_fields(job), remarks=remarks, items=items)
        return await self.run_activity(
            "tell",
            request,
            RemarksReply,
            step_summary(job, "a person speaks"),
            seconds=60,
            attempts=4,
        )

    async def find_checkpoint(self, job: JobRecord) -> RecoverReply:
        candidates = [*job.recent_checkpoints[::-1], *list(job.phases.values())[::-1]]
        request = RecoverRequest(**checkpoint_fields(job), candidates=candidates)
        return await self.run_activity(
            "find_checkpoint",
            request,
            RecoverReply,
            "look for a checkpoint",
            seconds=TEN_MINUTES,
            attempts=2,
        )

    async def show_folder(self, job: JobRecord) -> FolderReply:
        return await self.run_activity(
            "show_folder",
            JobPosition(**position_fields(job)),
            FolderReply,
            "show the folder",
            seconds=60,
            attempts=2,
        )

    async def take_folder(self, job: JobRecord) -> ImportReply:
        return await self.run_activity(
            "take_folder",
            JobPosition(**position_fields(job)),
            ImportReply,
            "take the folder",
            seconds=TEN_MINUTES,
            attempts=4,
        )

    async def set_model(self, job: JobRecord, settings: dict[str, Any]) -> SetModelReply:
        return await self.run_activity(
            "set_model",
            SetModelRequest(**position_fields(job), set=settings),
            SetModelReply,
            step_summary(job, "settings of the model"),
            seconds=60,
            attempts=4,
        )

    async def write_error(
        self, job: JobRecord, waiting: WaitState, failed: StepFailed | None = None
    ) -> None:
        """Leave details in `errors/`, where people look; not worth failing over."""
        request = WriteErrorRequest(
            **position_fields(job), text=f"{waiting.message}\n\n{waiting.remedy}\n"
        )
        if job.next_call < len(job.calls):
            request.call = job.next_call
        if failed:
            request.cause = "\n".join(failed.causes)
        with suppress(StepFailed):
            await self.run_activity(
                "write_error",
                request,
                EmptyReply,
                step_summary(job, "note the error"),
                seconds=20,
                attempts=1,
            )

    def _tool_request(self, job: JobRecord, refusal: str | None) -> ToolRequest:
        request = ToolRequest(**position_fields(job), call=job.next_call)
        if refusal:
            request.refusal = refusal[:2000]
        elif job.bypasses:
            request.bypass = list(job.bypasses)
        return request
