"""The end of a phase: its gate, its guards, its judge, and the transition to the next phase."""

from protocol.job_record import Judgement
from protocol.requests import Call
from protocol.tools import ToolRoute
from workflows.jobs import guard_outcomes
from workflows.jobs.contract_approval import ContractApproval
from workflows.jobs.phase_transition import PhaseTransition
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import approved_contract, gates, reservations
from workflows.runtime import wait_states

NOT_OVER = (
    "The next list is handed over, and this phase is not over yet: {failed}. See to that, then "
    "call todo_complete."
)
JUDGE = "judge"
"""A model that may refuse the end of a phase whose gate has passed."""
ENDING = "the end of the phase"
BY_CALL = "The next list is handed over. Call todo_complete for what is still open here."


class PhaseEnd:
    """Ends phases by their last `todo_complete`, or once the next list is handed over."""

    def __init__(self, tool_calls: ToolCalls, transition: PhaseTransition) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._calls = tool_calls
        self._notice = tool_calls.notice
        self._contract = ContractApproval(tool_calls)
        self._transition = transition

    async def end_phase(self, call: Call, route: ToolRoute) -> None:
        """End the phase on its last `todo_complete`, if gate, guards and judge allow it."""
        job = self._job
        facts = (await self._steps.read_gate_facts(job)).facts
        outcome = gates.phase_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            await self._calls.refuse_call(call, route, "phase end", outcome.reason)
            return
        if outcome.purpose == "work" and (why := self._contract.plan_refusal(facts)) is not None:
            if why:
                await self._calls.refuse_call(call, route, approved_contract.GUARD, why)
            return
        before = job.bypasses
        if await self._calls.refused_by_guards(call, route, ["todo_complete", "phase_end"]):
            return
        with guard_outcomes.restoring_guard_bypasses(job, before):
            if await self._judge_refuses_end(call, route):
                return
            await self._transition.run_transition(
                outcome.purpose, call=job.next_call, completes=list(outcome.completes)
            )

    async def _judge_refuses_end(self, call: Call, route: ToolRoute) -> bool:
        """Return whether the phase stays open: the judge refused, or the budget allows no judging.

        The judge, if one is configured, is asked once per checkpoint.
        """
        job, limits = self._job, self._job.limits.judge
        if limits is None or job.state.phase.kind not in limits.phases:
            return False
        judgement = job.judgement
        if judgement is None or judgement.commit != job.commit:
            judgement = job.judgement = Judgement(commit=job.commit)
        if not judgement.decided:
            if self._calls.park_without_room(reservations.judge_call_reservation(job)):
                return True
            judgement = job.judgement = await self._ask_judge()
        if not judgement.refusal:
            return False
        refusal = f"Refused by the judge: {judgement.refusal}"
        if await self._calls.run_call(call, route, refusal, refused_by="judge"):
            job.judgement = None
            job.judge_refusals += 1
            if job.judge_refusals >= limits.attempts:
                job.waiting = wait_states.judge_wait(judgement.refusal)
        return True

    async def _ask_judge(self) -> Judgement:
        job = self._job
        judged = await self._steps.judge_phase(job)
        job.advance_to(judged.commit, judged.at)
        job.add_usage(judged.usage)
        refusal = judged.finding
        if refusal and JUDGE in job.bypasses:
            self._notice(guard_outcomes.use_guard_bypass(job, JUDGE, ENDING))
            refusal = ""
        elif refusal:
            self._notice(guard_outcomes.record_guard_refusal(job, JUDGE, ENDING, refusal))
        return Judgement(commit=job.commit, decided=True, refusal=refusal)

    async def end_handed_over_phase(self) -> None:
        """End a strategic phase after the reply in which all of it is done or seen to be done.

        If something prevents it, the next turn names it, and `todo_complete` ends the phase later.
        """
        job = self._job
        if job.failed_call:
            job.end_tried_step = job.step
            job.add_correction(NOT_OVER.format(failed=job.failed_call))
            return
        facts = (await self._steps.read_gate_facts(job)).facts
        if facts.todos_file == "missing":
            # The list was deleted again.
            job.handed_over = False
            return
        before = job.bypasses
        outcome = gates.handover_gate(job.state, facts, job.limits)
        if isinstance(outcome, gates.Refusal):
            job.add_correction(outcome.reason)
        elif job.limits.judge and job.state.phase.kind in job.limits.judge.phases:
            job.add_correction(BY_CALL)
        elif (why := self._contract.plan_refusal(facts)) is not None:
            if not why:
                return  # until a person decides
            job.add_correction(why)
        elif not await self._refused_by_guards(before):
            with guard_outcomes.restoring_guard_bypasses(job, before):
                await self._transition.run_transition(
                    outcome.purpose, completes=list(outcome.completes)
                )
            return
        job.end_tried_step = job.step

    async def _refused_by_guards(self, before: dict[str, str]) -> bool:
        """Whether guards prevent a phase that has handed over from ending.

        Args:
            before: The bypasses to restore if a person has to be asked.
        """
        job = self._job
        route = job.route("todo_complete")
        if route is None or not route.guarded:
            return False
        ending = await self._steps.judge_ending(job, route, ["todo_complete", "phase_end"])
        if ending.asks:
            # People approve calls, and this call has not been made yet.
            job.bypasses = before
            job.add_correction(BY_CALL)
            return True
        for line in guard_outcomes.apply_guard_outcome(job, ending, ENDING):
            self._notice(line)
        waiting = guard_outcomes.count_undecided_votes(job, ending, "todo_complete")
        if waiting:
            await self._calls.wait_for_person(waiting)
        if ending.refusal:
            job.refusals += 1
            job.add_correction(ending.refusal)
        return bool(ending.refusal)
