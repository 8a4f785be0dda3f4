"""The end of a job: `job_complete`, its gate, and the review that may stand before it."""

from __future__ import annotations

from protocol.endings import Point
from protocol.record import Review
from protocol.requests import Call, Usage
from protocol.starting import ReviewLimits
from protocol.tools import ToolRoute
from workflows import budget, course, gates, guards, parking
from workflows.lessons import keep_traces, reflect
from workflows.tool_calls import ToolCalls

SENT_BACK = "The review sent the job back: {findings}\nMend this, then call job_complete again."
UNDECIDED = (
    "the reviewer gave no verdict in {calls} replies, which counts as no. Make it plain in the "
    "summary and notes of job_complete where each thing that was asked for can be found."
)


class Completion(ToolCalls):
    """Lets a job end that may."""

    async def _complete(self, call: Call, route: ToolRoute) -> None:
        job, before = self.job, self.job.bypasses
        facts = (await self.steps.facts(job)).facts
        job.course = course.completion_tried(job.course, facts.deliverables_mark)
        refusal = gates.completion_gate(job.state, facts, job.rewinds)
        if refusal:
            await self._refuse_completion(call, route, "completion", refusal.reason)
        elif facts.store_away:
            raise parking.store_away(facts.unstored[0])
        elif await self._kept_from(call, route, self._points):
            return
        elif job.limits.review:
            used = {name: why for name, why in before.items() if name not in job.bypasses}
            job.review = Review(bypasses=used)
        else:
            with guards.passed_by(job, before):
                if await self._may_close():
                    await self._close()

    @property
    def _points(self) -> list[Point]:
        """Where guards stand: for a job of a project its end is also that of a sub-agent."""
        return ["job_complete", "subagent_end"] if self.job.project else ["job_complete"]

    async def _go_on_reviewing(self, review: Review) -> None:
        """Ask the reviewer for a reply, or act on its verdict."""
        job, limits = self.job, self.job.limits.review
        call = job.calls[job.next_call]
        route = job.route(call.tool)
        if review.verdict is None and limits:
            if not self._parked(budget.review_call(job)):
                await self._ask_reviewer(review, limits)
        elif review.verdict == "accepted":
            if not self._parked(budget.TOOL_CALL) and await self._may_close():
                await self._close()
                job.review = None
        elif route and not self._parked(budget.TOOL_CALL):
            why = SENT_BACK.format(findings=review.findings)
            await self._refuse_completion(call, route, "review", why)
            job.drop_review()
            job.sent_back += 1
            if limits and job.sent_back >= limits.attempts:
                job.waiting = parking.REVIEW
            await reflect(job, self.steps, self.notice, review.findings)

    async def _refuse_completion(self, call: Call, route: ToolRoute, gate: str, why: str) -> None:
        # Refused too often the job waits for a person, who has to see what for.
        self.notice(f"step {self.job.step}: job_complete was refused. {why}")
        await self._refuse(call, route, gate, why)

    async def _ask_reviewer(self, review: Review, limits: ReviewLimits) -> None:
        job, number = self.job, review.calls + 1
        reply = await self.steps.review(job, review.calls, last=number >= limits.calls)
        job.move_to(reply.commit, reply.at)
        job.spend(reply.usage)
        job.review = Review(calls=number, context=reply.context, bypasses=review.bypasses)
        if reply.verdict:
            job.review.verdict, job.review.findings = reply.verdict, reply.findings
        elif number >= limits.calls:
            job.review.verdict = "sent back"
            job.review.findings = UNDECIDED.format(calls=number)

    async def _may_close(self) -> bool:
        """Whether the store has all that was noted; if not, the job waits for it."""
        kept = await keep_traces(self.job, self.steps, self.notice)
        if not kept:
            self.job.waiting = parking.STORE
        return kept

    async def _close(self) -> None:
        job = self.job
        closed = await self.steps.close(job, "completed", call=job.next_call)
        job.move_to(closed.commit)
        job.spend(Usage(tool_calls=1))
        self.inbox.moved_aside(closed.moved_aside)
        job.state.phase.close(closed.completed)
        job.result = closed.result
