"""Helpers that read for the agent: its calls of `delegate`, several of them side by side.

They advance in rounds of one reply each. Between two rounds the job is between two steps: it
handles signals, keeps limits, and may continue as new.
"""

import asyncio

from protocol.helpers import DELEGATE, MOST_HELPERS, Helper, HelperReply
from protocol.requests import Call
from protocol.tools import ToolRoute
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import budget, reservations
from workflows.runtime.activity_calls import count_unfinished_replies
from workflows.runtime.activity_failures import StepFailed

OF_THE_HELPER = frozenset({"ContextTooLong", "ModelRefused"})
"""Failures that end a helper but not the job's step."""


class Delegation:
    """Runs helpers."""

    def __init__(self, tool_calls: ToolCalls) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._calls = tool_calls

    async def delegate_call(self, call: Call, route: ToolRoute) -> None:
        """Begin helpers, have each give a reply, or record the answer to the current call."""
        job, helper = self._job, self._job.helper
        if helper is None:
            if not await self._calls.refused_by_guards(call, route, []):
                job.helpers = [Helper(call=place) for place in self._side_by_side(route)]
        elif not helper.done:
            await self._ask_helpers()
        elif await self._calls.run_call(call, route, helper.failure or None):
            job.helpers = [each for each in job.helpers if each is not helper]

    def _side_by_side(self, route: ToolRoute) -> list[int]:
        """Return the indexes of the reply's calls that begin now."""
        job = self._job
        # Guards judge only the current call, before it costs anything.
        most = 1 if route.guarded else MOST_HELPERS
        last = job.next_call
        while last + 1 < len(job.calls) and job.calls[last + 1].tool == DELEGATE:
            last += 1
        return list(range(job.next_call, last + 1))[:most]

    async def _ask_helpers(self) -> None:
        """Request one reply of each open helper, or of as many as the limits allow."""
        job = self._job
        helpers = budget.helpers_within_budget(job)
        if not helpers:
            self._calls.park_without_room(reservations.helper_call_reservation(job, 1))
            return
        asks = [asyncio.create_task(self._ask_helper(helper)) for helper in helpers]
        try:
            await asyncio.gather(*asks, return_exceptions=True)
        finally:
            # Also if the step is given up: the replies that have come are paid for.
            failures = [
                self._take_reply(helper, ask) for helper, ask in zip(helpers, asks, strict=True)
            ]
        for failure in failures:
            if failure:
                raise failure

    def _take_reply(self, helper: Helper, ask: asyncio.Task[HelperReply]) -> BaseException | None:
        """Record what a helper replied; return the failure that the job has to react to."""
        if not ask.done() or ask.cancelled():
            return asyncio.CancelledError()
        failure = ask.exception()
        if isinstance(failure, StepFailed):
            # Of several failures, the job reacts to one.
            count_unfinished_replies(self._job, failure)
        if failure is None:
            reply = ask.result()
            self._job.add_usage(reply.usage)
            helper.replies += 1
            helper.tree, helper.context = reply.tree, reply.context
            helper.full, helper.done = reply.full, reply.done
        elif isinstance(failure, StepFailed) and failure.kind in OF_THE_HELPER:
            helper.failure = f"The helper cannot do this: {failure.message}"
            helper.done = True
            return None
        return failure

    async def _ask_helper(self, helper: Helper) -> HelperReply:
        last = helper.full or helper.replies + 1 >= self._job.limits.helper_calls
        return await self._steps.ask_helper(self._job, helper, last=last)
