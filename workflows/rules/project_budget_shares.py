"""Shares of a project's limits: reserved when a child starts, settled when it ends.

Pure functions. A child has its share as limits of its own, so it stops in the middle of its work
when the project's budget is used up.
"""

from collections.abc import Iterable

from protocol.limits import LEAST
from protocol.project_record import ProjectRecord
from protocol.project_units import EndedJob, RunningJob
from protocol.short_text import shell_quoted
from protocol.status import LimitUse
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows.rules.budget import KEYS, LOW, BudgetUse, Consumption, format_budget_amount


def spent_by_ended(project: ProjectRecord) -> Consumption:
    """Return the consumption of the children that have ended."""
    return Consumption(project.usage, project.seconds)


def free_project_share(project: ProjectRecord, key: str) -> float | None:
    """Return what is neither spent nor reserved; None if there is no limit."""
    limit = getattr(project.limits, key)
    if limit is None:
        return None
    # Time is not divided: children that run in parallel use the same hours.
    set_aside = (
        0 if key == "seconds" else sum(run.share.get(key, 0) for run in project.running.values())
    )
    return float(round(limit - spent_by_ended(project).amount(key) - set_aside, 9))


def divide_shares(project: ProjectRecord, among: int) -> dict[str, float] | WaitState:
    """Return each of `among` children's share by key, or a wait if a share would be too small."""
    shares: dict[str, float] = {}
    for key in KEYS:
        available = free_project_share(project, key)
        if available is None:
            continue
        part = available if key == "seconds" else available / among
        part = round(part, 9) if key == "cost" else int(part)
        if part < LEAST[key]:
            return project_budget_wait(project, key, among)
        shares[key] = part
    return shares


def remaining_share_after(
    project: ProjectRecord, run: RunningJob, ended: EndedJob
) -> dict[str, float]:
    """Return what an ended child leaves of the limits on model calls, tokens and cost, by key."""
    amounts: dict[str, float] = {}
    for key in ("model_calls", "tokens", "cost"):
        if (available := free_project_share(project, key)) is not None:
            amounts[key] = (
                available + run.share.get(key, 0) - Consumption(ended.usage, 0).amount(key)
            )
    return amounts


def additional_shares(project: ProjectRecord) -> dict[str, dict[str, float]]:
    """Return larger shares for children that wait for budget, by job id and key.

    Budget that others left, or that a person added, is divided among them.
    """
    asking = {
        job: run
        for job, run in project.running.items()
        if run.last_report.waiting == "budget" and run.share
    }
    shares: dict[str, dict[str, float]] = {}
    for key in KEYS:
        available = free_project_share(project, key)
        if available is None:
            continue
        for job, run in asking.items():
            least = run.share.get(key, 0)
            # The child counts its own seconds, without time spent waiting for people.
            more = (
                available + run.last_report.seconds
                if key == "seconds"
                else least + available / len(asking)
            )
            more = round(more, 9) if key == "cost" else int(more)
            if more >= least + LEAST[key]:
                shares.setdefault(job, {})[key] = more
    return shares


def lowered_project_shares(
    project: ProjectRecord, keys: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Return the smaller shares that lowered limits leave to running children, by job id and key.

    Only shares that exceed the new limits change; children ask for any surplus themselves.
    """
    shares: dict[str, dict[str, float]] = {}
    for key in keys:
        available = free_project_share(project, key)
        if available is None:
            continue
        held_shares = [run.share.get(key, 0) for run in project.running.values()]
        for job, run in project.running.items():
            if key == "seconds":
                # As if the limit had been this when the job started.
                part: float = int(available + project.seconds - run.project_seconds_before)
            elif available < 0 or key not in run.share:
                part = (available + sum(held_shares)) / len(held_shares)
                part = round(part, 9) if key == "cost" else int(part)
            else:
                continue
            part = max(part, LEAST[key])
            if part < run.share.get(key, float("inf")):
                shares.setdefault(job, {})[key] = part
    return shares


def project_budget_wait(project: ProjectRecord, key: str, among: int) -> WaitState:
    """Return the project's wait when a limit leaves no room for `among` more jobs."""
    limit = getattr(project.limits, key)
    used = spent_by_ended(project).amount(key)
    name = key.replace("_", " ")
    return WaitState(
        reason="budget",
        message=f"The project's limit of {format_budget_amount(key, limit)} {name} leaves no "
        "room for the next "
        f"job; {format_budget_amount(key, used)} are used.",
        **share_limit_remedy(project, key, among),
    )


def share_limit_remedy(project: ProjectRecord, key: str, among: int) -> dict[str, str]:
    """Return the remedy and the command that make room for `among` jobs."""
    limit, used = getattr(project.limits, key), spent_by_ended(project).amount(key)
    # Ended children may have used more than twice the limit.
    enough = max(2 * limit, used + among * LEAST[key])
    value = format_budget_amount(key, enough, up=True).replace(",", "")
    command = f"starter.py limit {shell_quoted(project.id)} {key}={value}"
    return {
        "command": command,
        "remedy": f"Raise the project's limit with the signal limit, such as `{command}`, or "
        "cancel the project.",
    }


def project_limits_with_usage(project: ProjectRecord) -> dict[str, LimitUse]:
    """Return each limit that is set with its consumption, including running children."""
    limits = {}
    for key in KEYS:
        if (limit := getattr(project.limits, key)) is not None:
            used = spent_by_ended(project).amount(key)
            if key != "seconds":
                used += sum(
                    Consumption(run.last_report.usage, 0).amount(key)
                    for run in project.running.values()
                )
            limits[key] = LimitUse(limit=limit, spent=round(used, 9))
    return limits


def nearly_used_project_limits(project: ProjectRecord) -> list[BudgetUse]:
    """Return the project's limits of which at most a fifth is left."""
    return [
        BudgetUse(key, key, each.limit, each.spent)
        for key, each in project_limits_with_usage(project).items()
        if each.spent >= each.limit * (1 - LOW)
    ]


def total_project_usage(project: ProjectRecord) -> Usage:
    """Return the usage of all children, by their last reports."""
    usage = project.usage.model_copy()
    for run in project.running.values():
        usage.add(run.last_report.usage)
    return usage
