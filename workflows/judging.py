"""The judge: a model that may keep a phase from ending whose gate has passed."""

from __future__ import annotations

from protocol.record import Judgement
from protocol.requests import Call
from protocol.tools import ToolRoute
from workflows import budget, guards, parking
from workflows.completion import Completion

NAME = "judge"
WHAT = "the end of the phase"


class Judging(Completion):
    """Asks the judge where one is configured."""

    async def _judged(self, call: Call, route: ToolRoute) -> bool:
        """Whether the judge keeps the phase from ending, or the limits the judge from judging.

        What it said is asked for once: while the checkpoint is the same, it stands.
        """
        job, limits = self.job, self.job.limits.judge
        if limits is None or job.state.phase.kind not in limits.phases:
            return False
        held = job.judgement
        if held is None or held.commit != job.commit:
            held = job.judgement = Judgement(commit=job.commit)
        if not held.asked:
            if self._parked(budget.judge_call(job)):
                return True
            held = job.judgement = await self._ask_judge()
        if not held.refusal:
            return False
        if await self._run(call, route, held.refusal):
            job.judgement = None
            job.judged_no += 1
            if job.judged_no >= limits.attempts:
                job.waiting = parking.JUDGED
        return True

    async def _ask_judge(self) -> Judgement:
        job = self.job
        judged = await self.steps.judge_phase(job)
        job.move_to(judged.commit, judged.at)
        job.spend(judged.usage)
        refusal = judged.refusal
        if refusal and NAME in job.bypasses:
            self.notice(guards.passed_over(job, NAME, WHAT))
            refusal = ""
        elif refusal:
            self.notice(guards.refused(job, NAME, WHAT, refusal))
        return Judgement(commit=job.commit, asked=True, refusal=refusal)
