"""The contract that a person approves: what it says, what it will cost, and what changes it.

Pure functions. A job whose start asks for it shows its plan once, before the first work; from then
on, what takes something out of the approved plan asks again.
"""

from typing import Final, Literal, NamedTuple

from protocol.endings import ContractFacts, GateFacts
from protocol.job_record import ApprovedContract, JobRecord
from protocol.limits import JobLimits
from protocol.scope_ledger import ScopeItem
from protocol.short_text import count_noun, first_few, one_line

PLAN = "plan"
"""What is approved when no call is."""
GUARD: Final = "contract"
MOST_NAMED = 20
REPLY_TOKENS = 1500
"""Tokens of a reply that the estimate reckons with."""


class DropRuling(NamedTuple):
    """What becomes of items that the agent dropped, at the end of the job."""

    act: Literal["pass", "ask", "refuse"]
    question: str = ""
    ids: tuple[str, ...] = ()


def approval_question(job: JobRecord, facts: GateFacts) -> str | None:
    """Return what a person is asked before work on this plan begins; None if nothing is."""
    if not job.limits.approve_plan or facts.contract is None:
        return None
    if job.contract is None:
        return "Approve the plan, before the work begins?"
    changes = contract_changes(job.contract, facts.contract)
    return f"Approve what changes the approved plan: {'; '.join(changes)}?" if changes else None


def contract_arguments(job: JobRecord, contract: ContractFacts) -> dict[str, str]:
    """Return what people are shown of a plan, by heading."""
    shown = {
        "plan": contract.plan,
        "scope": "\n".join(contract.places),
        "dropped": "\n".join(f"{id_} {text}" for id_, text in contract.dropped.items()),
        "checks": "\n".join(contract.checks),
        "estimate": estimate_line(job, contract),
    }
    return {name: text for name, text in shown.items() if text}


def approve_contract(contract: ContractFacts) -> ApprovedContract:
    """Return what is frozen with an approval."""
    return ApprovedContract(
        phases=contract.phases,
        checks=contract.checks,
        dropped=list(contract.dropped),
    )


def contract_changes(approved: ApprovedContract, now: ContractFacts) -> list[str]:
    """Return what the plan has lost since a person approved it."""
    phases = [name for name in approved.phases if name not in now.phases]
    checks = [each for each in approved.checks if each not in now.checks + now.held]
    dropped = [f"{id_} {text}" for id_, text in now.dropped.items() if id_ not in approved.dropped]
    changes = [f"the phase {one_line(name, 80)!r} is gone" for name in phases]
    changes += [f"the check {one_line(each, 120)!r} is gone" for each in checks]
    return [*changes, *(f"{one_line(line, 160)} is dropped" for line in dropped)]


def estimate_line(job: JobRecord, contract: ContractFacts) -> str:
    """Return what the plan will take, from its size, what was used so far, and the price.

    The least is two replies for each phase, the most a reply for each step besides.
    """
    phases = len(contract.phases)
    least, most = 2 * phases + 1, contract.boxes + 2 * phases + 2
    prompt = max(job.context, job.usage.prompt_tokens // max(1, job.usage.model_calls))
    text = f"{least} to {most} model calls of about {prompt:,} tokens"
    if price := job.limits.price:
        costs = [count * price.cost(prompt, 0, REPLY_TOKENS) for count in (least, most)]
        text += f", {costs[0]:.2f} to {costs[1]:.2f} in the currency of the prices"
    if job.usage.model_calls and job.seconds:
        a_call = job.seconds / job.usage.model_calls
        text += f", {_minutes(least * a_call)} to {_minutes(most * a_call)} at the pace so far"
    return text


def _minutes(seconds: float) -> str:
    return f"{max(1, round(seconds / 60)):,} min"


def rule_on_drops(
    scope: list[ScopeItem], limits: JobLimits, allowed: list[str], *, frozen: bool
) -> DropRuling:
    """Decide on what the agent dropped of what people asked for, when it wants to complete.

    An item counts as much as the statements that it stands for.

    Args:
        scope: The ledger.
        limits: How many may be dropped without a person, and what happens above.
        allowed: Ids of items that a person has allowed to drop.
        frozen: Whether a person has approved the plan, so that no further item may be dropped.
    """
    requested = [item for item in scope if item.is_of_people]
    dropped = [item for item in requested if item.status == "dropped" and item.id not in allowed]
    most = 0 if frozen else limits.drop_share * sum(item.weight for item in requested)
    if limits.drops_beyond == "list" or sum(item.weight for item in dropped) <= most:
        return DropRuling("pass")
    named = first_few(
        [f"{item.id} {one_line(item.text, 80)} ({one_line(item.reason, 80)})" for item in dropped],
        MOST_NAMED,
    )
    what = f"{len(dropped)} of {count_noun(len(requested), 'item')} dropped: {named}"
    ids = tuple(item.id for item in dropped)
    if limits.drops_beyond == "refuse":
        return DropRuling(
            "refuse",
            f"More was left out than this job may: {what}. They are open "
            "again: hand over a list for them with todo_write.",
            ids,
        )
    return DropRuling("ask", f"The agent left out {what}. Complete without them?", ids)
