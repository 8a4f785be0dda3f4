"""What of a project's limits its children may use: set aside at their start, settled at their end.

Pure functions. A child has its share as limits of its own, so that it stops by itself, in the
midst of its work, where the project's money ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocol.project import EndedJob, ProjectRecord, RunningJob
from protocol.record import WaitState
from workflows.activity_failures import shell_quoted
from workflows.budget import KEYS, LOW, Consumption, Used, format_amount

LEAST = {"model_calls": 2, "tool_calls": 1, "tokens": 1000, "cost": 1e-6, "seconds": 1}
"""Less than this is not worth beginning a job with."""


def spent_by_ended(project: ProjectRecord) -> Consumption:
    """What the children that are over have used."""
    return Consumption(project.usage, project.seconds)


def free_amount(project: ProjectRecord, key: str) -> float | None:
    """What is neither spent nor set aside; None where there is no limit."""
    limit = getattr(project.limits, key)
    if limit is None:
        return None
    # Time is not divided: children that work side by side all have the same hours.
    set_aside = (
        0 if key == "seconds" else sum(run.share.get(key, 0) for run in project.running.values())
    )
    return float(round(limit - spent_by_ended(project).amount(key) - set_aside, 9))


def divide_shares(project: ProjectRecord, among: int) -> dict[str, float] | WaitState:
    """What each of so many children gets, by key; or how the project waits, with too little."""
    shares: dict[str, float] = {}
    for key in KEYS:
        available = free_amount(project, key)
        if available is None:
            continue
        part = available if key == "seconds" else available / among
        part = round(part, 9) if key == "cost" else int(part)
        if part < LEAST[key]:
            return wait_for_budget(project, key, among)
        shares[key] = part
    return shares


def remaining_after(project: ProjectRecord, run: RunningJob, ended: EndedJob) -> dict[str, float]:
    """What a child that is over leaves of the project's limits on model calls, by key."""
    amounts: dict[str, float] = {}
    for key in ("model_calls", "tokens", "cost"):
        if (available := free_amount(project, key)) is not None:
            amounts[key] = (
                available + run.share.get(key, 0) - Consumption(ended.usage, 0).amount(key)
            )
    return amounts


def additional_shares(project: ProjectRecord) -> dict[str, dict[str, float]]:
    """For children that wait for money, the shares they can have now, by job id.

    What others left over, or a person added, is divided among them.
    """
    asking = {
        job: run
        for job, run in project.running.items()
        if run.last_report.waiting == "budget" and run.share
    }
    shares: dict[str, dict[str, float]] = {}
    for key in KEYS:
        available = free_amount(project, key)
        if available is None:
            continue
        for job, run in asking.items():
            least = run.share.get(key, 0)
            # What it used is its own count, in which the time that people took is none.
            more = (
                available + run.last_report.seconds
                if key == "seconds"
                else least + available / len(asking)
            )
            more = round(more, 9) if key == "cost" else int(more)
            if more >= least + LEAST[key]:
                shares.setdefault(job, {})[key] = more
    return shares


def lowered_shares(project: ProjectRecord, keys: Iterable[str]) -> dict[str, dict[str, float]]:
    """For children at work, the shares that a person's new limits leave them, by job id.

    Only where they have more than there is now; what is there beyond is theirs once they ask.
    """
    shares: dict[str, dict[str, float]] = {}
    for key in keys:
        available = free_amount(project, key)
        if available is None:
            continue
        held_shares = [run.share.get(key, 0) for run in project.running.values()]
        for job, run in project.running.items():
            if key == "seconds":
                # As if the limit had been this when the job began.
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


def share_settings(part: dict[str, float]) -> dict[str, object]:
    """A share as configuration of the child: `limits.job.cost` and the like."""
    return {f"limits.job.{key}": value for key, value in part.items()}


def wait_for_budget(project: ProjectRecord, key: str, among: int) -> WaitState:
    """How the project waits when a limit leaves no room for so many further jobs."""
    limit = getattr(project.limits, key)
    used = spent_by_ended(project).amount(key)
    name = key.replace("_", " ")
    return WaitState(
        reason="budget",
        message=f"The project's limit of {format_amount(key, limit)} {name} leaves no "
        "room for the next "
        f"job; {format_amount(key, used)} are used.",
        remedy=limit_remedy(project, key, among),
    )


def limit_remedy(project: ProjectRecord, key: str, among: int) -> str:
    """How a person makes room for so many jobs."""
    limit, used = getattr(project.limits, key), spent_by_ended(project).amount(key)
    # Children that are over may have used more than twice the limit.
    enough = max(2 * limit, used + among * LEAST[key])
    value = format_amount(key, enough, up=True).replace(",", "")
    return (
        "Raise the project's limit with the signal limit, such as `starter.py limit "
        f"{shell_quoted(project.id)} {key}={value}`, or cancel the project."
    )


def limits_with_usage(project: ProjectRecord) -> dict[str, dict[str, float]]:
    """The limits that are set, each with what was used of it, children at work included."""
    limits = {}
    for key in KEYS:
        if (limit := getattr(project.limits, key)) is not None:
            used = spent_by_ended(project).amount(key)
            if key != "seconds":
                used += sum(
                    Consumption(run.last_report.usage, 0).amount(key)
                    for run in project.running.values()
                )
            limits[key] = {"limit": limit, "spent": round(used, 9)}
    return limits


def nearly_used(project: ProjectRecord) -> list[Used]:
    """The project's limits of which no more than a fifth is left."""
    return [
        Used(key, key, each["limit"], each["spent"])
        for key, each in limits_with_usage(project).items()
        if each["spent"] >= each["limit"] * (1 - LOW)
    ]
