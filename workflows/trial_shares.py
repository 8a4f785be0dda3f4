"""Shares of a trial's limits: reserved when a run starts, settled when it has ended.

Pure functions. A run may use its part of an even division among the runs that have not ended. More
is for the oldest run only: of a scarce limit, few runs that complete show more than many that are
cut at the same point.
"""

from __future__ import annotations

from protocol.trial_start import TrialLimits
from protocol.trial_status import TrialRun
from workflows.budget import Consumption
from workflows.project_budget_shares import LEAST

SHARED_KEYS = ("model_calls", "tool_calls", "tokens", "cost")
SMALLEST = {"model_calls": 1, "tool_calls": 1, "tokens": 1, "cost": 1e-9}
"""Smallest limit that a job can have. A run at work keeps it when a limit is lowered."""
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


def free_trial_amount(limits: TrialLimits, runs: list[TrialRun], key: str) -> float | None:
    """Return what is neither used nor reserved; None without a limit."""
    limit = getattr(limits, key)
    if limit is None:
        return None
    return float(round(limit - sum(charged_amount(run, key) for run in runs), 9))


def even_part(limits: TrialLimits, runs: list[TrialRun], key: str) -> float:
    """Return each open run's part of what the ended runs have left, at least what a job needs."""
    ended = sum(charged_amount(run, key) for run in runs if run.status not in OPEN)
    count = sum(run.status in OPEN for run in runs)
    return max(_round_share(key, (getattr(limits, key) - ended) / count), float(LEAST[key]))


def unmet_run_needs(run: TrialRun, needs: dict[str, float]) -> dict[str, float]:
    """Return the needs of a run that its share does not cover: it may have grown meanwhile."""
    return {key: needed for key, needed in needs.items() if needed > run.share.get(key, needed)}


def released_share(run: TrialRun, used: dict[str, float]) -> dict[str, float]:
    """Return the share that a run keeps while it waits for a person: what it has used."""
    return {
        key: min(share, max(used.get(key, share), SMALLEST[key]))
        for key, share in run.share.items()
    }


def release_unused_share(run: TrialRun, used: dict[str, float]) -> bool:
    """Release what a waiting run has not used; return whether to send it the lowered share.

    The rest stays reserved until the run has taken the lowered share: it may have gone on
    meanwhile, and have used more.
    """
    if run.lowered:
        run.share = {key: max(least, used.get(key, 0)) for key, least in run.lowered.items()}
        run.lowered = {}
    elif (share := released_share(run, used)) != run.share:
        run.lowered = share
        return True
    run.released = bool(run.waiting)
    return False


def first_share(limits: TrialLimits, runs: list[TrialRun]) -> dict[str, float] | None:
    """Return the share of a run that is to start; None while too little is free for it."""
    share = {}
    for key in SHARED_KEYS:
        free = free_trial_amount(limits, runs, key)
        if free is None:
            continue
        if free < LEAST[key]:
            return None
        share[key] = min(even_part(limits, runs, key), free)
    return share


def larger_share(
    limits: TrialLimits, runs: list[TrialRun], run: TrialRun
) -> dict[str, float] | None:
    """Return the share with what a run needs; None if it is not there for it.

    The oldest run that does not wait for a person gets half of the rest as well, so that it
    need not come again soon, and the last run all of it.
    """
    alone = sum(other.status in OPEN for other in runs) == 1
    able = [other.job for other in runs if other.status == "running" and not other.waiting]
    is_oldest = able[:1] == [run.job]
    share = dict(run.share)
    for key, needed in run.needs.items():
        free = free_trial_amount(limits, runs, key)
        if free is None:
            share.pop(key, None)
            continue
        most, part = share.get(key, 0) + free, even_part(limits, runs, key)
        if needed > (most if is_oldest else min(most, part)):
            return None
        if is_oldest:
            part = _round_share(key, most if alone else max((needed + most) / 2, needed))
        share[key] = min(part, most)
    return share


def lowered_trial_shares(limits: TrialLimits, runs: list[TrialRun]) -> dict[str, dict[str, float]]:
    """Return the shares, by job, that changed limits leave to the runs at work.

    Only those that have to change: limits that were lowered, lifted or added.
    """
    running = [run for run in runs if run.status == "running"]
    shares: dict[str, dict[str, float]] = {}
    for key in SHARED_KEYS:
        free = free_trial_amount(limits, runs, key)
        for run in running:
            share = shares.get(run.job, dict(run.share))
            if free is None:
                share.pop(key, None)
            elif free < 0 or key not in run.share:
                reserved = sum(other.share.get(key, 0) for other in running)
                part = max(_round_share(key, (free + reserved) / len(running)), SMALLEST[key])
                share[key] = min(share.get(key, part), part)
            if share != run.share:
                shares[run.job] = share
    return shares


def scarce_trial_limit(limits: TrialLimits, runs: list[TrialRun]) -> str:
    """Return the key of the limit that keeps the oldest waiting run, or the next one, from work."""
    waiting = next((run for run in runs if run.status == "running" and run.needs), None)
    for key in SHARED_KEYS:
        free = free_trial_amount(limits, runs, key)
        if free is None:
            continue
        needed = waiting.needs.get(key, 0) - waiting.share.get(key, 0) if waiting else LEAST[key]
        if needed > free:
            return key
    return next(key for key in SHARED_KEYS if getattr(limits, key) is not None)


def _round_share(key: str, amount: float) -> float:
    """Return an amount as a limit can have it: a whole number, but for money."""
    return round(amount, 9) if key == "cost" else float(int(amount))
