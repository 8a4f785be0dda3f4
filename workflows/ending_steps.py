"""The activities at the end of a phase and of a job."""

from __future__ import annotations

from typing import Any

from protocol.endings import (
    CloseReply,
    CloseRequest,
    EndingRequest,
    EndingVerdict,
    FactsRequest,
    GateFactsReply,
    GuardPoint,
    JudgeReply,
    JudgeRequest,
    Outcome,
    ReviewReply,
    ReviewRequest,
    TransitionReply,
    TransitionRequest,
)
from protocol.record import JobRecord
from protocol.reflection import ReflectReply, ReflectRequest
from protocol.tools import ToolRoute
from workflows.activity_calls import TEN_MINUTES, ActivityCalls, position_fields, step_summary

TURNS = 10
"""Attempts at a transition or compaction while the endpoint gives no summary: minutes, or as long
as it says."""


class EndingSteps(ActivityCalls):
    """What is asked, judged and written when something is to end."""

    async def read_gate_facts(self, job: JobRecord) -> GateFactsReply:
        request = FactsRequest(**position_fields(job))
        if job.next_call < len(job.calls):
            request.call = job.next_call
        # The last todo's `done_when` may be a command, for which its own route has the time.
        route = job.route("todo_complete")
        seconds = max(60, route.seconds) if route else 60
        return await self.run_activity(
            "gate_facts",
            request,
            GateFactsReply,
            step_summary(job, "gate"),
            seconds=seconds,
            attempts=4,
        )

    async def judge_ending(
        self, job: JobRecord, route: ToolRoute, points: list[GuardPoint], *, approved: bool = False
    ) -> EndingVerdict:
        """Ask the guards of the call at hand, which the workflow acts on."""
        request = EndingRequest(
            **position_fields(job),
            points=points,
            approved=approved,
            bypass=list(job.bypasses),
            stop_hook_active=job.stop_hook_active,
        )
        if job.next_call < len(job.calls):
            request.call = job.next_call
        return await self.run_activity(
            "judge_ending",
            request,
            EndingVerdict,
            step_summary(job, f"guards of {route.name}"),
            seconds=route.seconds + 30,
            attempts=job.limits.tool_attempts,
        )

    async def run_transition(self, job: JobRecord, request: TransitionRequest) -> TransitionReply:
        summary = step_summary(
            job, f"{request.outcome}; phase {request.number} ({request.purpose}) begins"
        )
        return await self.run_activity(
            "transition", request, TransitionReply, summary, seconds=TEN_MINUTES, attempts=TURNS
        )

    async def close_job(self, job: JobRecord, outcome: Outcome, **details: Any) -> CloseReply:
        used = job.usage.model_copy()
        if "call" in details:
            # The call that ends the job is in the result, which is written before it counts.
            used.tool_calls += 1
        request = CloseRequest(
            **position_fields(job),
            status=outcome,
            phases=job.last_phase,
            rewinds=job.rewinds,
            usage=used,
            **details,
        )
        return await self.run_activity(
            "close_job", request, CloseReply, step_summary(job, f"job {outcome}"), TEN_MINUTES, 4
        )

    async def reflect_on_failure(
        self, job: JobRecord, issue: str, call: int | None
    ) -> ReflectReply:
        """What the attempt that failed teaches; never worth holding the job up."""
        request = ReflectRequest(**position_fields(job), issue=issue[:2000])
        if call is not None:
            request.call = call
        return await self.run_activity(
            "reflect",
            request,
            ReflectReply,
            step_summary(job, "reflection"),
            seconds=job.limits.model_seconds * 2 + 60,
            attempts=2,
        )

    async def review_job(self, job: JobRecord, number: int, *, last: bool) -> ReviewReply:
        """One reply of the reviewer."""
        request = ReviewRequest(**position_fields(job), call=job.next_call, number=number)
        if last:
            request.last = True
        return await self.run_activity(
            "review_job",
            request,
            ReviewReply,
            step_summary(job, f"review call {number + 1}"),
            seconds=job.limits.model_seconds + 30,
            attempts=0,
        )

    async def judge_phase(self, job: JobRecord) -> JudgeReply:
        """Ask the judge about the phase that the call at hand would end."""
        since = job.phases[job.state.phase.number]
        request = JudgeRequest(**position_fields(job), call=job.next_call, since=since)
        return await self.run_activity(
            "judge_phase",
            request,
            JudgeReply,
            step_summary(job, "judge"),
            seconds=job.limits.model_seconds + 60,
            attempts=0,
        )
