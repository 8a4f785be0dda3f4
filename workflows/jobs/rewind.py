"""Rewinds that the agent or stuck detection asks for; a person's come by a signal.

A rewind ends the running phase as undone. The phase after it plans another way.
"""

from protocol.requests import Call
from protocol.tools import ToolRoute
from workflows.jobs import guard_outcomes
from workflows.jobs.learning_notes import note_failure_reflection
from workflows.jobs.phase_transition import PhaseTransition
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import endpoint_remedies
from workflows.runtime import wait_states


class Rewind:
    """Rewinds phases within the limit on rewinds."""

    def __init__(self, tool_calls: ToolCalls, transition: PhaseTransition) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._calls = tool_calls
        self._transition = transition

    async def rewind_for_agent(self, call: Call, route: ToolRoute) -> None:
        """Rewind the phase because the agent called `todo_rewind`."""
        job = self._job
        if job.rewinds >= job.limits.rewinds:
            job.waiting = wait_states.REWINDS
            return
        facts = (await self._steps.read_gate_facts(job)).facts
        if facts.arguments_error:
            await self._calls.run_call(call, route, facts.arguments_error)
            return
        before = job.bypasses
        if await self._calls.refused_by_guards(call, route, []):
            return
        with guard_outcomes.restoring_guard_bypasses(job, before):
            await note_failure_reflection(job, self._steps, self._calls.inbox, "", job.next_call)
            await self._transition.run_transition("rewind", outcome="rewound", call=job.next_call)

    async def rewind_stuck_phase(self, issue: str) -> None:
        """Rewind the phase because the job is stuck and its last turn to recover has passed."""
        job = self._job
        if endpoint_remedies.is_endpoint_without_calls(job):
            job.waiting = endpoint_remedies.endpoint_without_calls_wait(issue)
            return
        if job.rewinds >= job.limits.rewinds:
            job.waiting = wait_states.REWINDS.model_copy(
                update={"message": f"{issue} The job has used up its rewinds."}
            )
            return
        await note_failure_reflection(job, self._steps, self._calls.inbox, issue)
        await self._transition.run_transition("rewind", outcome="rewound", issue=issue)
        self._calls.inbox.notice(f"stuck: went back. {issue}")
