"""What of a project's limits its children may use: set aside at their start, settled at their end.

Pure functions. A child has its share as limits of its own, so that it stops by itself, in the
midst of its work, where the project's money ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocol.project import Ended, ProjectRecord, Running
from protocol.record import Waiting
from workflows.budget import KEYS, LOW, Spent, Used, figure
from workflows.parking import quoted

LEAST = {"model_calls": 2, "tool_calls": 1, "tokens": 1000, "cost": 1e-6, "seconds": 1}
"""Less than this is not worth beginning a job with."""


def spent(project: ProjectRecord) -> Spent:
    """What the children that are over have used."""
    return Spent(project.usage, project.seconds)


def free(project: ProjectRecord, key: str) -> float | None:
    """What is neither spent nor set aside; None where there is no limit."""
    limit = getattr(project.limits, key)
    if limit is None:
        return None
    # Time is not divided: children that work side by side all have the same hours.
    held = 0 if key == "seconds" else sum(run.share.get(key, 0) for run in project.running.values())
    return float(round(limit - spent(project).figure(key) - held, 9))


def share(project: ProjectRecord, among: int) -> dict[str, float] | Waiting:
    """What each of so many children gets, by key; or how the project waits, with too little."""
    found: dict[str, float] = {}
    for key in KEYS:
        left = free(project, key)
        if left is None:
            continue
        part = left if key == "seconds" else left / among
        part = round(part, 9) if key == "cost" else int(part)
        if part < LEAST[key]:
            return used_up(project, key, among)
        found[key] = part
    return found


def left_by(project: ProjectRecord, run: Running, ended: Ended) -> dict[str, float]:
    """What a child that is over leaves of the project's limits on model calls, by key."""
    found: dict[str, float] = {}
    for key in ("model_calls", "tokens", "cost"):
        if (left := free(project, key)) is not None:
            found[key] = left + run.share.get(key, 0) - Spent(ended.usage, 0).figure(key)
    return found


def extra(project: ProjectRecord) -> dict[str, dict[str, float]]:
    """For children that wait for money, the shares they can have now, by job id.

    What others left over, or a person added, is divided among them.
    """
    asking = {
        job: run
        for job, run in project.running.items()
        if run.seen.waiting == "budget" and run.share
    }
    found: dict[str, dict[str, float]] = {}
    for key in KEYS:
        left = free(project, key)
        if left is None:
            continue
        for job, run in asking.items():
            least = run.share.get(key, 0)
            # What it used is its own count, in which the time that people took is none.
            more = left + run.seen.seconds if key == "seconds" else least + left / len(asking)
            more = round(more, 9) if key == "cost" else int(more)
            if more >= least + LEAST[key]:
                found.setdefault(job, {})[key] = more
    return found


def lowered(project: ProjectRecord, keys: Iterable[str]) -> dict[str, dict[str, float]]:
    """For children at work, the shares that a person's new limits leave them, by job id.

    Only where they have more than there is now; what is there beyond is theirs once they ask.
    """
    found: dict[str, dict[str, float]] = {}
    for key in keys:
        left = free(project, key)
        if left is None:
            continue
        held = [run.share.get(key, 0) for run in project.running.values()]
        for job, run in project.running.items():
            if key == "seconds":
                # As if the limit had been this when the job began.
                part: float = int(left + project.seconds - run.after)
            elif left < 0 or key not in run.share:
                part = (left + sum(held)) / len(held)
                part = round(part, 9) if key == "cost" else int(part)
            else:
                continue
            part = max(part, LEAST[key])
            if part < run.share.get(key, float("inf")):
                found.setdefault(job, {})[key] = part
    return found


def as_settings(part: dict[str, float]) -> dict[str, object]:
    """A share as configuration of the child: `limits.job.cost` and the like."""
    return {f"limits.job.{key}": value for key, value in part.items()}


def used_up(project: ProjectRecord, key: str, among: int) -> Waiting:
    """How the project waits when a limit leaves no room for so many further jobs."""
    limit = getattr(project.limits, key)
    used = spent(project).figure(key)
    name = key.replace("_", " ")
    return Waiting(
        reason="budget",
        message=f"The project's limit of {figure(key, limit)} {name} leaves no room for the next "
        f"job; {figure(key, used)} are used.",
        remedy=remedy(project, key, among),
    )


def remedy(project: ProjectRecord, key: str, among: int) -> str:
    """How a person makes room for so many jobs."""
    limit, used = getattr(project.limits, key), spent(project).figure(key)
    # Children that are over may have used more than twice the limit.
    enough = max(2 * limit, used + among * LEAST[key])
    value = figure(key, enough, up=True).replace(",", "")
    return (
        "Raise the project's limit with the signal limit, such as `starter.py limit "
        f"{quoted(project.id)} {key}={value}`, or cancel the project."
    )


def standing(project: ProjectRecord) -> dict[str, dict[str, float]]:
    """The limits that are set, each with what was used of it, children at work included."""
    found = {}
    for key in KEYS:
        if (limit := getattr(project.limits, key)) is not None:
            used = spent(project).figure(key)
            if key != "seconds":
                used += sum(
                    Spent(run.seen.usage, 0).figure(key) for run in project.running.values()
                )
            found[key] = {"limit": limit, "spent": round(used, 9)}
    return found


def nearly_used(project: ProjectRecord) -> list[Used]:
    """The project's limits of which no more than a fifth is left."""
    return [
        Used(key, key, each["limit"], each["spent"])
        for key, each in standing(project).items()
        if each["spent"] >= each["limit"] * (1 - LOW)
    ]
