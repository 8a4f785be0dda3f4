"""The judge: a model that may refuse the end of a phase whose gate has passed."""

from protocol.job_record import Judgement
from protocol.requests import Call
from protocol.tools import ToolRoute
from workflows.jobs import guard_outcomes
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import reservations
from workflows.runtime import wait_states

NAME = "judge"
WHAT = "the end of the phase"


class PhaseJudge:
    """Asks the judge, if one is configured."""

    def __init__(self, tool_calls: ToolCalls) -> None:
        self._job = tool_calls.job
        self._steps = tool_calls.steps
        self._calls = tool_calls
        self._notice = tool_calls.notice

    async def refuses_end(self, call: Call, route: ToolRoute) -> bool:
        """Return whether the phase stays open: the judge refused, or the budget allows no judging.

        The judge is asked once per checkpoint.
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
        if refusal and NAME in job.bypasses:
            self._notice(guard_outcomes.use_guard_bypass(job, NAME, WHAT))
            refusal = ""
        elif refusal:
            self._notice(guard_outcomes.record_guard_refusal(job, NAME, WHAT, refusal))
        return Judgement(commit=job.commit, decided=True, refusal=refusal)
