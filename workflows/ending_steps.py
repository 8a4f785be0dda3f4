"""The activities at the end of a phase and of a job."""

from __future__ import annotations

from typing import Any

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
from protocol.record import JobRecord
from protocol.reflection import Reflected, ReflectRequest
from protocol.tools import ToolRoute
from workflows.activity_calls import TEN_MINUTES, ActivityCalls, position, story

TURNS = 10
"""Attempts at a transition or compaction while the endpoint gives no summary: minutes, or as long
as it says."""


class EndingSteps(ActivityCalls):
    """What is asked, judged and written when something is to end."""

    async def facts(self, job: JobRecord) -> Facts:
        request = FactsRequest(**position(job))
        if job.next_call < len(job.calls):
            request.call = job.next_call
        # The last todo's `done_when` may be a command, for which its own route has the time.
        route = job.route("todo_complete")
        seconds = max(60, route.seconds) if route else 60
        return await self.regular(
            "gate_facts", request, Facts, story(job, "gate"), seconds=seconds, attempts=4
        )

    async def judge_ending(
        self, job: JobRecord, route: ToolRoute, points: list[Point], *, approved: bool = False
    ) -> Ending:
        """Ask the guards of the call at hand, which the workflow acts on."""
        request = EndingRequest(
            **position(job),
            points=points,
            approved=approved,
            bypass=list(job.bypasses),
            stop_hook_active=job.stop_hook_active,
        )
        if job.next_call < len(job.calls):
            request.call = job.next_call
        return await self.regular(
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
        return await self.regular(
            "transition", request, Transitioned, summary, seconds=TEN_MINUTES, attempts=TURNS
        )

    async def close(self, job: JobRecord, outcome: Outcome, **details: Any) -> Closed:
        used = job.usage.model_copy()
        if "call" in details:
            # The call that ends the job is in the result, which is written before it counts.
            used.tool_calls += 1
        request = CloseRequest(
            **position(job),
            status=outcome,
            phases=job.last_phase,
            rewinds=job.rewinds,
            usage=used,
            **details,
        )
        return await self.regular(
            "close_job", request, Closed, story(job, f"job {outcome}"), TEN_MINUTES, 4
        )

    async def reflect(self, job: JobRecord, issue: str, call: int | None) -> Reflected:
        """What the attempt that failed teaches; never worth holding the job up."""
        request = ReflectRequest(**position(job), issue=issue[:2000])
        if call is not None:
            request.call = call
        return await self.regular(
            "reflect",
            request,
            Reflected,
            story(job, "reflection"),
            seconds=job.limits.model_seconds * 2 + 60,
            attempts=2,
        )

    async def review(self, job: JobRecord, number: int, *, last: bool) -> ReviewReply:
        """One reply of the reviewer."""
        request = ReviewRequest(**position(job), call=job.next_call, number=number)
        if last:
            request.last = True
        return await self.regular(
            "review_job",
            request,
            ReviewReply,
            story(job, f"review call {number + 1}"),
            seconds=job.limits.model_seconds + 30,
            attempts=0,
        )

    async def judge_phase(self, job: JobRecord) -> Judged:
        """Ask the judge about the phase that the call at hand would end."""
        since = job.phases[job.state.phase.number]
        request = JudgeRequest(**position(job), call=job.next_call, since=since)
        return await self.regular(
            "judge_phase",
            request,
            Judged,
            story(job, "judge"),
            seconds=job.limits.model_seconds + 60,
            attempts=0,
        )
