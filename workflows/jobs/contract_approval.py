"""Asks people about the contract: the plan before work begins, and items left out at the end."""

from temporalio import workflow

from protocol.endings import GateFacts
from protocol.requests import Call, ShowCallReply
from protocol.tools import ToolRoute
from workflows.jobs import approvals
from workflows.jobs.tool_calls import ToolCalls
from workflows.rules import approved_contract


class ContractApproval:
    """Puts the job's plan, and what it left out, before a person."""

    def __init__(self, tool_calls: ToolCalls) -> None:
        self._job = tool_calls.job
        self._calls = tool_calls

    def plan_refusal(self, facts: GateFacts) -> str | None:
        """Return why work on the plan does not begin: a person's reason, or nothing while the job
        waits for one; None if it begins.
        """
        job = self._job
        approval = approvals.current_approval(job)
        question = approved_contract.approval_question(job, facts)
        if question is None or facts.contract is None:
            return None
        if approval is None or not approval.is_plan:
            shown = ShowCallReply(
                arguments=approved_contract.contract_arguments(job, facts.contract)
            )
            approvals.open_approval_question(
                job,
                approved_contract.PLAN,
                shown,
                question,
                approved_contract.GUARD,
                workflow.time(),
            )
            approval = approvals.current_approval(job)
        if approval is None or approval.approved is None:
            if approval:
                job.waiting = approvals.waiting_for_approval_answer(approval, self._calls.job_id)
            return ""
        if approval.approved:
            job.contract = approved_contract.approve_contract(facts.contract)
            return None
        return approvals.approval_denial_text(approval)

    async def refuses_drops(self, call: Call, route: ToolRoute) -> bool:
        """Return whether the job may not end yet because of what the agent left out."""
        job = self._job
        ruling = approved_contract.rule_on_drops(
            job.state.scope,
            job.limits,
            self._allowed_drops,
            frozen=job.contract is not None,
        )
        if ruling.act == "pass":
            return False
        if ruling.act == "refuse":
            self._job.reopening = list(ruling.ids)
            await self._calls.refuse_call(call, route, "completion", ruling.question)
            return True
        approval = approvals.current_approval(job)
        if approval and approval.approved is False:
            job.reopening = list(ruling.ids)
        if not await self._calls.ask_person(
            call, route, ruling.question, guard=approved_contract.GUARD
        ):
            return True
        job.allowed_drops = [*self._allowed_drops, *ruling.ids]
        return False

    @property
    def _allowed_drops(self) -> list[str]:
        """The dropped items that a person has seen: alone, or with the plan."""
        of_plan = self._job.contract.dropped if self._job.contract else []
        return [*of_plan, *self._job.allowed_drops]
