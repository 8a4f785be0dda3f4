"""The end of a job: `job_complete`, its gate, its guards and the acceptance review."""

from typing import Any

from protocol.endings import GuardPoint
from protocol.job_record import JobRecord, Review
from protocol.limits import ReviewLimits
from protocol.notices import Notice
from protocol.requests import Call, RefusedBy
from protocol.tools import ToolRoute
from protocol.usage import Usage
from workflows.jobs import guard_outcomes
from workflows.jobs.contract_approval import ContractApproval
from workflows.jobs.learning_notes import store_learning_traces
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import course, gates, reservations
from workflows.runtime import activity_failures, wait_states

SENT_BACK = """\
The review sent the job back. By what the reviewer saw, this is not met:
{findings}
Mend this, then call job_complete again. What cannot be met stays undone: leave it out with \
drop_item(ids, reason), or name it with its id and the reason in `unresolved`."""


def is_reviewed(job: JobRecord) -> bool:
    """Return whether the end of a job is reviewed: there is something to judge, and someone."""
    limits = job.limits.review
    owed = any(not item.is_step and item.status != "dropped" for item in job.state.scope)
    return bool(limits and owed and (limits.projects or not job.project))


class Completion:
    """Handles `job_complete` and the review before a job ends."""

    def __init__(self, tool_calls: ToolCalls) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._calls = tool_calls
        self._contract = ContractApproval(tool_calls)
        self._inbox = tool_calls.inbox

    async def complete_job(self, call: Call, route: ToolRoute) -> None:
        job, before = self._job, self._job.bypasses
        facts = (await self._steps.read_gate_facts(job)).facts
        job.course = course.course_after_completion_attempt(
            job.course, facts.deliverables_fingerprint, len(job.state.open_items)
        )
        refusal = gates.completion_gate(job.state, facts, job.rewinds)
        if refusal:
            await self._refuse_completion(call, route, "completion", refusal.reason)
            return
        if facts.store_unavailable:
            raise activity_failures.store_unavailable_failure(facts.unstored[0])
        if await self._contract.refuses_drops(call, route):
            return
        if await self._calls.refused_by_guards(call, route, self._guard_points):
            return
        on_the_spot = gates.completes_on_the_spot(job.state, facts)
        if is_reviewed(job):
            used = {name: why for name, why in before.items() if name not in job.bypasses}
            job.review = Review(bypasses=used, on_the_spot=on_the_spot)
            return
        with guard_outcomes.restoring_guard_bypasses(job, before):
            if await self._has_stored_traces():
                await self._close_job(on_the_spot=on_the_spot)

    @property
    def _guard_points(self) -> list[GuardPoint]:
        """Return the guard points; a project's job ends as a sub-agent, too."""
        return ["job_complete", "subagent_end"] if self._job.project else ["job_complete"]

    async def continue_review(self, review: Review) -> None:
        """Ask the reviewer for its next reply, or act on its verdict."""
        job, limits = self._job, self._job.limits.review
        call = job.calls[job.next_call]
        route = job.route(call.tool)
        if review.verdict is None and limits:
            if not self._calls.park_without_room(reservations.review_call_reservation(job)):
                await self._ask_reviewer(review, limits)
        elif (
            review.verdict == "sent back"
            and limits
            and route
            and job.review_rejections < limits.attempts
        ):
            if not self._calls.park_without_room(reservations.TOOL_CALL):
                await self._send_back(review, call, route)
        elif (
            not self._calls.park_without_room(reservations.TOOL_CALL)
            and await self._has_stored_traces()
        ):
            # What is not accepted after that many attempts is named in the result.
            await self._close_job(on_the_spot=review.on_the_spot)
            job.review = None

    async def _send_back(self, review: Review, call: Call, route: ToolRoute) -> None:
        job, why = self._job, SENT_BACK.format(findings=review.findings)
        # The review has a limit of its own, after which the job ends with what is unmet named.
        job.course = job.course.model_copy(update={"completion_refusals": 0})
        await self._refuse_completion(call, route, "review", why)
        job.drop_review()
        job.review_rejections += 1

    async def _refuse_completion(
        self, call: Call, route: ToolRoute, gate: RefusedBy, why: str
    ) -> None:
        # After too many refusals the job waits for a person, who must see the reasons.
        text = f"job_complete was refused. {why}"
        self._inbox.notice(Notice(text=text, topic="refused call", step=self._job.step))
        await self._calls.refuse_call(call, route, gate, why)

    async def _ask_reviewer(self, review: Review, limits: ReviewLimits) -> None:
        job, number = self._job, review.calls + 1
        reply = await self._steps.review_job(job, review.calls, last=number >= limits.calls)
        job.advance_to(reply.commit, reply.at)
        job.add_usage(reply.usage)
        job.review = review.model_copy(update={"calls": number, "context": reply.context})
        job.review.verdict, job.review.findings = reply.verdict, reply.findings
        if reply.verdict == "accepted" and reply.findings:
            self._inbox.notice(f"the review sent nothing back, and adds: {reply.findings}")

    async def _has_stored_traces(self) -> bool:
        """Store pending traces and return whether all are stored; if not, the job waits for it."""
        stored = await store_learning_traces(self._job, self._steps, self._inbox)
        if not stored:
            self._job.waiting = wait_states.STORE
        return stored

    async def _close_job(self, *, on_the_spot: bool) -> None:
        job = self._job
        details: dict[str, Any] = {"on_the_spot": True} if on_the_spot else {}
        if job.publish:
            branch = await self._steps.publish_branch(job, job.next_call)
            details["published"] = branch.published
            if branch.proof:
                details["proof"] = branch.proof
        closed = await self._steps.close_job(job, "completed", call=job.next_call, **details)
        job.advance_to(closed.commit)
        job.add_usage(Usage(tool_calls=1))
        self._inbox.notice_moved_aside(closed.moved_aside)
        job.state.phase.close(closed.completed)
        job.state.take_items(closed.scope)
        job.result = closed.result
