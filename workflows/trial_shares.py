"""Shares of a trial's limits: reserved when a run starts, settled when it has ended.

Pure functions. A run starts with half of an even division, so that the rest is there for those that
need more. A run that needs more gets it only if what it leaves is enough for older runs to double
their shares: of a scarce limit, few runs that complete show more than many that are cut.
"""

from __future__ import annotations

from protocol.requests import Usage
from protocol.trial import TrialLimits, TrialRun
from workflows.budget import Consumption
from workflows.project_budget_shares import LEAST

SHARED_KEYS = ("model_calls", "tool_calls", "tokens", "cost")
OPEN = ("pending", "running")
NEVER_BEGAN = ("pending", "unstarted")


def charged_amount(run: TrialRun, key: str) -> float:
    """Return what a run has used of a limit, or may still use."""
    share = run.share.get(key, 0)
    if run.status in NEVER_BEGAN:
        return 0
    if run.status == "running" or run.usage is None:
        return share
    used = Consumption(run.usage, 0).amount(key)
    # A call that was under way when the run was ended is not part of what it says it used.
    return max(used, share) if run.interrupted else used


def free_amount(limits: TrialLimits, runs: list[TrialRun], key: str) -> float | None:
    """Return what is neither used nor reserved; None without a limit."""
    limit = getattr(limits, key)
    if limit is None:
        return None
    return float(round(limit - sum(charged_amount(run, key) for run in runs), 9))


def first_share(
    limits: TrialLimits, runs: list[TrialRun], parallel: int
) -> dict[str, float] | None:
    """Return the share of a run that is to start; None while too little is free for it."""
    slots = min(parallel, sum(run.status in OPEN for run in runs))
    share = {}
    for key in SHARED_KEYS:
        free = free_amount(limits, runs, key)
        if free is None:
            continue
        if free < LEAST[key]:
            return None
        part = free if slots == 1 else free / (2 * slots)
        share[key] = max(_whole(key, part), float(LEAST[key]))
    return share


def larger_share(
    limits: TrialLimits, runs: list[TrialRun], run: TrialRun
) -> dict[str, float] | None:
    """Return the share with what a run needs and half of the rest; None if it is not there.

    As much again as older runs have is not there for it, unless they wait for a person.
    """
    alone = sum(other.status in OPEN for other in runs) == 1
    older = [
        other
        for other in runs[: runs.index(run)]
        if other.status == "running" and not other.waiting
    ]
    share = dict(run.share)
    for key, needed in run.needs.items():
        free = free_amount(limits, runs, key)
        if free is None:
            share.pop(key, None)
            continue
        reserved = sum(other.share.get(key, 0) for other in older)
        rest = share.get(key, 0) + free - needed - reserved
        if rest < 0:
            return None
        share[key] = _whole(key, needed + (rest if alone else rest / 2))
    return share


def lowered_shares(limits: TrialLimits, runs: list[TrialRun]) -> dict[str, dict[str, float]]:
    """Return the shares, by job, that changed limits leave to the runs at work.

    Only those that have to change: limits that were lowered, lifted or added.
    """
    running = [run for run in runs if run.status == "running"]
    shares: dict[str, dict[str, float]] = {}
    for key in SHARED_KEYS:
        free = free_amount(limits, runs, key)
        for run in running:
            share = shares.get(run.job, dict(run.share))
            if free is None:
                share.pop(key, None)
            elif free < 0 or key not in run.share:
                reserved = sum(other.share.get(key, 0) for other in running)
                part = max(_whole(key, (free + reserved) / len(running)), float(LEAST[key]))
                share[key] = min(share.get(key, part), part)
            if share != run.share:
                shares[run.job] = share
    return shares


def scarce_key(limits: TrialLimits, runs: list[TrialRun]) -> str:
    """Return the key of the limit that keeps the oldest waiting run, or the next one, from work."""
    waiting = next((run for run in runs if run.status == "running" and run.needs), None)
    for key in SHARED_KEYS:
        free = free_amount(limits, runs, key)
        if free is None:
            continue
        needed = waiting.needs.get(key, 0) - waiting.share.get(key, 0) if waiting else LEAST[key]
        if needed > free:
            return key
    return next(key for key in SHARED_KEYS if getattr(limits, key) is not None)


def known_usage(runs: list[TrialRun]) -> Usage:
    """Return what the ended runs have used, as far as the trial knows."""
    total = Usage()
    for run in runs:
        total.add(run.usage or Usage())
    return total


def _whole(key: str, amount: float) -> float:
    """Return an amount as a limit can have it: whole but for money."""
    return round(amount, 9) if key == "cost" else float(int(amount))
